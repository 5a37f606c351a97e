"""Optimize one model: rewrite, check, time, decide."""
