"""What a process dies of by its own doing."""

from __future__ import annotations

import signal

CRASHES = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGBUS, signal.SIGTRAP})
