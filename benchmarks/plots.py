"""Bars as SVG, without a library: one group for each network, one bar for each method, longer is faster."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

LABELS, BAR, GAP, WIDTH, TOP = 190, 9, 10, 560, 46
COLOURS = ("#2563eb", "#94a3b8", "#f59e0b", "#10b981")
MARGIN = 60


def bars(title: str, series: Sequence[str], groups: Mapping[str, Sequence[float | None]]) -> str:
    """`groups` holds one value for each of the series; what was not measured has no bar. Lengths begin at 0."""
    longest = max((v for values in groups.values() for v in values if v is not None), default=1.0)
    step = _step(longest)
    last = step * math.ceil(longest / step)
    height = TOP + sum(_height(values) for values in groups.values()) + 26

    def x(value: float) -> float:
        return LABELS + WIDTH * value / last

    total = LABELS + WIDTH + MARGIN
    size = f'viewBox="0 0 {total} {height}" width="{total}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="system-ui, sans-serif" font-size="11">',
        f'<rect width="{total}" height="{height}" fill="#ffffff"/>',
        f'<text x="8" y="16" font-size="13" font-weight="600">{escape(title)}</text>',
    ]
    at = 8.0
    for i, name in enumerate(series):
        lines.append(f'<rect x="{at:.0f}" y="26" width="10" height="10" fill="{COLOURS[i % len(COLOURS)]}"/>')
        lines.append(f'<text x="{at + 14:.0f}" y="35">{escape(name)}</text>')
        at += 30 + 6.2 * len(name)
    for k in range(round(last / step) + 1):
        mark, colour = x(k * step), "#cbd5e1" if k * step != 1 else "#64748b"
        lines.append(f'<line x1="{mark:.1f}" y1="{TOP}" x2="{mark:.1f}" y2="{height - 20}" stroke="{colour}"/>')
        lines.append(f'<text x="{mark:.1f}" y="{height - 7}" text-anchor="middle">{k * step:g}</text>')
    y = TOP + GAP / 2
    for name, values in groups.items():
        middle = y + (_height(values) - GAP) / 2 + 4
        lines.append(f'<text x="{LABELS - 6}" y="{middle:.1f}" text-anchor="end">{escape(name)}</text>')
        for i, value in enumerate(values):
            if value is not None:
                lines.append(_bar(x(0), y + i * BAR, x(value), COLOURS[i % len(COLOURS)], f"{value:.2f}"))
        y += _height(values)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _bar(left: float, y: float, right: float, colour: str, text: str) -> str:
    bar = f'<rect x="{left:.1f}" y="{y:.1f}" width="{right - left:.1f}" height="{BAR - 1}" fill="{colour}"/>'
    return f'{bar}<text x="{right + 3:.1f}" y="{y + BAR - 1:.1f}" font-size="8">{text}</text>'


def _height(values: Sequence[float | None]) -> int:
    return BAR * len(values) + GAP


def _step(longest: float) -> float:
    """About eight marks, at round numbers."""
    rough = longest / 8
    power = 10.0 ** math.floor(math.log10(rough))
    return next(s * power for s in (1, 2, 5, 10) if s * power >= rough)
