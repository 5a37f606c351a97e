"""The rewrites of a run, by name: what was done, where, and why it is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from superopt.explain.figures import microseconds, plural
from superopt.explain.gains import Step, rule_numbers, steps
from superopt.explain.markup import Markup, element, join
from superopt.report import Rewrite

MOST_PLACES = 60
"""Places of one rewrite that the page lists; the report has them all."""

KINDS = {"pass": "pass", "rule": "proved rule", "partial": "partial + correction, proved"}


def rewrites_section(rewrites: Sequence[Rewrite], rules: Mapping[str, str]) -> Markup:
    """`rules`: the text of each rule that is known, by name."""
    if not rewrites:
        return element("p", "No rewrite was made.", class_="dim")
    groups: dict[str, list[Rewrite]] = {}
    for rewrite in rewrites:
        groups.setdefault(rewrite.name, []).append(rewrite)
    numbers = rule_numbers(rewrites)
    return join(_group(numbers[step.name], step, groups[step.name], rules) for step in steps(rewrites))


def remarks(found: Mapping[int, Sequence[Rewrite]], numbers: Mapping[str, int]) -> dict[int, Markup]:
    """For each region, links to the rewrites that made it."""
    return {region: element("p", _links(rewrites, numbers), class_="made") for region, rewrites in found.items()}


def _links(rewrites: Sequence[Rewrite], numbers: Mapping[str, int]) -> list[Markup]:
    counts = Counter(rewrite.name for rewrite in rewrites)
    return [
        element("a", name if count == 1 else f"{name} × {count}", href=f"#rule-{numbers[name]}", class_="chip")
        for name, count in counts.most_common()
    ]


def _group(number: int, step: Step, rewrites: Sequence[Rewrite], rules: Mapping[str, str]) -> Markup:
    first = rewrites[0]
    gained = "" if step.gained is None else f"−{microseconds(step.gained)}"
    if step.gained is not None and step.gained < 0:
        gained = f"+{microseconds(-step.gained)}"
    head = element(
        "summary",
        element("b", step.name),
        element("span", f"{step.count} ×", class_="dim"),
        element("span", KINDS[first.kind], class_="dim"),
        element("span", gained + ("" if step.measured or not gained else ", predicted"), class_="gain")
        if gained
        else "",
    )
    proofs = dict.fromkeys(rewrite.proof for rewrite in rewrites)
    body: list[Markup] = [element("p", "Why it is right: ", element("code", proof)) for proof in proofs]
    if first.kind != "pass":
        text = rules.get(step.name)
        body.append(element("pre", text) if text else element("p", "The rule's text is not at hand.", class_="dim"))
        if first.rule_digest:
            body.append(element("p", "Digest of the rule and of its formulas: ", element("code", first.rule_digest)))
    body.append(_places(rewrites))
    return element("details", head, body, class_="rule", id=f"rule-{number}")


def _places(rewrites: Sequence[Rewrite]) -> Markup:
    rows = [
        element("tr", element("td", element("code", r.place)), element("td", r.detail), element("td", _times(r)))
        for r in rewrites[:MOST_PLACES]
    ]
    rest = len(rewrites) - MOST_PLACES
    more = element("p", f"and {plural(rest, 'more place')}, all of them in the JSON report", class_="dim")
    return element("table", rows, class_="places") + (more if rest > 0 else "")


def _times(rewrite: Rewrite) -> str:
    pairs = (
        ("measured", rewrite.measured_us_before, rewrite.measured_us_after),
        ("predicted", rewrite.predicted_us_before, rewrite.predicted_us_after),
    )
    shown = [
        f"region {microseconds(a)} → {microseconds(b)} {how}" for how, a, b in pairs if a is not None and b is not None
    ]
    return "; ".join(shown)
