"""`python -m superopt`."""

from superopt.cli import entry

entry()
