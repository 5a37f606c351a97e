"""A convolution as a sum: of convolutions with parts of its kernel, or of shifted products, one for each element.

Proved in two steps: first the sum over parts of the kernel, each with zeros around it; then each part for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product as combinations
from math import prod

from superopt.ops.registry import Registry
from superopt.partial.derivation import Use
from superopt.partial.families.single import Single, single
from superopt.partial.program import Mutant, Original, Shape, stated
from superopt.partial.writing import Writer, listing, product

PARTS = (3, 2)
"""Elements of a kernel's axis in one part."""
MOST_PARTS = 9
MOST_PRODUCTS = 25

Part = tuple[tuple[int, int], ...]
"""A range of each axis of the kernel."""


def shifted(original: Original, shapes: Mapping[str, Shape], _: Registry) -> Iterator[Mutant]:
    found = single(original, shapes)
    if found is None:
        return
    w = found.window
    for size in PARTS:
        if 1 < prod(-(-k // size) for k in w.kernel) <= MOST_PARTS:
            parts = _parts(found, size)
            yield _mutant(found, parts, as_product=False, doc=f"A kernel in {len(parts)} parts.")
    if 1 < prod(w.kernel) <= MOST_PRODUCTS and set(w.strides) == {1} and w.group == "1":
        doc = f"One product for all {prod(w.kernel)} elements of the kernel, shifted and added."
        yield _mutant(found, _parts(found, 1), as_product=True, doc=doc)


def _parts(found: Single, size: int) -> list[Part]:
    axes = [[(a, min(a + size, k)) for a in range(0, k, size)] for k in found.window.kernel]
    return list(combinations(*axes))


def _mutant(found: Single, parts: list[Part], *, as_product: bool, doc: str) -> Mutant:
    """Parts that meet nothing but padding are left out; what follows from that is proved at once."""
    met = [part for part in parts if _meets(found, part)]
    writer = Writer(found.original.names)
    if as_product:
        values = _products(writer, found, parts)
        terms = [_placed(writer, found, part, values[part]) for part in met]
        if found.window.b is not None:
            terms.append(_bias(writer, found))
    else:
        terms = [_alone(writer, found, part, is_first=part is met[0]) for part in met]
    writer.total(terms, found.window.target)
    uses = tuple(_uses(found, parts, as_product=as_product)) if met == parts else ()
    return Mutant("shifted", found.original, found.original.rule(writer.lines, doc), uses)


def _frame(found: Single, part: Part) -> list[tuple[int, int]]:
    """What the windows of a part read of each axis, padding included."""
    w = found.window
    rows = zip(part, w.outputs, w.strides, w.dilations, w.before, strict=True)
    return [(a * d - p, a * d - p + (m - 1) * s + (b - a - 1) * d + 1) for (a, b), m, s, d, p in rows]


def _meets(found: Single, part: Part) -> bool:
    return all(max(a, 0) < min(b, n) for (a, b), n in zip(_frame(found, part), found.window.sizes, strict=True))


def _filters(writer: Writer, found: Single, part: Part) -> str:
    w = found.window
    return writer.cut(w.k, (None, None, *(None if c == (0, n) else c for c, n in zip(part, w.kernel, strict=True))))


def _alone(writer: Writer, found: Single, part: Part, *, is_first: bool) -> str:
    """The convolution with a part of the kernel, of what that part reads."""
    w = found.window
    k, frame = _filters(writer, found, part), _frame(found, part)
    ranges = [(max(a, 0), min(b, n)) for (a, b), n in zip(frame, w.sizes, strict=True)]
    x = writer.cut(w.x, (None, None, *(None if r == (0, n) else r for r, n in zip(ranges, w.sizes, strict=True))))
    before = [r[0] - f[0] for r, f in zip(ranges, frame, strict=True)]
    after = [f[1] - r[1] for r, f in zip(ranges, frame, strict=True)]
    return writer.put(w.changed(before=before, after=after).call(x, k, w.b if is_first else "_"))


def _widened(writer: Writer, found: Single, part: Part, *, biased: bool) -> str:
    """The convolution with a part of the kernel and zeros in place of all others."""
    w = found.window
    behind = [n - b for (_, b), n in zip(part, w.kernel, strict=True)]
    k = writer.padded(_filters(writer, found, part), [a for a, _ in part], behind)
    return writer.put(w.call(w.x, k, w.b if biased else "_"))


def _products(writer: Writer, found: Single, parts: list[Part]) -> dict[Part, str]:
    """The products with single elements of the kernel, all at once."""
    w, ones = found.window, [1] * found.window.rank
    k = writer.put(f"Transpose({w.k}, perm={[*range(2, w.rank + 2), 0, 1]})")
    k = writer.put(f"Reshape({k}, shape={listing([product(len(parts), found.filters), found.channels, *ones])})")
    made = writer.put(f"Conv({w.x}, {k})")
    return dict(zip(parts, writer.split(made, [found.filters] * len(parts), 1), strict=True))


def _placed(writer: Writer, found: Single, part: Part, value: str) -> str:
    w = found.window
    made = writer.moved(value, [a for a, _ in _frame(found, part)], w.outputs, w.sizes)
    assert made is not None
    return made


def _bias(writer: Writer, found: Single) -> str:
    return writer.put(f"Reshape({found.window.b}, shape={listing([1, found.filters, *[1] * found.window.rank])})")


def _uses(found: Single, parts: list[Part], *, as_product: bool) -> Iterator[Use]:
    w, original = found.window, found.original
    itself = {g.name: g.name for g in original.given}

    right = Writer(original.names)
    terms = [_widened(right, found, part, biased=part is parts[0] and not as_product) for part in parts]
    right.total([*terms, _bias(right, found)] if as_product and w.b is not None else terms, w.target)
    yield Use(stated(original.given, original.steps, right.lines), itself)
    for part in parts:
        is_first = part is parts[0] and not as_product
        left = Writer(original.names)
        left.put(_widened(left, found, part, biased=is_first), "z")
        right = Writer(left.taken)
        if as_product:
            value = right.put(f"Conv({w.x}, {_filters(right, found, part)})")
            right.put(_placed(right, found, part, value), "z")
        else:
            right.put(_alone(right, found, part, is_first=is_first), "z")
        yield Use(stated(original.given, left.lines, right.lines), itself)
    if as_product:
        left = Writer(original.names)
        for n, part in enumerate(parts):
            left.put(f"Conv({w.x}, {_filters(left, found, part)})", f"z{n}")
        right = Writer(left.taken)
        for n, value in enumerate(_products(right, found, parts).values()):
            right.put(value, f"z{n}")
        yield Use(stated(original.given, left.lines, right.lines), itself)
