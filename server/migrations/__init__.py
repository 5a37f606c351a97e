"""The tables' history, a step in each file of `versions`."""
