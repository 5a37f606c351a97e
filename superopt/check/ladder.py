"""Which sizes to try, in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from superopt.check.sizes import Layout, Sizing, Variable


@dataclass(frozen=True)
class Rungs:
    """Sizes for image sides and for other lengths, likeliest first."""

    sides: tuple[int, ...]
    lengths: tuple[int, ...]


CHECKING = Rungs(
    (64, 32, 96, 48, 128, 224, 160, 256, 320, 640, 16, 299, 512),
    (8, 16, 1, 32, 4, 2, 64, 128, 512, 256, 80, 1024, 16000),
)
"""Small, because every set of values runs at the first size that is accepted."""

TIMING = Rungs(
    (224, 320, 640, 256, 64, 32, 128, 299, 512, 48, 96, 16),
    (128, 64, 16, 512, 256, 32, 8, 1, 80, 1024, 16000, 4, 2),
)
"""As people deploy."""

_BATCHES = (1, 2, 4, 8, 16)


def first_sizes(layout: Layout, rungs: Rungs) -> Iterator[Sizing]:
    """Batches of one, everything else on one rung; then sums of the others, as in `total = past + new`; then one dim
    at a time large and the rest one; then larger batches."""
    variables = layout.variables
    yield from _unique(
        [
            *(_on_rung(variables, rungs, i) for i in range(_height(rungs))),
            *_sums(variables, rungs),
            *_one_at_a_time(variables, rungs),
            *(_batched(variables, rungs, batch) for batch in _BATCHES[1:]),
        ]
    )


def other_sizes(layout: Layout, first: Sizing) -> dict[str, list[Sizing]]:
    """By purpose, what to try besides the first size: of each list the first that is accepted.

    Dims that had one size keep having one: they may depend on each other.
    """
    variables = layout.variables
    if not variables:
        return {}

    def change(batch: int, other: Callable[[int], int]) -> Sizing:
        return tuple(batch if size == 1 else max(1, other(size)) for size in first)

    odd = [
        change(batch, other)
        for batch in (3, 1)
        for other in (lambda z: z + 1, lambda z: z - 1, lambda z: z + 32, lambda z: 2 * z, lambda z: z // 2)
    ]
    odd.insert(5, change(3, lambda z: z))
    groups: dict[str, list[Sizing]] = {
        "ones": [tuple(1 for _ in variables)],
        "other": odd,
    }
    if len(variables) > 1:
        steps: list[Callable[[int, int], int]] = [lambda z, i: z + i, lambda z, i: z + 32 * i, lambda z, i: z * (i + 1)]
        groups["all different"] = [
            tuple(1 + i if size == 1 else step(size, i) for i, size in enumerate(first, 1)) for step in steps
        ]
    if any("past" in v.name.lower() for v in variables):
        groups["empty past"] = [
            tuple(0 if "past" in v.name.lower() else size for v, size in zip(variables, first, strict=True))
        ]
    return {what: [s for s in _unique(sizings) if s != first] for what, sizings in groups.items()}


def _on_rung(variables: tuple[Variable, ...], rungs: Rungs, i: int) -> Sizing:
    return tuple(_default(v, rungs, i) for v in variables)


def _default(variable: Variable, rungs: Rungs, i: int) -> int:
    if variable.given is not None:
        return variable.given
    if variable.role == "batch":
        return 1
    sizes = rungs.sides if variable.role == "side" else rungs.lengths
    return sizes[min(i, len(sizes) - 1)]


def _sums(variables: tuple[Variable, ...], rungs: Rungs) -> Iterator[Sizing]:
    lengths = [i for i, v in enumerate(variables) if v.role == "length"]
    if len(lengths) < 2:
        return
    base = list(_on_rung(variables, rungs, 0))
    for i in lengths:
        if variables[i].given is None:
            total = sum(base[j] for j in lengths if j != i)
            yield tuple(total if j == i else size for j, size in enumerate(base))


def _one_at_a_time(variables: tuple[Variable, ...], rungs: Rungs) -> Iterator[Sizing]:
    for rung in range(_height(rungs)):
        for i, variable in enumerate(variables):
            if variable.role != "batch" and variable.given is None:
                yield tuple(
                    _default(v, rungs, rung) if j == i else (v.given if v.given is not None else 1)
                    for j, v in enumerate(variables)
                )


def _batched(variables: tuple[Variable, ...], rungs: Rungs, batch: int) -> Sizing:
    return tuple(batch if v.role == "batch" and v.given is None else _default(v, rungs, 0) for v in variables)


def _height(rungs: Rungs) -> int:
    return max(len(rungs.sides), len(rungs.lengths))


def _unique(sizings: list[Sizing]) -> Iterator[Sizing]:
    yield from dict.fromkeys(sizings)
