"""Resize to the nearest pixel by whole factors, counted from the corner: each element is repeated along each axis."""

from typing import Any

from superopt.ops.draws import shape, size
from superopt.ops.formula import Static, Tensor, covered, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    x = shape(rng, 1, 4, empty=False)
    arguments = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return Draw((x,), {**arguments, "scales": [float(size(rng, 1, 4)) for _ in x]})


def whole(scale: Any) -> Index:
    """A factor as an index; models have them as floating point."""
    if not isinstance(scale, float):
        return scale
    covered(scale.is_integer(), "a scale that is no whole number")
    return int(scale)


@operator("Resize", since=11, elements="any", draw=draw)
def resize(
    x: Tensor,
    roi: Static = None,
    scales: Static = None,
    sizes: Static = None,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Tensor:
    covered(mode == "nearest", f"mode {mode}")
    covered(coordinate_transformation_mode == "asymmetric", f"coordinates by {coordinate_transformation_mode}")
    covered(nearest_mode == "floor", f"the nearest by {nearest_mode}")
    covered(bool(scales) and not sizes, "sizes in place of scales")
    factors = [whole(s) for s in scales or ()]
    require(len(factors) == x.rank, "one scale for each axis")
    for f in factors:
        covered(f >= 1, "an image made smaller")

    def at(axis: int, index: Index) -> Index:
        once = isinstance(factors[axis], int) and factors[axis] == 1
        return index if once else index // factors[axis]

    shape = tuple(n * f for n, f in zip(x.shape, factors, strict=True))
    return tensor(shape, lambda *i: x[tuple(at(k, j) for k, j in enumerate(i))])
