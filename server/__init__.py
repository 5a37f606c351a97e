"""The service. Empty so far: its place in the layers is kept."""
