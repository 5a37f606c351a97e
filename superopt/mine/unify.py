"""Sizes of a part of a graph as symbols: as many as its operators leave free.

Every axis that the part reads gets a symbol of its own. Then its formulas are run on the symbols; each question that a
formula asks about sizes is answered by the numbers of the model, and where the answer is that two are equal, they are
made equal. Targets of Reshape and the like become expressions of the symbols on the way.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from math import gcd, prod
from typing import Any

from superopt.ir.graph import Node, Value
from superopt.ops.condition import AtLeastZero, Both, Condition, Not, Zero, deciding
from superopt.ops.evaluate import sized
from superopt.ops.formula import Tensor, constant
from superopt.ops.index import Index, Poly, Quotient, Symbol, symbol, terms_of
from superopt.rewrite.reading import Reading

LARGE = (1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049)
"""What sizes that only a run tells count as."""


BATCH = 1051
"""What a batch of one counts as, where it is taken for any batch."""


PACKED = 4
"""Axes up to this long that are taken apart one by one count something that no other model has more of."""


class CannotUnify(Exception):
    """The sizes of this part are not understood; why, in words."""


class Unifier:
    """Symbols with the numbers they have in the model, and what was found out about them."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self._known: dict[str, Index] = {}
        """What a symbol was found to be, in terms of others."""
        self._by_value: dict[int, Index] = {}
        self._named: dict[str, int] = {}

    def number(self, size: Index) -> int:
        """A size of the model as a number."""
        if isinstance(size, int):
            return size
        for atom in size.atoms:
            if isinstance(atom, Symbol) and atom.name not in self._named:
                if len(self._named) == len(LARGE):
                    raise CannotUnify("too many sizes that only a run tells")
                self._named[atom.name] = LARGE[len(self._named)]
        return valued(size, self._named)

    def fresh(self, number: int) -> Index:
        """A new symbol for a size; sizes of 1 stay what they are, for they broadcast."""
        if number <= 1:
            return number
        name = f"s{len(self.numbers)}"
        self.numbers[name] = number
        return symbol(name)

    def resolved(self, index: Index) -> Index:
        """In terms of symbols that are still free."""
        if isinstance(index, int) or not any(isinstance(a, Symbol) and a.name in self._known for a in index.atoms):
            return index
        total: Index = 0
        for monomial, factor in index.terms.items():
            product: Index = factor
            for atom in monomial:
                if isinstance(atom, Quotient):
                    product = product * (self.resolved(atom.number) // self.resolved(atom.divisor))
                else:
                    known = self._known.get(atom.name)
                    product = product * (symbol(atom.name) if known is None else self.resolved(known))
            total = total + product
        return total

    def value(self, index: Index) -> int:
        return valued(index, self.numbers)

    def decide(self, condition: Condition) -> bool:
        """As it is in the model. What is equal there is equal from now on."""
        if isinstance(condition, Not):
            return not self.decide(condition.of)
        if isinstance(condition, Both):
            return all(self.decide(part) for part in condition.parts)
        assert isinstance(condition, AtLeastZero | Zero)
        if isinstance(condition, AtLeastZero):
            return self.value(condition.index) >= 0
        if self.value(condition.index) != 0:
            return False
        self.equal(condition.index, 0)
        return True

    def equal(self, a: Index, b: Index) -> None:
        difference = self.resolved(a - b)
        if isinstance(difference, int):
            return
        divisor = gcd(*difference.terms.values())
        difference = Poly({monomial: factor // divisor for monomial, factor in difference.terms.items()})
        for monomial, factor in sorted(difference.terms.items(), key=lambda t: _age(t[0]), reverse=True):
            if abs(factor) != 1 or len(monomial) != 1 or not isinstance(monomial[0], Symbol):
                continue
            found = monomial[0]
            rest = difference - Poly({monomial: factor})
            if not isinstance(rest, int) and found in rest.atoms:
                continue
            self._known[found.name] = rest * -factor
            return
        common = _common_factor(difference)
        if common is not None:  # sizes are positive
            self.equal(common, 0)
            return
        pairs = self._pairs(difference)
        if not pairs:
            raise CannotUnify(f"{difference} = 0 has no plain solution")
        for one, other in pairs:
            self.equal(one, other)

    def _pairs(self, difference: Poly) -> list[tuple[Index, Index]]:
        """Of two equal products, the factors that are equal in the model: batch · heads of queries and of keys."""
        if sorted(difference.terms.values()) != [-1, 1]:
            return []
        sides = [sorted(self._factors(Poly({m: 1})) or (), key=self.value) for m in difference.terms]
        values = [list(map(self.value, side)) for side in sides]
        return list(zip(*sides, strict=True)) if values[0] == values[1] else []

    def reshape(self, shape: Sequence[Index], target: Sequence[int]) -> list[Index]:
        """The target of a Reshape as expressions: runs of axes that hold as many elements belong together."""
        found: list[Index] = []
        numbers = [self.value(n) for n in shape]
        if target and prod(numbers) == BATCH * prod(target):
            target = [BATCH * target[0], *target[1:]]
        i = k = 0
        while k < len(target) or i < len(numbers):
            j, m = i, k
            while j == i or m == k or prod(numbers[i:j]) != prod(target[k:m]):
                wants = prod(numbers[i:j]) <= prod(target[k:m])
                if j < len(numbers) and (wants or m == len(target)):
                    j += 1
                elif m < len(target):
                    m += 1
                else:
                    break
            if prod(numbers[i:j]) != prod(target[k:m]):
                raise CannotUnify("a Reshape whose axes do not fall into runs")
            found += self._run(list(shape[i:j]), list(target[k:m]))
            i, k = j, m
        return found

    def _run(self, sources: list[Index], targets: list[int]) -> list[Index]:
        real = [n for n in targets if n != 1]
        whole: Index = 1
        for n in sources:
            whole = whole * self.resolved(n)
        if len(real) <= 1:
            return [1 if n == 1 else whole for n in targets]
        kept = [n for n in sources if self.value(n) != 1]
        if [self.value(n) for n in kept] == real:
            rest = iter(kept)
            return [1 if n == 1 else next(rest) for n in targets]
        if len(kept) > 1 and real[0] > self.value(kept[0]) and real[0] % self.value(kept[0]) == 0:
            return self._ahead(targets, kept[0], self._run(kept[1:], [real[0] // self.value(kept[0]), *real[1:]]))
        first = self._part(kept[0], real[0])
        if first is not None:
            return self._ahead(targets, 1, [first[0], *self._run([first[1], *kept[1:]], real[1:])])
        factors = self._factors(whole)
        if factors is not None and sorted(map(self.value, factors)) == sorted(real) and len(set(real)) == len(real):
            by_value = {self.value(f): f for f in factors}
            return [1 if n == 1 else by_value[n] for n in targets]
        made = [self.fresh(n) for n in targets]
        product: Index = 1
        for n in made:
            product = product * n
        self.equal(whole, product)
        return made

    def _ahead(self, targets: list[int], first: Index, sizes: list[Index]) -> list[Index]:
        """Sizes of the targets that are not 1, the first of them times `first`."""
        rest = iter([first * sizes[0], *sizes[1:]])
        return [1 if n == 1 else next(rest) for n in targets]

    def _part(self, size: Index, number: int) -> tuple[Index, Index] | None:
        """A size that was made of several, as two factors, the first of which is the number: batch of batch · heads."""
        factors = self._factors(self.resolved(size)) or []
        for count in range(1, len(factors)):
            for chosen in itertools.combinations(range(len(factors)), count):
                parts: list[Index] = [1, 1]
                for k, factor in enumerate(factors):
                    parts[k not in chosen] = parts[k not in chosen] * factor
                if self.value(parts[0]) == number:
                    return parts[0], parts[1]
        return None

    def _factors(self, whole: Index) -> list[Index] | None:
        terms = list(terms_of(whole).items())
        if len(terms) != 1 or terms[0][1] != 1:
            return None
        return [Poly({(atom,): 1}) for atom in terms[0][0]]

    def indexed(self, size: Index, start: int, end: int) -> None:
        """A short axis of which one is taken, as of queries, keys and values packed together, is as long as it is."""
        if end - start == 1 and self.value(size) <= PACKED and not isinstance(size, int):
            self.equal(size, self.value(size))

    def divided(self, size: Index, count: int) -> None:
        """An axis that is cut into so many equal parts, or of which one in so many is taken, is that many times one."""
        value = self.value(size)
        if count > 1 and value % count == 0 and value > count and not isinstance(self.resolved(size), int):
            self.equal(size, count * self.fresh(value // count))

    def listed(self, numbers: Sequence[int], axes: Sequence[Index]) -> list[Index]:
        """Bounds of a Slice: equal numbers are one symbol, the size of the axis is that."""
        found: list[Index] = []
        for number, size in itertools.zip_longest(numbers, axes, fillvalue=0):
            if number <= 1 or number > 2**30 or (isinstance(size, int) and number <= size):
                found.append(number)
            elif number == self.value(size):
                found.append(size)
            else:
                found.append(self._by_value.setdefault(number, self.fresh(number)))
        return found


def _common_factor(poly: Poly) -> Poly | None:
    """A sum without a symbol that all its terms have; None where they have none."""
    for atom in next(iter(poly.terms)):
        if isinstance(atom, Symbol) and all(atom in monomial for monomial in poly.terms):
            return Poly({_without(atom, monomial): factor for monomial, factor in poly.terms.items()})
    return None


def _without(atom: Symbol, monomial: tuple[Any, ...]) -> tuple[Any, ...]:
    place = monomial.index(atom)
    return (*monomial[:place], *monomial[place + 1 :])


def _age(monomial: tuple[Any, ...]) -> tuple[int, int]:
    """Single symbols before products, the newest last."""
    last = monomial[-1] if monomial else None
    return (-len(monomial), int(last.name[1:]) if isinstance(last, Symbol) else -1)


def valued(index: Index, numbers: Mapping[str, int]) -> int:
    if isinstance(index, int):
        return index
    total = 0
    for monomial, factor in index.terms.items():
        product = factor
        for atom in monomial:
            if isinstance(atom, Quotient):
                product *= valued(atom.number, numbers) // valued(atom.divisor, numbers)
            else:
                product *= numbers[atom.name]
        total += product
    return total


Arguments = dict[str, Any]


class Shapes:
    """Every value of a part with its shape in symbols, and the arguments of every node."""

    def __init__(
        self, shape: Callable[[Value], Sequence[Index] | None], is_number: Callable[[Value], bool],
        has_batch: Callable[[Value], bool] = lambda _: False, repeats: Callable[[Value], bool] = lambda _: False,
    ) -> None:  # fmt: skip
        """A value that `has_batch` has a first axis of size 1 that may be any; the halves of one that `repeats` are
        equal."""
        self._shape, self._is_number, self._has_batch, self._repeats = shape, is_number, has_batch, repeats
        self.unifier = Unifier()
        self.of: dict[Value, tuple[Index, ...]] = {}
        self.arguments: dict[Node, Arguments] = {}

    def add(self, node: Node, reading: Reading) -> None:
        """Follow a node; raises where its sizes are not understood."""
        for value in reading.operands:
            if value is not None and value not in self.of:
                self.of[value] = () if self._is_number(value) else self._fresh(value)
        shapes = [None if v is None else tuple(map(self.unifier.resolved, self.of[v])) for v in reading.operands]
        arguments = self._arguments(node, reading, shapes)
        tensors = [self._tensor(k, v, s) for k, (v, s) in enumerate(zip(reading.operands, shapes, strict=True))]
        with deciding(self.unifier.decide):
            results = reading.operator.apply(tensors, arguments, len(node.types))
        self.arguments[node] = arguments
        for value, result in zip(node.outputs, results, strict=False):
            self.of[value] = tuple(map(self.unifier.resolved, result.shape))

    def _fresh(self, value: Value) -> tuple[Index, ...]:
        shape = self._shape(value)
        if shape is None:
            raise CannotUnify("a rank is not known")
        numbers = [self.unifier.number(n) for n in shape]
        if self._has_batch(value) and numbers[:1] == [1] and len(numbers) > 1:
            numbers[0] = BATCH
        if self._repeats(value):
            return (*map(self.unifier.fresh, numbers[:-1]), 2 * self.unifier.fresh(numbers[-1] // 2))
        return tuple(map(self.unifier.fresh, numbers))

    def _tensor(self, position: int, value: Value | None, shape: tuple[Index, ...] | None) -> Tensor | None:
        if value is None or shape is None:
            return None
        return constant(2) if self._is_number(value) else sized(shape, f"x{position}")  # pyright: ignore[reportArgumentType]

    def _arguments(self, node: Node, reading: Reading, shapes: Sequence[tuple[Index, ...] | None]) -> Arguments:
        found = {name: value for name, value in reading.arguments.items() if value is not None}
        first = shapes[0] if shapes else None
        if first is None:
            return found
        unifier = self.unifier
        if node.op in ("Reshape", "Expand") and "shape" in found:
            target = [unifier.number(n) for n in found["shape"]]
            found["shape"] = unifier.reshape(first, target) if node.op == "Reshape" else self._expanded(first, target)
        elif node.op == "Slice":
            axes = [first[a] for a in found.get("axes", range(len(first)))]
            numbers = {name: [unifier.number(n) for n in found[name]] for name in ("starts", "ends")}
            for size, start, end in zip(axes, numbers["starts"], numbers["ends"], strict=False):
                unifier.indexed(size, start, end)
            for size, step in zip(axes, found.get("steps", ()), strict=False):
                unifier.divided(size, step)
            for bound in ("starts", "ends"):
                found[bound] = unifier.listed(numbers[bound], [unifier.resolved(size) for size in axes])
        elif node.op == "Split" and "split" in found:
            parts = [unifier.fresh(unifier.number(n)) for n in found["split"]]
            total: Index = 0
            for part in parts:
                total = total + part
            unifier.equal(first[found.get("axis", 0)], total)
            found["split"] = parts
        elif node.op == "Split":
            unifier.divided(first[found.get("axis", 0)], len(node.types))
        return found

    def _expanded(self, shape: tuple[Index, ...], target: Sequence[int]) -> list[Index]:
        found: list[Index] = []
        for k, number in enumerate(target):
            axis = k - len(target) + len(shape)
            same = axis >= 0 and self.unifier.value(shape[axis]) in (number, BATCH if number == 1 else number)
            found.append(shape[axis] if same else self.unifier.fresh(number))
        return found
