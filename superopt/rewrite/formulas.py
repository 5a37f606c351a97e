"""Lists by formula, `indices=[(p + s) % n for p < n]`: what they may say, so that every entry is a whole number."""

from __future__ import annotations

from superopt.rewrite.expression import Binary, Each, Expression, Listing, Literal, Name, Rank, names_in
from superopt.rewrite.rule import Rule, calls_of


def slip(rule: Rule) -> str:
    """What is wrong with a list by formula of the rule; empty where nothing is."""
    for step in (*rule.left, *rule.right):
        for call in calls_of([step]):
            for name, value in call.arguments:
                found = _slip(value, rule, step in rule.left, (call.domain, call.op, name))
                if found:
                    return f"{found} (in `{step}`)"
    return ""


def _slip(value: Expression, rule: Rule, is_left: bool, place: tuple[str, str, str]) -> str:
    if not isinstance(value, Each):
        return "a list by formula stands for a whole list" if holds_list(value) else ""
    if is_left:
        return "a list by formula stands on the right side alone"
    if place != ("", "Gather", "indices"):
        return "a list by formula can be the indices of a Gather alone"
    whole = {*rule.sizes, *(f"|{b}|" for b in rule.blocks), *(g.name for g in rule.given if g.kind == "int")}
    if value.place in {*whole, *rule.blocks, *(g.name for g in rule.given)}:
        return f"{value.place!r} is no free name for a place"
    if unknown := sorted((names_in(value.entry) | names_in(value.size)) - whole - {value.place}):
        return f"{', '.join(unknown)}: no size and no whole number"
    if not _is_positive(value.size, rule):
        return f"{value.size} is no sum of products of sizes"
    return _no_whole_number(value.entry, rule)


def holds_list(value: Expression) -> bool:
    """Whether a list by formula is in it."""
    if isinstance(value, Binary):
        return holds_list(value.left) or holds_list(value.right)
    return isinstance(value, Each) or (isinstance(value, Listing) and any(map(holds_list, value.items)))


def _no_whole_number(entry: Expression, rule: Rule) -> str:
    if isinstance(entry, Name | Rank) or (isinstance(entry, Literal) and entry.text.isdigit()):
        return ""
    if not isinstance(entry, Binary) or entry.operator == "/":
        return f"{entry} is no whole number"
    if entry.operator in ("//", "%") and not _is_positive(entry.right, rule):
        return f"{entry.right}, by which is divided, is no sum of products of sizes"
    return _no_whole_number(entry.left, rule) or _no_whole_number(entry.right, rule)


def _is_positive(value: Expression, rule: Rule) -> bool:
    """At least 1, seen from its form."""
    if isinstance(value, Binary):
        return value.operator in ("+", "*") and _is_positive(value.left, rule) and _is_positive(value.right, rule)
    if isinstance(value, Literal):
        return value.text.isdigit() and int(value.text) >= 1
    return isinstance(value, Name) and value.name in rule.sizes
