"""Where work runs: each job in a process of its own, watched by the one that asked for it."""
