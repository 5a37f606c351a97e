"""Where two programs agree when sizes are symbols.

Boxes found at a few concrete sizes suggest how their corners depend on the sizes; each suggestion is then proved for
all sizes from a least one on. What cannot be fitted or proved is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from superopt.ops.condition import Condition, deciding
from superopt.ops.formula import Tensor
from superopt.ops.index import Index, symbol
from superopt.verify.agree import Box, agree
from superopt.verify.equal import equal_in_cases
from superopt.verify.expand import Inexpressible, expand
from superopt.verify.facts import Facts
from superopt.verify.paths import Path
from superopt.verify.witness import output_index

Sizes = Mapping[str, Index]
Programs = tuple[Tensor, Tensor, dict[str, tuple[Index, ...]]]
"""Two tensors of one shape, and the shapes of the inputs they read."""


@dataclass(frozen=True)
class SymbolicBox:
    """Positions from `start` up to but not including `stop`; corners may mention sizes."""

    start: tuple[Index, ...]
    stop: tuple[Index, ...]

    def __str__(self) -> str:
        return ", ".join(f"{a} ≤ i{k} < {b}" for k, (a, b) in enumerate(zip(self.start, self.stop, strict=True)))


def agree_symbolically(
    build: Callable[[Sizes], Programs], names: Sequence[str], *, least: int = 4
) -> tuple[SymbolicBox, ...]:
    """Boxes on which the programs that `build` makes agree, proved for all sizes of at least `least`."""
    base = {name: least + 2 + k for k, name in enumerate(names)}
    samples = [base, *({**base, n: base[n] + step} for n in names for step in (1, 2, 3))]
    found = [_boxes(build, sample) for sample in samples]
    if len({len(boxes) for boxes in found}) != 1:
        return ()
    symbols: dict[str, Index] = {name: symbol(name) for name in names}
    facts = Facts(()).and_(*(s >= least for s in symbols.values()))
    path = Path(facts, [])
    with deciding(path.decide):
        left, right, _ = build(symbols)
    if path.taken:
        return ()  # the programs are not the same ones for all sizes
    proved: list[SymbolicBox] = []
    for k in range(len(found[0])):
        box = _fitted([boxes[k] for boxes in found], samples, symbols)
        if box is not None and _proved(left, right, box, facts):
            proved.append(box)
    return tuple(proved)


def _boxes(build: Callable[[Sizes], Programs], sizes: Mapping[str, int]) -> tuple[Box, ...]:
    left, right, inputs = build(sizes)
    concrete = {n: tuple(int(d) for d in shape) for n, shape in inputs.items()}  # pyright: ignore[reportArgumentType]
    return agree(left, right, concrete).same


def _fitted(
    boxes: Sequence[Box], samples: Sequence[Mapping[str, int]], symbols: Mapping[str, Index]
) -> SymbolicBox | None:
    starts = [_affine([b.start[k] for b in boxes], samples, symbols) for k in range(len(boxes[0].start))]
    stops = [_affine([b.stop[k] for b in boxes], samples, symbols) for k in range(len(boxes[0].stop))]
    start, stop = tuple(s for s in starts if s is not None), tuple(s for s in stops if s is not None)
    return SymbolicBox(start, stop) if len(start) == len(starts) and len(stop) == len(stops) else None


def _affine(values: Sequence[int], samples: Sequence[Mapping[str, int]], symbols: Mapping[str, Index]) -> Index | None:
    """The affine function of the sizes that takes these values at these samples; None where there is none."""
    base, first = samples[0], values[0]
    slopes = {
        name: next(v - first for v, s in zip(values, samples, strict=True) if s[name] == base[name] + 1)
        for name in symbols
    }
    constant = first - sum(slope * base[name] for name, slope in slopes.items())
    for value, sample in zip(values, samples, strict=True):
        if value != constant + sum(slope * sample[name] for name, slope in slopes.items()):
            return None
    total: Index = constant
    for name, slope in slopes.items():
        total = total + symbols[name] * slope
    return total


def _proved(left: Tensor, right: Tensor, box: SymbolicBox, facts: Facts) -> bool:
    place = tuple(output_index(k) for k in range(len(box.start)))
    bounds: list[Condition | bool] = []
    for i, a, b in zip(place, box.start, box.stop, strict=True):
        bounds += [i >= a, i < b]
    path = Path(facts.and_(*bounds), [])
    try:
        with deciding(path.decide):
            a, b = expand(left[place], path.facts), expand(right[place], path.facts)
            return not path.taken and equal_in_cases(a, b, path.facts)
    except Inexpressible:
        return False
