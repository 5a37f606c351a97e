"""Blocks of axes put into a rule: `[m, k]` becomes `[...b, m, k]`, and attributes count axes accordingly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, combinations

from superopt.generate.trial import NOT_A_RULE, Shapes, find_shapes
from superopt.ops.registry import Registry
from superopt.rewrite.editing import (
    flat,
    fresh,
    integer,
    literal,
    mentions,
    nested,
    used_names,
)
from superopt.rewrite.expression import Binary, Expression, Listing, Literal, Name, Rank, names_in
from superopt.rewrite.program import find
from superopt.rewrite.rule import Block, Call, Given, Rule, Step, calls_of

FRONT, BACK = 1009, 2003
"""Sizes that tell the axes of a block apart from all others."""


@dataclass(frozen=True)
class Plan:
    """Which inputs get a block in front and which at the back, and how many of their own axes it takes the place of."""

    front: tuple[str, ...]
    back: tuple[str, ...] = ()
    front_dropped: int = 0
    back_dropped: int = 0
    other: tuple[str, ...] = ()
    """Inputs that get another block in front, which broadcasts against the first."""


class _Touched(Exception):
    """An attribute speaks of axes that would be inside a block, or of all of them."""


def plans(rule: Rule, registry: Registry) -> Iterator[Plan]:
    """The blocks that may be put into a rule without any, those that make it most general first."""
    tensors = [g for g in rule.given if g.is_tensor and g.dims]
    if not tensors or rule.blocks:
        return
    everything = tuple(g.name for g in tensors)
    fixed = {n for w in rule.where for n in names_in(w.left) | names_in(w.right)} | mentions((*rule.left, *rule.right))
    front, back = _common(tensors, fixed), _common([replace(g, dims=g.dims[::-1]) for g in tensors], fixed)
    least = min(len(g.dims) for g in tensors)
    if front == least:
        if all(len(g.dims) == least for g in tensors):
            yield from _of_one_shape(everything, least, counted=_counts_axes(rule, registry))
        front = back = 0
    for dropped in dict.fromkeys(((front, back), (front, 0), (0, back), (0, 0))):
        yield Plan(everything, everything, *dropped)
    if front:
        yield Plan(everything, front_dropped=front)
    yield Plan((), everything, back_dropped=back)
    for count in range(1, len(tensors) + 1):
        for some in combinations(everything, count):
            yield Plan(some)


def _of_one_shape(everything: tuple[str, ...], rank: int, *, counted: bool) -> Iterator[Plan]:
    """For inputs of one shape: as few axes as possible stay, those that attributes count."""
    if not counted:
        yield Plan(everything, front_dropped=rank - 1)
        return
    for kept in range(1, rank):
        for first in range(rank - kept + 1):
            yield Plan(everything, everything, first, rank - kept - first)


def _counts_axes(rule: Rule, registry: Registry) -> bool:
    """Whether an operator has attributes that count axes."""
    operators = [find(call, registry) for call in rule.calls]
    return any(o.parameter(name) is not None for o in operators for name in ("axis", "axes", "perm"))


def broad_plans(rule: Rule) -> Iterator[Plan]:
    """Two blocks in front that broadcast against each other, as the batches of a matrix product do.

    Inputs whose first axes are alike get the same one.
    """
    tensors = [g for g in rule.given if g.is_tensor and g.dims]
    if rule.blocks or len({g.dims for g in tensors}) < 2:
        return
    alike: dict[str, list[str]] = {}
    for given in tensors:
        alike.setdefault(str(given.dims[0]), []).append(given.name)
    first, *rest = alike.values()
    for count in range(len(rest)):
        for some in combinations(rest, count):
            other = [names for names in rest if names not in some]
            yield Plan((*first, *chain(*some)), other=tuple(chain(*other)))


def broadcasts(rule: Rule, registry: Registry) -> bool:
    """Whether the left side is legal where one of two blocks has axes and the other has none."""
    first, second = rule.blocks
    some = ({first: 2, second: 0}, {first: 0, second: 2})
    return any(find_shapes(rule, registry, ranks=ranks) is not None for ranks in some)


def _common(tensors: list[Given], fixed: set[str]) -> int:
    """How many first axes all inputs have alike, of sizes that no attribute mentions."""
    count = 0
    for dims in zip(*(g.dims for g in tensors), strict=False):
        first = dims[0]
        if not isinstance(first, Name) or first.name in fixed or any(d != first for d in dims):
            break
        if any(sum(d == first for d in g.dims) > 1 for g in tensors):
            break
        count += 1
    return count


def with_blocks(rule: Rule, plan: Plan, registry: Registry) -> Rule | None:
    """The rule with blocks; None where its attributes cannot be said in terms of them."""
    used = used_names(rule)
    names = fresh("b", used), fresh("c", used)
    given = tuple(_widened(g, plan, names) for g in rule.given)
    new = replace(rule, given=given, proof=None)
    before = find_shapes(rule, registry)
    if before is None:
        return None
    sizes = {name: value for name, value in before.names.items() if not name.startswith("|")}
    ranks = dict.fromkeys(new.blocks, 2)
    sizes |= {names[0]: [FRONT, FRONT + 4], names[1]: [FRONT, FRONT + 4] if plan.other else [BACK, BACK + 8]}
    after = Shapes(new, registry, sizes, ranks)
    gone = {before.names[d.name] for g in rule.given for d in _dropped(g, plan) if isinstance(d, Name)}
    try:
        sides = [
            _Side(before, after, names, gone, registry, bool(plan.other)).rewritten(side)
            for side in (rule.left, rule.right)
        ]
        shapes = [after.of(flat(side)) for side in sides]
    except (_Touched, *NOT_A_RULE):
        return None
    if any(shapes[0][name] != shapes[1][name] for name in rule.results):
        return None
    return replace(new, left=sides[0], right=sides[1])


def _widened(given: Given, plan: Plan, names: tuple[str, str]) -> Given:
    dims = given.dims
    if given.name in plan.back:
        dims = (*dims[: len(dims) - plan.back_dropped], Block(names[1]))
    if given.name in plan.other:
        dims = (Block(names[1]), *dims)
    if given.name in plan.front:
        dims = (Block(names[0]), *dims[plan.front_dropped :])
    return replace(given, dims=dims)


def _dropped(given: Given, plan: Plan) -> tuple[Expression | Block, ...]:
    front = given.dims[: plan.front_dropped] if given.name in plan.front else ()
    return (*front, *(given.dims[len(given.dims) - plan.back_dropped :] if given.name in plan.back else ()))


@dataclass
class _Side:
    """One side of a rule on its way from plain axes to blocks, step by step."""

    before: Shapes
    after: Shapes
    names: tuple[str, str]
    gone: set[int]
    registry: Registry
    from_end: bool
    """Axes are counted from the end: how many are in front depends on which block is longer."""

    def rewritten(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        old, new = flat(steps), tuple[Step, ...]()
        old_shapes = self.before.of(old)
        for step in old:
            value = step.value
            if isinstance(value, Call):
                value = self._call(value, old_shapes, self.after.of(new))
            new = (*new, replace(step, value=value))
        return nested(new)

    def _call(self, call: Call, old: dict[str, tuple[int, ...]], new: dict[str, tuple[int, ...]]) -> Call:
        """With attributes that count axes of the first operand with blocks."""
        operands = [o for o in call.operands if isinstance(o, str) and o in old]
        if not operands or not any(self._block(n) is not None for o in operands for n in new[o]):
            return call
        operand = next(o for o in operands if any(self._block(n) is not None for n in new[o]))
        arguments = dict(call.arguments)
        operator = find(call, self.registry)
        if operator.parameter("perm") is not None:
            raise _Touched
        for name in ("axis", "axes"):
            parameter = operator.parameter(name)
            if parameter is None:
                continue
            value = arguments.get(name)
            if (
                value is None
                and isinstance(parameter.default, int)
                and self._from_front(parameter.default, new[operand])
            ):
                value = literal(parameter.default)
            if value is not None:
                arguments[name] = self._moved(value, old[operand], new[operand], inserting=call.op == "Unsqueeze")
        return replace(call, arguments=tuple(arguments.items()))

    def _from_front(self, default: int, new: tuple[int, ...]) -> bool:
        """Whether an axis that is left out must be said, since a block lies between it and where it is counted from."""
        return self._block(new[0] if default >= 0 else new[-1]) is not None

    def _block(self, size: int) -> str | None:
        return {FRONT: self.names[0], FRONT + 4: self.names[0], BACK: self.names[1], BACK + 8: self.names[1]}.get(size)

    def _moved(self, value: Expression, old: tuple[int, ...], new: tuple[int, ...], *, inserting: bool) -> Expression:
        if isinstance(value, Listing):
            axes = [integer(i) for i in value.items]
        else:
            axes = [integer(value)]
        if any(a is None for a in axes):
            raise _Touched
        rank = len(old) + (len(axes) if inserting else 0)
        counted = [a % rank if a is not None else 0 for a in axes]
        if self.from_end:
            moved = [literal(a - rank) for a in counted]
        elif inserting:
            moved = [
                self._place(a - sum(o < a for o in counted), old, new, sum(o < a for o in counted)) for a in counted
            ]
        else:
            moved = [self._place(a, old, new) for a in counted]
        return Listing(tuple(moved)) if isinstance(value, Listing) else moved[0]

    def _place(self, axis: int, old: tuple[int, ...], new: tuple[int, ...], further: int = 0) -> Expression:
        """Where an axis is once there are blocks: `|b| + 1`."""
        plain = [k for k, n in enumerate(new) if self._block(n) is None]
        kept = [k for k, n in enumerate(old) if n not in self.gone]
        if [new[k] for k in plain] != [old[k] for k in kept]:
            raise _Touched
        if axis < len(old) and axis not in kept:
            raise _Touched
        count = sum(k < axis for k in kept)
        if count < len(plain):
            place = plain[count]
        else:
            place = plain[-1] + 1 if plain else len(new)
        blocks = [b for n in new[:place] if (b := self._block(n)) is not None]
        result: Expression | None = None
        for block in blocks[::2]:
            result = Rank(block) if result is None else Binary("+", result, Rank(block))
        number = count + further
        if result is None:
            return literal(number)
        return Binary("+", result, Literal(str(number))) if number else result


def separate(rule: Rule, registry: Registry) -> Iterator[Rule]:
    """A block for the whole shape of each of two inputs that have no size in common."""
    tensors = [g for g in rule.given if g.is_tensor and g.dims]
    names = [{str(d) for d in g.dims} for g in tensors]
    if len(tensors) != 2 or rule.blocks or names[0] & names[1] or _counts_axes(rule, registry):
        return
    used = used_names(rule)
    blocks = {g.name: (Block(fresh(letter, used)),) for g, letter in zip(tensors, "bc", strict=True)}
    yield replace(rule, given=tuple(replace(g, dims=blocks.get(g.name, g.dims)) for g in rule.given), proof=None)


def windows(rule: Rule) -> Iterator[Rule]:
    """Last axes that attributes leave to a bundle, as blocks: `[n, c, h, w]` becomes `[n, c, ...h]`."""
    if rule.blocks or not any(c.bundle is not None for c in calls_of(rule.left)):
        return
    fixed = {n for w in rule.where for n in names_in(w.left) | names_in(w.right)} | mentions((*rule.left, *rule.right))
    tensors = [g for g in rule.given if len(g.dims) >= 3]
    runs: dict[tuple[str, ...], str] = {}
    used = used_names(rule)
    given = {g.name: g for g in rule.given}
    for g in tensors:
        last = tuple(d.name if isinstance(d, Name) else "" for d in g.dims[2:])
        if "" in last or fixed & set(last) or len(set(last)) < len(last):
            return
        others = {d.name for o in rule.given for d in o.dims[:2] if isinstance(d, Name)}
        if others & set(last):
            return
        block = runs.setdefault(last, "") or fresh(last[0], used - set(last))
        runs[last] = block
        given[g.name] = replace(g, dims=(*g.dims[:2], Block(block)))
    if runs and len(runs) <= 2:
        yield replace(rule, given=tuple(given[g.name] for g in rule.given), proof=None)
