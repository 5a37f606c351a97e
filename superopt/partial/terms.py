"""Programs as terms: equal calls on equal operands are one term, whatever their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from superopt.rewrite.expression import evaluate
from superopt.rewrite.rule import Call, Number, Operand, Step

Key = tuple[Any, ...]


class Terms:
    """Hands out a number for each term."""

    def __init__(self) -> None:
        self._numbers: dict[Key, int] = {}
        self._keys: list[Key] = []

    def term(self, key: Key) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self._keys)
            self._keys.append(key)
        return self._numbers[key]

    def run(self, steps: Iterable[Step], values: Mapping[str, int], names: Mapping[str, Any]) -> dict[str, int]:
        """Terms of all that the steps define; `names` says what sizes are."""
        found = dict(values)
        for step in steps:
            if isinstance(step.value, str):
                found[step.targets[0]] = found[step.value]
                continue
            call = self._call(step.value, found, names)
            for k, target in enumerate(step.targets):
                found[target] = self.term(("output", k, call))
        return found

    def _call(self, call: Call, values: Mapping[str, int], names: Mapping[str, Any]) -> int:
        operands = tuple(self._operand(o, values, names) for o in call.operands)
        arguments = tuple(sorted((name, _spelled(evaluate(value, names))) for name, value in call.arguments))
        return self.term(("call", call.domain, call.op, arguments, *operands))

    def _operand(self, operand: Operand, values: Mapping[str, int], names: Mapping[str, Any]) -> int:
        if operand is None:
            return self.term(("nothing",))
        if isinstance(operand, Number):
            return self.term(("number", _spelled(evaluate(operand.expression, names))))
        if isinstance(operand, Call):
            return self.term(("output", 0, self._call(operand, values, names)))
        return values[operand]

    def replaced(self, term: int, old: int, new: int) -> int:
        """The term with `new` wherever `old` was; not inside `new`."""
        return self._replaced(term, {old: new})

    def _replaced(self, term: int, known: dict[int, int]) -> int:
        if term not in known:
            key = self._keys[term]
            if key[0] == "output":
                changed = (*key[:2], self._replaced(key[2], known))
            elif key[0] == "call":
                changed = (*key[:4], *(self._replaced(part, known) for part in key[4:]))
            else:
                changed = key
            known[term] = self.term(changed)
        return known[term]


def _spelled(value: Any) -> str:
    return f"[{', '.join(map(_spelled, value))}]" if isinstance(value, list) else str(value)
