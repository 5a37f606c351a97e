"""The operators, by name: what the decorator on a definition records."""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType
from typing import Any, Literal, TypeAlias

from superopt.ops.formula import NotCovered, Static, Tensor
from superopt.ops.symbols import Symbols
from superopt.runtime.deployment import Target

Elements = Literal["real", "any"]
"""`any`: the formula holds in any ring, so for integers that wrap around too; `real`: for floating point only."""


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: Literal["tensor", "static", "attribute"]
    variadic: bool = False
    required: bool = True
    default: Any = None


Values: TypeAlias = Callable[[Any, tuple[int, ...]], Any]
"""From a numpy generator and a shape to an operand's values."""


@dataclass(frozen=True)
class Draw:
    """Operands and attributes that a test may give an operator."""

    shapes: tuple[tuple[int, ...] | None, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    outputs: int = 1
    values: Values | tuple[Values | None, ...] | None = None
    """How operand values are drawn, where ordinary numbers will not do: for all operands, or for each."""
    known: Mapping[int, float] = field(default_factory=dict[int, float])
    """Operands that the formula gets as a number: position and value."""
    types: Mapping[str, str] = field(default_factory=dict[str, str])
    """Element types of operands, by parameter, for the formulas that ask for them."""

    def values_of(self, operand: int) -> Values | None:
        return self.values[operand] if isinstance(self.values, tuple) else self.values


Unknown: TypeAlias = Callable[[Symbols, tuple[int, ...]], Iterable[Mapping[str, Any]]]
"""From symbols and the operands' ranks to arguments that stand for all legal ones: one mapping for each way to fill
in what is no number (auto_pad, a mode), with symbols for all that is."""


@dataclass(frozen=True)
class Operator:
    name: str
    domain: str
    since: int
    until: int | None
    elements: Elements
    formula: Callable[..., Tensor | tuple[Tensor, ...]]
    draw: Callable[[Any], Draw] | None
    parameters: tuple[Parameter, ...]
    unknown: Unknown | None
    commutative: bool
    runs_on: Target
    digest: str
    doc: str

    @property
    def kind(self) -> str:
        return f"{self.domain}::{self.name}" if self.domain else self.name

    @cached_property
    def tensors(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.kind == "tensor")

    @cached_property
    def _asked(self) -> frozenset[str]:
        return frozenset(inspect.signature(self.formula).parameters)

    @cached_property
    def _by_name(self) -> dict[str, Parameter]:
        return {p.name: p for p in self.parameters}

    def parameter(self, name: str) -> Parameter | None:
        return self._by_name.get(name)

    def apply(
        self,
        inputs: list[Tensor | None],
        arguments: Mapping[str, Any],
        outputs: int = 1,
        types: Mapping[str, str] | None = None,
    ) -> tuple[Tensor, ...]:
        """The results for these operands; `arguments` are attributes and static inputs by name.

        `types` names the element types of operands that are no ordinary numbers (a boolean mask), by parameter.
        """
        keywords = dict(arguments)
        if "outputs" in self._asked:
            keywords["outputs"] = outputs
        if "types" in self._asked:
            keywords["types"] = types or {}
        for name in arguments:
            if self.parameter(name) is None:
                raise NotCovered(f"{self.kind} has no argument {name!r}")
        if any(p.variadic for p in self.parameters):
            results = self.formula(*inputs, **keywords)
        else:
            if len(inputs) > len(self.tensors):
                raise NotCovered(f"{self.kind} takes {len(self.tensors)} tensors, found {len(inputs)}")
            by_name = {p.name: x for p, x in zip(self.tensors, inputs, strict=False)}
            results = self.formula(**by_name, **keywords)
        return results if isinstance(results, tuple) else (results,)


class Registry:
    """Operators by domain and name; several versions of one operator cover different opsets."""

    def __init__(self) -> None:
        self._operators: dict[tuple[str, str], list[Operator]] = {}
        """The newest first."""

    def add(self, operator: Operator) -> None:
        versions = self._operators.setdefault((operator.domain, operator.name), [])
        versions.append(operator)
        versions.sort(key=lambda o: -o.since)

    def __iter__(self) -> Iterator[Operator]:
        for key in sorted(self._operators):
            yield from sorted(self._operators[key], key=lambda o: o.since)

    def find(self, name: str, domain: str = "", opset: int | None = None) -> Operator | None:
        """The definition that covers an opset; the newest where none is named."""
        for operator in self._operators.get((domain, name), ()):
            if opset is None or (operator.since <= opset and (operator.until is None or opset <= operator.until)):
                return operator
        return None


REGISTRY = Registry()


def operator(
    name: str,
    *,
    since: int,
    draw: Callable[[Any], Draw] | None = None,
    unknown: Unknown | None = None,
    until: int | None = None,
    domain: str = "",
    elements: Elements = "real",
    commutative: bool = False,
    runs_on: Target = "cpu",
    registry: Registry = REGISTRY,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a definition.

    `draw` makes random legal operands from a numpy generator, for the laws' tests; `unknown` makes symbolic attributes,
    for rules that leave them open; `runs_on="cuda"` says that onnxruntime has no kernel for the CPU.
    """

    def register(formula: Callable[..., Any]) -> Callable[..., Any]:
        registry.add(
            Operator(
                name, domain, since, until, elements, formula, draw, _parameters(formula), unknown, commutative,
                runs_on, _digest(formula), inspect.getdoc(formula) or inspect.getdoc(inspect.getmodule(formula)) or "",
            )
        )  # fmt: skip
        return formula

    return register


def _parameters(formula: Callable[..., Any]) -> tuple[Parameter, ...]:
    found: list[Parameter] = []
    for name, p in inspect.signature(formula).parameters.items():
        if name in ("outputs", "types"):
            continue
        default = None if p.default is p.empty else p.default
        if p.kind is p.KEYWORD_ONLY:
            found.append(Parameter(name, "attribute", required=p.default is p.empty, default=default))
        elif p.annotation in (Static, "Static"):
            found.append(Parameter(name, "static", required=p.default is p.empty, default=default))
        else:
            variadic = p.kind is p.VAR_POSITIONAL
            found.append(Parameter(name, "tensor", variadic, p.default is p.empty and not variadic))
    return tuple(found)


def _digest(formula: Callable[..., Any]) -> str:
    """Over every file that the definition's meaning is in: its own, the definitions and helpers it imports, and the
    words that definitions are written in."""
    sources: dict[str, str] = {}
    waiting: list[ModuleType | None] = [inspect.getmodule(formula), sys.modules[Tensor.__module__]]
    while waiting:
        module = waiting.pop()
        if module is None or module.__name__ in sources:
            continue
        sources[module.__name__] = source = inspect.getsource(module)
        package = re.escape(module.__name__.rpartition(".")[0])
        for name in re.findall(rf"^from ({package}\.\w+) import", source, re.MULTILINE):
            if not name.startswith("superopt."):
                waiting.append(sys.modules.get(name))
    together = "\n".join(sources[name] for name in sorted(sources))
    return hashlib.sha256(together.encode()).hexdigest()[:16]
