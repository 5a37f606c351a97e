"""ConvTranspose without scattering: the results between two inputs as channels of their own, then laid out in space.

Element r of the kernel, r = stride·u + v, adds to block i + u of the result, at v. So all that falls on v is a plain
convolution over the u, and a kernel no longer than the stride is a product.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product as combinations
from math import prod

from superopt.ops.registry import Registry
from superopt.partial.program import Mutant, Original, Shape
from superopt.partial.writing import Writer, listing, product
from superopt.rewrite.expression import evaluate
from superopt.rewrite.rule import Call

MOST_SHIFTS = 9


@dataclass(frozen=True)
class Spread:
    """y = ConvTranspose(x, k, b) of one group."""

    original: Original
    target: str
    x: str
    k: str
    b: str | None
    sizes: Shape
    kernel: Shape
    strides: Shape
    before: Shape
    outputs: Shape

    @property
    def reach(self) -> Shape:
        """Blocks of the result that one input adds to."""
        return tuple(-(-k // s) for k, s in zip(self.kernel, self.strides, strict=True))

    @property
    def blocks(self) -> Shape:
        """Blocks of the result that are needed."""
        rows = zip(self.sizes, self.reach, self.before, self.outputs, self.strides, strict=True)
        return tuple(max(n + q - 1, -(-(b + m) // s)) for n, q, b, m, s in rows)


def transposed(original: Original, shapes: Mapping[str, Shape], _: Registry) -> Iterator[Mutant]:
    found = _spread(original, shapes)
    if found is None:
        return
    lines = _written(found, as_products=False)
    yield Mutant("transposed", original, original.rule(lines, "ConvTranspose as a convolution, laid out in space."))
    if 1 < prod(found.reach) <= MOST_SHIFTS:
        lines = _written(found, as_products=True)
        yield Mutant("transposed", original, original.rule(lines, "ConvTranspose as one product, shifted and added."))


def _spread(original: Original, shapes: Mapping[str, Shape]) -> Spread | None:
    if len(original.steps) != 1:
        return None
    (step,) = original.steps
    call = step.value
    if not isinstance(call, Call) or call.op != "ConvTranspose" or call.domain or call.bundle is not None:
        return None
    names = [o for o in call.operands if isinstance(o, str)]
    written = {name: evaluate(value, original.sizes) for name, value in call.arguments}
    if len(names) != len(call.operands) or not written.keys() <= {"pads", "strides", "dilations", "output_padding"}:
        return None
    x, k = shapes[names[0]], shapes[names[1]]
    rank = len(x) - 2
    if set(written.get("dilations", [1])) != {1}:
        return None
    pads = tuple(written.get("pads", (0,) * (2 * rank)))
    strides = tuple(written.get("strides", (1,) * rank))
    return Spread(
        original, step.targets[0], names[0], names[1], names[2] if len(names) > 2 else None,
        x[2:], k[2:], strides, pads[:rank], shapes[step.targets[0]][2:],
    )  # fmt: skip


def _written(found: Spread, *, as_products: bool) -> list[str]:
    writer, rank = Writer(found.original.names), len(found.sizes)
    batch = str(found.original.dims(found.x)[0])
    channels, filters = (str(d) for d in found.original.dims(found.k)[:2])
    inner = product(filters, *found.strides)
    k = _kernel(writer, found, channels, filters, flipped=not as_products)
    extra = [m - n - q + 1 for m, n, q in zip(found.blocks, found.sizes, found.reach, strict=True)]
    if as_products:
        y = _shifted(writer, found, k, channels, inner, extra)
    else:
        k = writer.put(f"Reshape({k}, shape={listing([inner, channels, *found.reach])})")
        pads = [*(q - 1 for q in found.reach), *(q - 1 + e for q, e in zip(found.reach, extra, strict=True))]
        y = writer.put(f"Conv({found.x}, {k}, pads={pads})")
    y = writer.put(f"Reshape({y}, shape={listing([batch, filters, *found.strides, *found.blocks])})")
    order = [0, 1, *(axis for k in range(rank) for axis in (2 + rank + k, 2 + k))]
    y = writer.put(f"Transpose({y}, perm={order})")
    full = [m * s for m, s in zip(found.blocks, found.strides, strict=True)]
    y = writer.put(f"Reshape({y}, shape={listing([batch, filters, *full])})")
    ranges = [(b, b + m) for b, m in zip(found.before, found.outputs, strict=True)]
    kept = [None if r == (0, n) else r for r, n in zip(ranges, full, strict=True)]
    y = writer.cut(y, (None, None, *kept))
    bias = "" if found.b is None else writer.put(f"Reshape({found.b}, shape={listing([1, filters, *[1] * rank])})")
    writer.put(f"Add({y}, {bias})" if bias else y, found.target)
    return writer.lines


def _kernel(writer: Writer, found: Spread, channels: str, filters: str, *, flipped: bool) -> str:
    """The filters with their elements by place in a block, for convolutions [filters, v…, channels, u…] with the u
    from last to first, for products [u…, filters, v…, channels]."""
    rank = len(found.sizes)
    rows = list(zip(found.kernel, found.strides, found.reach, strict=True))
    k = writer.padded(found.k, [0] * rank, [q * s - n for n, s, q in rows])
    apart = [part for _, s, q in rows for part in (q, s)]
    k = writer.put(f"Reshape({k}, shape={listing([channels, filters, *apart])})")
    blocks, within = [2 + 2 * a for a in range(rank)], [3 + 2 * a for a in range(rank)]
    turning = [a for a, (_, _, q) in zip(blocks, rows, strict=True) if q > 1]
    if flipped and turning:
        last, past, back = ([value] * len(turning) for value in (-1, -(2**31 - 1), -1))
        k = writer.put(f"Slice({k}, starts={last}, ends={past}, axes={turning}, steps={back})")
    order = [1, *within, 0, *blocks] if flipped else [*blocks, 1, *within, 0]
    return writer.put(f"Transpose({k}, perm={order})")


def _shifted(writer: Writer, found: Spread, k: str, channels: str, inner: str, extra: list[int]) -> str:
    ones = [1] * len(found.sizes)
    count = prod(found.reach)
    k = writer.put(f"Reshape({k}, shape={listing([product(count, inner), channels, *ones])})")
    made = writer.put(f"Conv({found.x}, {k})")
    terms: list[str] = []
    places = combinations(*(range(q) for q in found.reach))
    for part, place in zip(writer.split(made, [inner] * count, 1), places, strict=True):
        behind = [q - 1 - u + e for q, u, e in zip(found.reach, place, extra, strict=True)]
        terms.append(writer.padded(part, place, behind))
    return writer.total(terms)
