"""Mutants that are wrong in a known part, with corrections. Empty so far: its place in the layers is kept."""
