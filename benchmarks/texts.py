"""Text for people."""

from __future__ import annotations

import re
from collections.abc import Sequence


def without_folders(text: str) -> str:
    """Files by their names alone: where they lie on this machine helps nobody."""
    return re.sub(r"(?<![\w.)/])/(?:[^\s/:'\"]+/)+", "", text)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """A table: columns as wide as their widest cell."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)
