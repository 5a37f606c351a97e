"""Reductions: a sum, mean, maximum, … over several axes at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from superopt.ops.draws import axes as draw_axes
from superopt.ops.draws import shape
from superopt.ops.element import Element, max_over, min_over, product_over, sum_over
from superopt.ops.formula import Tensor, normal_axis, require, tensor
from superopt.ops.index import Index, product
from superopt.ops.registry import Draw

Sizes: TypeAlias = tuple[Index, ...]
Body: TypeAlias = Callable[..., Element]
"""From one index for each reduced axis to an element."""


def over_all(over: Callable[[Index, Callable[[Index], Element]], Element], sizes: Sizes, body: Body) -> Element:
    """A reduction over one axis (`sum_over`, `max_over`, …) nested over several; over none, the element itself."""
    if not sizes:
        return body()
    return over(sizes[0], lambda j: over_all(over, sizes[1:], partial(body, j)))


def sum_all(sizes: Sizes, body: Body) -> Element:
    return over_all(sum_over, sizes, body)


def product_all(sizes: Sizes, body: Body) -> Element:
    return over_all(product_over, sizes, body)


def max_all(sizes: Sizes, body: Body) -> Element:
    return over_all(max_over, sizes, body)


def min_all(sizes: Sizes, body: Body) -> Element:
    return over_all(min_over, sizes, body)


def mean_all(sizes: Sizes, body: Body) -> Element:
    return sum_all(sizes, body) / product(sizes)


def reduced(
    x: Tensor,
    axes: Sequence[int] | None,
    keepdims: int,
    noop_with_empty_axes: int,
    value: Callable[[Sizes, Body], Element],
) -> Tensor:
    """`value` of the sizes of the reduced axes and the elements along them, at each place of the axes that stay.

    Without axes all are reduced, or none where `noop_with_empty_axes` says so: `value` then has one element.
    """
    given = tuple(normal_axis(axis, x.rank) for axis in (() if axes is None else axes))
    require(len(set(given)) == len(given), "an axis is reduced once")
    gone = sorted(given) if given or noop_with_empty_axes else list(range(x.rank))
    kept = [axis for axis in range(x.rank) if axis not in gone]
    sizes = tuple(x.shape[axis] for axis in gone)

    def at(*i: Index) -> Element:
        stays = dict(zip(kept, [i[axis] for axis in kept] if keepdims else i, strict=True))

        def element(*j: Index) -> Element:
            place = {**stays, **dict(zip(gone, j, strict=True))}
            return x[tuple(place[axis] for axis in range(x.rank))]

        return value(sizes, element)

    if keepdims:
        return tensor(tuple(1 if axis in gone else n for axis, n in enumerate(x.shape)), at)
    return tensor(tuple(x.shape[axis] for axis in kept), at)


def draw_reduction(rng: Any, *, of_nothing: bool = True) -> Draw:
    """Some axes, all, none; `of_nothing`: of empty axes too, where a reduction of nothing has a finite value."""
    x = shape(rng, 0, 4)
    arguments: dict[str, Any] = {"keepdims": int(rng.integers(2))} if rng.random() < 0.8 else {}
    if rng.random() < 0.3:
        arguments["noop_with_empty_axes"] = int(rng.integers(2))
    if rng.random() < 0.9:
        arguments["axes"] = draw_axes(rng, len(x))
    if 0 in x:  # onnxruntime counts axes of an empty tensor from the front only
        arguments |= {"axes": [a % len(x) for a in arguments["axes"]]} if "axes" in arguments else {}
    if not of_nothing:
        gone = [a % len(x) for a in arguments.get("axes", ())]
        all_gone = not gone and not arguments.get("noop_with_empty_axes")
        x = tuple(n or 1 if all_gone or k in gone else n for k, n in enumerate(x))
    return Draw((x,), arguments)


def draw_reduction_of_something(rng: Any) -> Draw:
    """For a reduction that has no finite value over empty axes: a maximum, a mean."""
    return draw_reduction(rng, of_nothing=False)
