"""Names and sentences for rules that no person wrote: from their operators, the same for the same text."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from superopt.rewrite.rule import Call, Number, Operand, Rule, Step, calls_of
from superopt.rewrite.text import format_meaning

MOST_WORDS = 4
"""Operators of the left side that a name mentions, at most."""
MOST_LETTERS = 150
"""Formulas longer than this are told by their operators alone."""
SIGNS = {"Add": " + ", "Sub": " − ", "Mul": "·", "Div": "/", "MatMul": "·"}
DIGITS = 4
"""Digits of the digest that a name ends with; more where two rules would share a name."""


def named(recipe: str, rules: Iterable[Rule]) -> list[Rule]:
    """Each with a name that starts with the recipe's, unique among them, and with a sentence where it has none."""
    rules = list(rules)
    found: list[Rule] = []
    digits = DIGITS
    while len({name_of(recipe, r, digits) for r in rules}) < len({format_meaning(r) for r in rules}):
        digits += 2
    for rule in rules:
        found.append(replace(rule, name=name_of(recipe, rule, digits), doc=rule.doc or doc_of(rule)))
    return found


def name_of(recipe: str, rule: Rule, digits: int = DIGITS) -> str:
    """`linear-matmul-matmul-to-matmul-split-3f2a`."""
    left, right = (_words(side) for side in (rule.left, rule.right))
    digest = hashlib.sha256(format_meaning(rule).encode()).hexdigest()[:digits]
    return "-".join([_word(recipe), *left[:MOST_WORDS], "to", *right[:MOST_WORDS], digest])


def _words(steps: Iterable[Step]) -> list[str]:
    return [_word(call.op) for call in calls_of(steps)] or ["input"]


def _word(name: str) -> str:
    """Small letters and digits."""
    return re.sub(r"[^a-z0-9]", "", name.lower()) or "op"


def doc_of(rule: Rule) -> str:
    """The law as a formula where that is short, else in words."""
    formula = f"{_formula(rule.left, rule)} = {_formula(rule.right, rule)}"
    if len(formula) <= MOST_LETTERS:
        return f"{formula}{_limits(rule)}."
    return f"{_told(rule.left)} = {_told(rule.right)}{_limits(rule)}."


def _limits(rule: Rule) -> str:
    conditions = [str(w) for w in rule.where if not str(w).endswith((">= 1", ">= 0")) or "." in str(w)]
    conditions += [f"{g.name} ≥ 0" for g in rule.given if g.kind == "real" and f"{g.name} >= 0" in map(str, rule.where)]
    return f", where {' and '.join(conditions)}" if conditions else ""


def _formula(steps: tuple[Step, ...], rule: Rule) -> str:
    """Results side by side, values inside in their places."""
    values: dict[str, str] = {}
    for step in steps:
        text = values.get(step.value, step.value) if isinstance(step.value, str) else _call(step.value, values)
        for k, target in enumerate(step.targets):
            values[target] = text if len(step.targets) == 1 else f"{text}.{k + 1}"
    shown = [values[name] for name in rule.results]
    whole = {text.rpartition(".")[0] for text in shown}
    if len(shown) > 1 and len(whole) == 1 and shown == [f"{next(iter(whole))}.{k + 1}" for k in range(len(shown))]:
        return next(iter(whole))
    return ", ".join(_open(text) for text in shown)


def _call(call: Call, values: dict[str, str]) -> str:
    operands = [_operand(o, values) for o in call.operands]
    if call.op in SIGNS and not call.domain and len(operands) == 2:
        return f"({operands[0]}{SIGNS[call.op]}{operands[1]})"
    said = [f"{name}={value}" for name, value in call.arguments if name in ("axis", "axes", "perm", "group")]
    return f"{call.op}({', '.join([*map(_open, operands), *said])})"


def _operand(operand: Operand, values: dict[str, str]) -> str:
    if operand is None:
        return "_"
    if isinstance(operand, Call):
        return _call(operand, values)
    return str(operand) if isinstance(operand, Number) else values.get(operand, operand)


def _open(text: str) -> str:
    """Without brackets around all of it."""
    if not text.startswith("(") or not text.endswith(")"):
        return text
    depth = 0
    for k, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and k < len(text) - 1:
            return text
    return text[1:-1]


def _told(steps: tuple[Step, ...]) -> str:
    """`MatMul twice, Concat`."""
    times = {1: "", 2: " twice", 3: " three times"}
    counted = Counter(call.op for call in calls_of(steps))
    if not counted:
        return "the input"
    return ", ".join(f"{op}{times.get(n, f' {n} times')}" for op, n in counted.items())
