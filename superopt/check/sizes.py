"""Sizes for the dims a model leaves open.

Dims that are free together form a `Variable`. Which ones belong together cannot be known: one symbol often names
unrelated dims. So there are three readings of a model's inputs, tried in this order until the original runs:

    aligned   equal symbols are one size across inputs; within one input each occurrence is its own
    by name   equal symbols are one size everywhere
    apart     every dim is its own
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from superopt.errors import BadOption
from superopt.ir.types import Dim

Reading: TypeAlias = Literal["aligned", "by name", "apart"]
READINGS: tuple[Reading, ...] = ("aligned", "by name", "apart")
Role: TypeAlias = Literal["batch", "side", "length"]
Shape: TypeAlias = "tuple[int, ...]"
Sizing: TypeAlias = "tuple[int, ...]"

_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


@dataclass(frozen=True)
class Variable:
    name: str
    """The symbol, or `input.axis` where there is none."""
    places: tuple[tuple[str, int], ...]
    role: Role
    given: int | None


@dataclass(frozen=True)
class Layout:
    """The inputs' declared shapes and one reading of their free dims."""

    declared: Mapping[str, tuple[Dim, ...]]
    variables: tuple[Variable, ...]

    def shapes(self, sizing: Sizing) -> dict[str, Shape]:
        """Concrete shapes; a dim that is written as a sum or product of symbols is computed from them."""
        at = {p: size for v, size in zip(self.variables, sizing, strict=True) for p in v.places}
        named = self.named(sizing)
        shapes: dict[str, Shape] = {}
        for name, dims in self.declared.items():
            shapes[name] = tuple(_size(dim, at.get((name, i)), named) for i, dim in enumerate(dims))
        return shapes

    def named(self, sizing: Sizing) -> dict[str, int]:
        """Sizes by name, for the dims that are computed from others; of several under one name the smallest."""
        sizes: dict[str, int] = {}
        for variable, size in zip(self.variables, sizing, strict=True):
            sizes[variable.name] = min(size, sizes.get(variable.name, size))
        return sizes

    def text(self, sizing: Sizing) -> str:
        return ", ".join(f"{v.name}={size}" for v, size in zip(self.variables, sizing, strict=True))

    def elements(self, sizing: Sizing) -> int:
        return sum(math.prod(shape) for shape in self.shapes(sizing).values())


def layouts(
    declared: Mapping[str, tuple[Dim, ...]], dims: Mapping[str, int], shapes: Mapping[str, Shape]
) -> Iterator[Layout]:
    """The readings that differ and agree with the sizes given."""
    seen: set[frozenset[tuple[tuple[str, int], ...]]] = set()
    for reading in READINGS:
        found = _read(declared, dims, shapes, reading)
        partition = frozenset(v.places for v in found.variables) if found is not None else None
        if found is not None and partition is not None and partition not in seen:
            seen.add(partition)
            yield found


def check_given(
    declared: Mapping[str, tuple[Dim, ...] | None], dims: Mapping[str, int], shapes: Mapping[str, Shape]
) -> None:
    """Refuses sizes for what is not there or is fixed already."""
    symbols = {d for shape in declared.values() for d in shape or () if isinstance(d, str)}
    for name, size in dims.items():
        if name not in symbols:
            raise BadOption(f"--dim {name}={size}: no input has a dim of that name; {_names('dims', symbols)}")
        if size < 0:
            raise BadOption(f"--dim {name}={size}: expected a size of 0 or more")
    for name, shape in shapes.items():
        text = f"--shape {name}={','.join(map(str, shape))}"
        if name not in declared:
            raise BadOption(f"{text}: no such input; {_names('inputs', declared)}")
        expected = declared[name]
        if any(size < 0 for size in shape):
            raise BadOption(f"{text}: expected sizes of 0 or more")
        if expected is None:
            continue
        if len(expected) != len(shape):
            raise BadOption(f"{text}: the input has {len(expected)} dims, found {len(shape)}")
        for axis, (dim, size) in enumerate(zip(expected, shape, strict=True)):
            if isinstance(dim, int) and dim != size:
                raise BadOption(f"{text}: dim {axis} of the input is fixed at {dim}, found {size}")


def _names(what: str, names: Mapping[str, object] | set[str]) -> str:
    return f"the {what} are {', '.join(sorted(names))}" if names else f"it has no {what}"


def _read(
    declared: Mapping[str, tuple[Dim, ...]], dims: Mapping[str, int], shapes: Mapping[str, Shape], reading: Reading
) -> Layout | None:
    plain = {d for shape in declared.values() for d in shape if isinstance(d, str) and _terms(d) is None}
    groups: dict[tuple[object, ...], list[tuple[str, int]]] = {}
    names: dict[tuple[object, ...], str] = {}
    for name, shape in declared.items():
        for axis, dim in enumerate(shape):
            if isinstance(dim, int) or (dim is not None and _computed(dim, plain)):
                continue
            key: tuple[object, ...] = (name, axis)
            if dim is not None and reading == "by name":
                key = (dim,)
            elif dim is not None and reading == "aligned":
                key = (dim, shape[:axis].count(dim))
            groups.setdefault(key, []).append((name, axis))
            names[key] = dim or f"{name}.{axis}"
    variables: list[Variable] = []
    for key, places in groups.items():
        sizes = {shapes[name][axis] for name, axis in places if name in shapes}
        sizes |= {dims[names[key]]} if names[key] in dims and not sizes else set()
        if len(sizes) > 1:
            return None
        variables.append(Variable(names[key], tuple(places), _role(names[key], places, declared), *(sizes or {None})))
    return Layout(declared, tuple(variables))


def _role(name: str, places: list[tuple[str, int]], declared: Mapping[str, tuple[Dim, ...]]) -> Role:
    if "batch" in name.lower():
        return "batch"
    if any(word in name.lower() for word in ("seq", "len", "past")):
        return "length"
    if any(axis == 0 and len(declared[input_]) > 1 for input_, axis in places):
        return "batch"
    return "side" if any(len(declared[input_]) > 3 for input_, _ in places) else "length"


def _computed(symbol: str, plain: set[str]) -> bool:
    terms = _terms(symbol)
    return terms is not None and terms <= plain


def _terms(symbol: str) -> set[str] | None:
    """The names in a dim such as `past + 1`; None for a plain one."""
    tree = _parsed(symbol)
    if not isinstance(tree, ast.BinOp):
        return None
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _parsed(symbol: str) -> ast.expr | None:
    if len(symbol) > 200:
        return None
    try:
        tree = ast.parse(symbol, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    allowed = (ast.BinOp, ast.Name, ast.Load, ast.Constant, *_OPERATORS)
    return tree if all(isinstance(node, allowed) for node in ast.walk(tree)) else None


def _size(dim: Dim, chosen: int | None, named: Mapping[str, int]) -> int:
    if chosen is not None:
        return chosen
    if isinstance(dim, int):
        return dim
    tree = _parsed(dim or "")
    return max(0, _evaluated(tree, named)) if tree is not None else 1


def _evaluated(tree: ast.expr, named: Mapping[str, int]) -> int:
    if isinstance(tree, ast.BinOp):
        left, right = _evaluated(tree.left, named), _evaluated(tree.right, named)
        divides = isinstance(tree.op, ast.FloorDiv)
        return _OPERATORS[type(tree.op)](left, max(right, 1) if divides else right)
    if isinstance(tree, ast.Name):
        return named.get(tree.id, 1)
    return tree.value if isinstance(tree, ast.Constant) and isinstance(tree.value, int) else 1
