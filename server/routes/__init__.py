"""What clients can ask for, by path."""
