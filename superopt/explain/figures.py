"""Numbers as people read them."""

from __future__ import annotations


def duration(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.3f} s"
    return f"{seconds * 1e3:.3f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"


def size(count: int) -> str:
    if count >= 1 << 20:
        return f"{count / (1 << 20):.2f} MiB"
    return f"{count / 1024:.1f} KiB" if count >= 1024 else f"{count} B"


def microseconds(value: float) -> str:
    """Whole from a hundred on: the clock knows no more."""
    return f"{value:,.0f} µs" if abs(value) >= 100 else f"{value:.1f} µs"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
