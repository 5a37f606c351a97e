"""Convolutions by tiles, as rules: the tables of `interpolation` along each axis, in the one graph that uses them.

    [[tiles]]
    name = "threes"
    window = [3, 3]                         of the filter, one size for each axis, odd
    outputs = [4, 4]                        of a tile; 1 where an axis is left alone
    points = ["0", "1", "-1", "1/2"]        what the machine chooses from
    rests = "equal"                         sizes that tiles do not divide: as much over on each axis, or "any"

    y = A [ (G k G') ∘ (B x B') ] A'

The tiles of the input are a convolution with a stride, and those of the output are laid side by side by another that is
transposed. In between is one product of matrices for each place of a tile. What depends on tables and filters alone is
computed when a model is loaded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Literal

from superopt.errors import BadInput
from superopt.generate.interpolation import Matrix, Tables, best_tables
from superopt.rewrite.rule import Rule
from superopt.rewrite.text import parse_rules

MOST_POINTS = 16
"""That are chosen from: the choices double with each."""
SIZES = "pq"
"""Names for the number of tiles on each axis."""


@dataclass(frozen=True)
class Tiling:
    """What one entry of a recipe asks for."""

    name: str
    window: tuple[int, ...]
    outputs: tuple[int, ...]
    points: tuple[Fraction, ...]
    rests: Literal["equal", "any"] = "any"

    @property
    def told(self) -> str:
        return f"windows of {_times(self.window)} by tiles of {_times(self.outputs)}"

    def tables(self) -> tuple[list[Tables], int]:
        """The best for each axis, and how many were tried."""
        found = [best_tables(m, r, self.points) for m, r in zip(self.outputs, self.window, strict=True)]
        return [best for best, _ in found], sum(tried for _, tried in found)


def read_tiling(read: Mapping[str, Any], where: str) -> Tiling:
    """One entry of a recipe, or what is wrong with it."""
    for key in ("window", "outputs", "points"):
        if key in read and not isinstance(read[key], list):
            raise BadInput(f"{where}: `{key}` must be a list")
    try:
        window, outputs = (tuple(int(n) for n in read[key]) for key in ("window", "outputs"))
        points = tuple(Fraction(text) for text in read["points"])
    except KeyError as key:
        raise BadInput(f"{where}: {key} is missing") from None
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise BadInput(f"{where}: {error}") from None
    rests = read.get("rests", "any")
    if len(window) != len(outputs) or not 1 <= len(window) <= len(SIZES):
        raise BadInput(f"{where}: `window` and `outputs` have one number for each axis, one axis or two")
    if any(r < 1 or r % 2 == 0 for r in window) or any(m < 1 for m in outputs):
        raise BadInput(f"{where}: windows are odd, and a tile has at least one output")
    if rests not in ("equal", "any"):
        raise BadInput(f"{where}: `rests` is either equal or any, not {rests!r}")
    needed = max(m + r - 2 for m, r in zip(outputs, window, strict=True))
    if needed > MOST_POINTS:
        raise BadInput(f"{where}: these tiles take {needed} points, at most {MOST_POINTS} are chosen from")
    if not needed <= len(set(points)) == len(points) <= MOST_POINTS:
        raise BadInput(f"{where}: {needed} to {MOST_POINTS} different points are needed, not {len(points)}")
    return Tiling(str(read.get("name", "tiles")), window, outputs, points, rests)


def candidates(tiling: Tiling, tables: Sequence[Tables]) -> Iterator[Rule]:
    """Without a bias and with one, for every size that tiles divide or not."""
    ways = product(*(range(m) for m in tiling.outputs))
    for rests in ways:
        over = {rest for rest, m in zip(rests, tiling.outputs, strict=True) if m > 1}
        if tiling.rests == "any" or len(over) == 1:
            for bias in (False, True):
                yield parse_rules(_text(tiling, tables, rests, bias=bias))[0]


def _text(tiling: Tiling, tables: Sequence[Tables], rests: Sequence[int], *, bias: bool) -> str:
    axes = range(len(tiling.window))
    places = [t.products for t in tables]
    whole = math.prod(places)
    cut = [(m - rest) % m for m, rest in zip(tiling.outputs, rests, strict=True)]
    tiles = [f"{SIZES[a]} + 1" if cut[a] else SIZES[a] for a in axes]
    sizes = [_size(SIZES[a], m, rest) for a, m, rest in zip(axes, tiling.outputs, rests, strict=True)]
    half = [r // 2 for r in tiling.window]
    over = [h + c for h, c in zip(half, cut, strict=True)]
    strides = _list(tiling.outputs)
    channel = f", axes={_list(range(1, len(axes) + 1))}"
    crop = f", pads={_list([*(0 for _ in axes), *cut])}" if any(cut) else ""
    laid = f"Reshape(ConvTranspose(z, a, strides={strides}{crop}), shape={_list(['n', 'o', *sizes])})"
    inner = ", ".join(map(str, places))
    spread = "*".join(f"({t})" if "+" in t else t for t in tiles)
    swapped = "perm=[0, 2, 1, 3]"
    lines = [
        f"given x: {_list(['n', 'c', *sizes])}  k: {_list(['o', 'c', *tiling.window])}" + ("  b: [o]" if bias else ""),
        f"y = Conv(x, k{', b' if bias else ''}, pads={_list(half + half)})",
        "=>",
        f"e = Reshape({_outer([t.inputs for t in tables])}, shape=[{whole}, 1, {inner}])",
        f"a = Reshape({_outer([_turned(t.outputs) for t in tables])}, shape=[{whole}, 1, {strides[1:-1]}])",
        f"u = Transpose(Reshape({_filters(tables)}, shape=[o, c, {whole}]), perm=[2, 0, 1])",
        f"v = Conv(Reshape(x, shape={_list(['n*c', 1, *sizes])}), e, pads={_list(half + over)}, strides={strides})",
        f"m = MatMul(u, Transpose(Reshape(v, shape=[n, c, {whole}, {spread}]), {swapped}))",
        f"z = Reshape(Transpose(m, {swapped}), shape={_list(['n*o', whole, *tiles])})",
        f"y = Add({laid}, Unsqueeze(b{channel}))" if bias else f"y = {laid}",
    ]
    head = ["rule tiles", f"doc {_doc(tiling, tables, rests, bias=bias)}", "origin generated"]
    return "\n  ".join([*head, *lines]) + "\n"


def _size(tiles: str, outputs: int, rest: int) -> str:
    return (f"{outputs}*{tiles}" if outputs > 1 else tiles) + (f" + {rest}" if rest else "")


def _doc(tiling: Tiling, tables: Sequence[Tables], rests: Sequence[int], *, bias: bool) -> str:
    products = math.prod(t.products for t in tables)
    before = math.prod(tiling.outputs) * math.prod(tiling.window)
    points = " and ".join(dict.fromkeys(", ".join(map(str, t.points)) for t in tables if t.points))
    said = f"A convolution with a window of {_times(tiling.window)}{' and a bias' if bias else ''} by tiles"
    left = f"; sizes are {_times(rests)} more than tiles divide" if any(rests) else ""
    return f"{said} of {_times(tiling.outputs)}: {products} products for {before}, at the points {points} and ∞{left}."


def _outer(tables: Sequence[Matrix]) -> str:
    """Tables of several axes multiplied: place, place …, entry, entry …"""
    if len(tables) == 1:
        return _table(tables[0])
    count = len(tables)
    spread = [
        f"Unsqueeze({_table(t)}, axes={_list([a for a in range(2 * count) if a not in (k, count + k)])})"
        for k, t in enumerate(tables)
    ]
    return f"Mul({', '.join(spread)})"


def _filters(tables: Sequence[Tables]) -> str:
    """The filters at the points, along the last axis and the one before it."""
    last = f"MatMul(k, {_table(_turned(tables[-1].filters))})"
    return last if len(tables) == 1 else f"MatMul({_table(tables[0].filters)}, {last})"


def _turned(matrix: Matrix) -> Matrix:
    return tuple(zip(*matrix, strict=True))


def _table(matrix: Matrix) -> str:
    return _list([_list(row) for row in matrix])


def _list(items: Sequence[object]) -> str:
    return f"[{', '.join(map(str, items))}]"


def _times(numbers: Sequence[int]) -> str:
    return "×".join(map(str, numbers))
