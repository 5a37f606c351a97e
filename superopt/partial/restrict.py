"""A program on a part of its result: every operand cut to what that part reads, its halo included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from superopt.ops.registry import Registry
from superopt.partial.local import is_local
from superopt.partial.program import Original, Shape
from superopt.partial.window import Window, windows
from superopt.partial.writing import Ranges, Writer
from superopt.rewrite.expression import evaluate
from superopt.rewrite.program import find
from superopt.rewrite.rule import Call, Operand, Step


class Restriction:
    """Writes steps that compute parts of a program's values; what was written once is not written again."""

    def __init__(self, original: Original, shapes: Mapping[str, Shape], registry: Registry, writer: Writer) -> None:
        self.original, self.shapes, self.registry, self.writer = original, shapes, registry, writer
        self.steps = {t: step for step in original.steps for t in step.targets}
        self.windows = windows(original, shapes)
        self._written: dict[tuple[str, Ranges], str] = {}

    def part(self, name: str, ranges: Ranges) -> str:
        """The name under which this part of a value is computed."""
        ranges = tuple(None if r is None or r == (0, n) else r for r, n in zip(ranges, self.shapes[name], strict=True))
        key = (name, ranges)
        if key not in self._written:
            self._written[key] = self._part(name, ranges)
        return self._written[key]

    def _part(self, name: str, ranges: Ranges) -> str:
        step = self.steps.get(name)
        if step is None:
            return self.writer.cut(name, ranges)
        if isinstance(step.value, str):
            return self.part(step.value, ranges)
        if name in self.windows:
            found = self._convolution(self.windows[name], ranges)
        elif step.value.op == "MatMul":
            found = self._product(step.value, ranges)
        else:
            found = self._by_element(step, ranges)
        return found if found is not None else self._cut_whole(step, ranges)

    def _cut_whole(self, step: Step, ranges: Ranges) -> str:
        """Computed in full, then cut: always right."""
        assert isinstance(step.value, Call)
        operands = [self._whole(o) for o in step.value.operands]
        made = self.writer.put(_text(step.value, operands))
        return self.writer.cut(made, ranges)

    def _whole(self, operand: Operand) -> str:
        if isinstance(operand, str) and operand in self.shapes:
            return self.part(operand, (None,) * len(self.shapes[operand]))
        return "_" if operand is None else str(operand)

    def _convolution(self, window: Window, ranges: Ranges) -> str | None:
        batch, channels, *places = ranges
        if channels is not None and window.group != "1":
            return None
        reads: list[tuple[int, int] | None] = []
        before, after = list(window.before), list(window.after)
        for axis, part in enumerate(places):
            if part is None:
                reads.append(None)
                continue
            first = part[0] * window.strides[axis] - window.before[axis]
            past = (part[1] - 1) * window.strides[axis] + window.extents[axis] - window.before[axis]
            low, high = max(first, 0), min(past, window.sizes[axis])
            if low >= high:
                return None  # this part reads nothing but padding
            reads.append((low, high))
            before[axis], after[axis] = low - first, past - high
        x = self.part(window.x, (batch, None, *reads))
        k = self.part(window.k, (channels, *(None,) * (window.rank + 1)))
        b = None if window.b is None else self.part(window.b, (channels,))
        return self.writer.put(window.changed(before=before, after=after).call(x, k, b))

    def _product(self, call: Call, ranges: Ranges) -> str | None:
        a, b = call.operands
        if not isinstance(a, str) or not isinstance(b, str) or min(len(self.shapes[a]), len(self.shapes[b])) < 2:
            return None
        *outer, rows, columns = ranges
        left = self.part(a, (*_aligned(outer, self.shapes[a][:-2]), rows, None))
        right = self.part(b, (*_aligned(outer, self.shapes[b][:-2]), None, columns))
        return self.writer.put(f"MatMul({left}, {right})")

    def _by_element(self, step: Step, ranges: Ranges) -> str | None:
        """Functions of elements at one place: their operands at the same places."""
        call = step.value
        assert isinstance(call, Call)
        tensors = [o for o in call.operands if isinstance(o, str) and o in self.shapes]
        if len(tensors) != len(call.operands) or not tensors or len(step.targets) > 1:
            return None
        arguments = {name: evaluate(value, self.original.sizes) for name, value in call.arguments}
        if not is_local(find(call, self.registry), [self.shapes[o] for o in tensors], arguments):
            return None
        parts = [self.part(o, _aligned(ranges, self.shapes[o])) for o in tensors]
        return self.writer.put(_text(call, parts))


def _aligned(ranges: Sequence[tuple[int, int] | None], shape: Shape) -> Ranges:
    """The ranges of an operand that broadcasts: counted from the last axis, all of an axis of size 1."""
    kept = ranges[len(ranges) - len(shape) :]
    return tuple(None if n == 1 else r for r, n in zip(kept, shape, strict=True))


def _text(call: Call, operands: Sequence[str]) -> str:
    parts = [*operands, *(f"{name}={value}" for name, value in call.arguments)]
    name = f"{call.domain}::{call.op}" if call.domain else call.op
    return f"{name}({', '.join(parts)})"
