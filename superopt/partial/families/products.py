"""Matrix products: batches stacked into rows, rows into batches, and products of unequal sizes filled up to a batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from superopt.ops.registry import Registry
from superopt.partial.program import Mutant, Original, Shape
from superopt.partial.writing import Writer, listing, product
from superopt.rewrite.rule import Call, Step

ROWS = (2, 4)
"""Parts that rows are cut into."""


def products(original: Original, shapes: Mapping[str, Shape], _: Registry) -> Iterator[Mutant]:
    found = [pair for step in original.steps if (pair := _operands(step)) is not None]
    inputs = {g.name for g in original.given}
    if len(found) != len(original.steps) or any(not {a, b} <= inputs for _, a, b in found):
        return
    if len(found) == 1:
        yield from _one(original, shapes, *found[0])
    elif all(len(shapes[a]) == len(shapes[b]) == 2 for _, a, b in found):
        yield from _several(original, shapes, found)


def _operands(step: Step) -> tuple[str, str, str] | None:
    """y, a and b of y = MatMul(a, b)."""
    call = step.value
    if not isinstance(call, Call) or call.op != "MatMul" or call.domain or len(call.operands) != 2:
        return None
    a, b = call.operands
    return (step.targets[0], a, b) if isinstance(a, str) and isinstance(b, str) else None


def _one(original: Original, shapes: Mapping[str, Shape], y: str, a: str, b: str) -> Iterator[Mutant]:
    left, right = [str(d) for d in original.dims(a)], [str(d) for d in original.dims(b)]
    if len(right) != 2 or len(left) < 2:
        return
    writer = Writer(original.names)
    if len(left) > 2:
        rows = writer.put(f"Reshape({a}, shape={listing([product(*left[:-1]), left[-1]])})")
        made = writer.put(f"MatMul({rows}, {b})")
        writer.put(f"Reshape({made}, shape={listing([*left[:-1], right[1]])})", y)
        yield Mutant("products", original, original.rule(writer.lines, "A batch of matrices stacked into rows."))
        return
    original = original.pinned([left[0]])
    for parts in ROWS:
        if shapes[a][0] % parts == 0:
            writer = Writer(original.names)
            batch = writer.put(f"Reshape({a}, shape={listing([parts, shapes[a][0] // parts, left[1]])})")
            made = writer.put(f"MatMul({batch}, {b})")
            writer.put(f"Reshape({made}, shape={listing([shapes[a][0], right[1]])})", y)
            yield Mutant("products", original, original.rule(writer.lines, f"Rows as a batch of {parts} matrices."))


def _several(original: Original, shapes: Mapping[str, Shape], found: list[tuple[str, str, str]]) -> Iterator[Mutant]:
    if len({b for _, _, b in found}) == 1:
        writer = Writer(original.names)
        made = writer.put(f"MatMul({writer.joined([a for _, a, _ in found], 0)}, {found[0][2]})")
        counts = listing(original.dims(a)[0] for _, a, _ in found)
        writer.lines.append(f"{', '.join(y for y, _, _ in found)} = Split({made}, split={counts}, axis=0)")
        yield Mutant("products", original, original.rule(writer.lines, "Products with one matrix, rows stacked."))
        return
    yield _filled(original.pinned(original.sizes), shapes, found)


def _filled(original: Original, shapes: Mapping[str, Shape], found: list[tuple[str, str, str]]) -> Mutant:
    """Unequal products side by side in one batch, zeros where a matrix is smaller than the largest."""
    writer = Writer(original.names)
    rows, inner = (max(shapes[a][k] for _, a, _ in found) for k in (0, 1))
    columns = max(shapes[b][1] for _, _, b in found)
    left = [_slab(writer, a, shapes[a], (rows, inner)) for _, a, _ in found]
    right = [_slab(writer, b, shapes[b], (inner, columns)) for _, _, b in found]
    made = writer.put(f"MatMul({writer.joined(left, 0)}, {writer.joined(right, 0)})")
    parts = writer.split(made, [1] * len(found), 0)
    for (y, a, b), part in zip(found, parts, strict=True):
        m, n = shapes[a][0], shapes[b][1]
        cut = writer.cut(part, (None, None if m == rows else (0, m), None if n == columns else (0, n)))
        writer.put(f"Reshape({cut}, shape={[m, n]})", y)
    return Mutant("products", original, original.rule(writer.lines, "Unequal products filled up to one batch."))


def _slab(writer: Writer, a: str, shape: Shape, full: Shape) -> str:
    filled = writer.padded(a, [0, 0], [full[0] - shape[0], full[1] - shape[1]], first=0)
    return writer.put(f"Reshape({filled}, shape={[1, *full]})")
