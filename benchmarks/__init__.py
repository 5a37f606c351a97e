"""Scripts that print the numbers; each runs by itself from the repository."""
