"""Chains in a program: convolutions one after the other, with functions of single elements between them."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from superopt.ops.registry import Registry
from superopt.partial.local import element_functions
from superopt.partial.program import Original, Shape, names_read
from superopt.partial.window import Window, windows
from superopt.rewrite.rule import Call, Step


@dataclass(frozen=True)
class Chain:
    """From an input through its convolutions; after each one the functions that follow it."""

    source: str
    layers: tuple[Window, ...]
    functions: tuple[tuple[str, ...], ...]
    """Calls as text, with {} for the operand."""
    target: str

    @property
    def inputs(self) -> tuple[str, ...]:
        """What each convolution reads."""
        return tuple(w.x for w in self.layers)

    @property
    def alike(self) -> tuple[object, ...]:
        """Equal for chains that do the same with the same weights, whatever the size of their image."""
        return tuple((w.alike, w.k, w.b) for w in self.layers) + self.functions


def chains(original: Original, shapes: Mapping[str, Shape], registry: Registry) -> list[Chain]:
    """One chain for each result; none at all where a result is anything else."""
    found: list[Chain] = []
    convolutions = windows(original, shapes)
    steps = {t: step for step in original.steps for t in step.targets}
    used: set[str] = set()
    for result in original.results:
        chain = _chain(result, steps, convolutions, used, element_functions(registry))
        if chain is None or not _keeps_sizes(chain):
            return []
        found.append(chain)
    return found if used == set(steps) else []


def _chain(
    result: str,
    steps: Mapping[str, Step],
    convolutions: Mapping[str, Window],
    used: set[str],
    between: Container[str],
) -> Chain | None:
    layers: list[Window] = []
    functions: list[tuple[str, ...]] = []
    after: list[str] = []
    name = result
    while name in steps:
        if name in used:
            return None
        used.add(name)
        window = convolutions.get(name)
        call = steps[name].value
        if window is not None:
            layers.append(window)
            functions.append(tuple(reversed(after)))
            after, name = [], window.x
        elif isinstance(call, Call) and call.op in between and not call.domain and names_read(call) == [*call.operands]:
            parts = ["{}", *(f"{n}={v}" for n, v in call.arguments)]
            after.append(f"{call.op}({', '.join(parts)})")
            name = str(call.operands[0])
        else:
            return None
    if not layers or after:
        return None
    return Chain(name, tuple(reversed(layers)), tuple(reversed(functions)), result)


def _keeps_sizes(chain: Chain) -> bool:
    """One convolution, or several that all give as many elements as they take."""
    return len(chain.layers) == 1 or all(w.outputs == w.sizes and set(w.strides) == {1} for w in chain.layers)
