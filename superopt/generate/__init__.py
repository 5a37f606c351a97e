"""Finding rules offline, by machine. Empty so far: its place in the layers is kept."""
