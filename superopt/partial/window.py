"""Convolutions of a program, with their attributes as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from superopt.partial.program import Original, Shape
from superopt.rewrite.expression import evaluate
from superopt.rewrite.rule import Call, Step


@dataclass(frozen=True)
class Window:
    """y = Conv(x, k, b): where its windows lie."""

    target: str
    x: str
    k: str
    b: str | None
    sizes: Shape
    """Of the image: its axes after batch and channels."""
    kernel: Shape
    strides: Shape
    dilations: Shape
    before: Shape
    after: Shape
    group: str
    """As the program writes it: a number or a symbol."""
    written: str
    """Its attributes as the program spells them."""

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @property
    def extents(self) -> Shape:
        """How many elements of each axis a window spans."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))

    @property
    def outputs(self) -> Shape:
        rows = zip(self.sizes, self.before, self.after, self.extents, self.strides, strict=True)
        return tuple((n + b + a - e) // s + 1 for n, b, a, e, s in rows)

    @property
    def overhang(self) -> Shape:
        """How far the last window reads beyond the image, on each axis; negative where elements are left over."""
        rows = zip(self.outputs, self.strides, self.extents, self.before, self.sizes, strict=True)
        return tuple((m - 1) * s + e - b - n for m, s, e, b, n in rows)

    @property
    def alike(self) -> tuple[object, ...]:
        """Equal for convolutions that differ at most in their operands and in the size of the image."""
        return (self.kernel, self.strides, self.dilations, self.before, self.after, self.group, self.b is None)

    def changed(
        self,
        *,
        before: Sequence[int] | None = None,
        after: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
    ) -> Window:
        return replace(
            self,
            before=self.before if before is None else tuple(before),
            after=self.after if after is None else tuple(after),
            strides=self.strides if strides is None else tuple(strides),
            dilations=self.dilations if dilations is None else tuple(dilations),
        )

    def call(self, x: str, k: str | None = None, b: str | None = None, group: str | None = None) -> str:
        """The convolution of another image, as text; `b` is "_" for none."""
        bias = b or self.b
        operands = [x, k or self.k, *([bias] if bias is not None and bias != "_" else [])]
        return f"Conv({', '.join(operands)}, {self._attributes(group or self.group)})"

    def spelled(self, x: str, k: str, b: str) -> str:
        """The convolution as the program spells it, of other operands."""
        return f"Conv({', '.join(part for part in (x, k, b if self.b else '', self.written) if part)})"

    def _attributes(self, group: str) -> str:
        pads = [*self.before, *self.after]
        found = f"pads={pads}, strides={[*self.strides]}, dilations={[*self.dilations]}"
        return found if group == "1" else f"{found}, group={group}"


def windows(original: Original, shapes: Mapping[str, Shape]) -> dict[str, Window]:
    """The convolutions of a program by what they compute; those whose padding is not given in numbers are left out."""
    found: dict[str, Window] = {}
    for step in original.steps:
        window = _window(step, original, shapes)
        if window is not None:
            found[window.target] = window
    return found


def _window(step: Step, original: Original, shapes: Mapping[str, Shape]) -> Window | None:
    call = step.value
    if not isinstance(call, Call) or call.op != "Conv" or call.domain or call.bundle is not None:
        return None
    written = dict(call.arguments)
    names = [o for o in call.operands if isinstance(o, str)]
    if len(names) != len(call.operands) or "auto_pad" in written:
        return None
    x, k = shapes[names[0]], shapes[names[1]]
    rank = len(x) - 2

    def numbers(name: str, default: Shape) -> Shape:
        return tuple(evaluate(written[name], original.sizes)) if name in written else default

    pads = numbers("pads", (0,) * (2 * rank))
    return Window(
        step.targets[0], names[0], names[1], names[2] if len(names) > 2 else None,
        x[2:], k[2:], numbers("strides", (1,) * rank), numbers("dilations", (1,) * rank),
        pads[:rank], pads[rank:], str(written.get("group", "1")),
        ", ".join(f"{name}={value}" for name, value in call.arguments),
    )  # fmt: skip
