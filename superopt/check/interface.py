"""Whether two models can be called alike: names, order of results, element types."""

from __future__ import annotations

from collections.abc import Sequence

from superopt.runtime.port import Port


def interface_difference(
    inputs: tuple[Sequence[Port], Sequence[Port]],
    overridable: tuple[Sequence[Port], Sequence[Port]],
    outputs: tuple[Sequence[Port], Sequence[Port]],
) -> str:
    """Each pair is (original, candidate); empty when a caller of one can call the other."""
    found = _by_name("input", *inputs) or _by_name("overridable initializer", *overridable)
    if found:
        return found
    before, after = ([p.name for p in side] for side in outputs)
    if before != after:
        if sorted(before) == sorted(after):
            return f"the outputs are in another order: {', '.join(after)}, expected {', '.join(before)}"
        return f"the outputs are {_names(outputs[1])}, expected {_names(outputs[0])}"
    return _types("output", *outputs)


def _by_name(what: str, before: Sequence[Port], after: Sequence[Port]) -> str:
    had, has = {p.name for p in before}, {p.name for p in after}
    missing, extra = [p for p in before if p.name not in has], [p for p in after if p.name not in had]
    if missing:
        return f"the candidate has no {what} {_names(missing)}"
    if extra:
        return f"the candidate has another {what}: {_names(extra)}"
    return _types(what, sorted(before, key=lambda p: p.name), sorted(after, key=lambda p: p.name))


def _types(what: str, before: Sequence[Port], after: Sequence[Port]) -> str:
    for a, b in zip(before, after, strict=True):
        if a.dtype != b.dtype:
            return f"{what} {a.name} is {b.dtype}, expected {a.dtype}"
    return ""


def _names(ports: Sequence[Port]) -> str:
    return ", ".join(p.name for p in ports) or "none"
