# pyright: basic
"""A report that tells another story than the models is not believed, and what cannot be read is bad input."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from superopt.errors import BadInput
from superopt.report import Report
from superopt.search.trace import heard
from tests.search.rewritten import Rewritten, audited, book, problem

pytestmark = [pytest.mark.ort, pytest.mark.usefixtures("rules_once")]


def edited(report: Report, edit: Callable[[list], None]) -> Report:
    """The report with another trace, its list of rewrites left as it is."""
    data = json.loads(report.model_dump_json())
    edit(data["trace"])
    return Report.model_validate(data)


def _swapped_names(trace: list) -> None:
    a, b = (region["steps"][0] for region in trace)
    a["rule"], b["rule"] = b["rule"], a["rule"]


def _swapped_rules(trace: list) -> None:
    _swapped_names(trace)
    a, b = (region["steps"][0] for region in trace)
    a["digest"], b["digest"] = b["digest"], a["digest"]


def _dropped(trace: list) -> None:
    del trace[1]


def _reordered(trace: list) -> None:
    trace.reverse()


def _other_results(trace: list) -> None:
    trace[0]["steps"][0]["results"] = ["t"]


def _no_results(trace: list) -> None:
    trace[0]["steps"][0]["results"] = []


def _unknown_rule(trace: list) -> None:
    trace[0]["steps"][0]["rule"] = "conv-is-nothing"


def _other_digest(trace: list) -> None:
    trace[0]["steps"][0]["digest"] = "0" * 12


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (_swapped_names, "the report used digest"),
        (_swapped_rules, "rewrite 3 of the report, conv-factor-input at y: another name: expected 'linear-matmul"),
        (_dropped, "the report tells of a rewrite that was not made: linear-matmul-matmul-to-matmul-matmul-4574 at m2"),
        (_reordered, "rewrite 3 of the report, conv-factor-input at y: another name"),
        (_other_results, "rewrite 3 of the report, conv-factor-input at y: another place: expected 't', found 'y'"),
        (_no_results, "rewrite 3 of the report, conv-factor-input at y: another place"),
        (_unknown_rule, "there is no proved rule conv-is-nothing"),
        (_other_digest, "rule conv-factor-input: the report used digest 000000000000, as it stands it has "),
    ],
)
def test_a_trace_that_its_rewrites_do_not_bear_out(
    result: Rewritten, edit: Callable[[list], None], reason: str
) -> None:
    result.tell(edited(result.told(), edit))
    assert reason in problem(result)


def consistently(report: Report, edit: Callable[[list], None]) -> Report:
    """The report with another trace, and with the list of rewrites that goes with it."""
    changed = edited(report, edit)
    rules = book()
    steps = [(record, step) for record in map(heard, changed.trace) for step in record.steps]
    like = next(r for r in report.rewrites if r.kind == "rule")
    rewrites = [
        like.model_copy(
            update={
                "name": step.rule, "place": record.where + "".join(step.results[:1]), "results": list(step.results),
                "detail": rules.rules.patterns[step.rule].rule.doc, "proof": rules.proofs[step.rule],
                "rule_digest": rules.digests[step.rule], "nodes": list(record.members), "region": record.kind,
            }
        )
        for record, step in steps
    ]  # fmt: skip
    return changed.model_copy(update={"rewrites": [*(r for r in report.rewrites if r.kind == "pass"), *rewrites]})


def _input_of_another(trace: list) -> None:
    trace[0]["steps"][0]["inputs"]["k1"] = "w1"


def _input_invented(trace: list) -> None:
    trace[0]["steps"][0]["inputs"]["k9"] = "k1"


def _input_left_out(trace: list) -> None:
    del trace[0]["steps"][0]["inputs"]["k1"]


def _member_invented(trace: list) -> None:
    trace[0]["members"].append("nothing")


def _member_left_out(trace: list) -> None:
    trace[0]["members"].remove("c2")


def _in_a_body(trace: list) -> None:
    trace[1]["where"] = "nowhere/body/"


def _another_rule(trace: list) -> None:
    name = "linear-matmul-matmul-add-to-concat-concat-matmul-053c"
    trace[1]["steps"][0].update(rule=name, digest=book().digests[name])


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (_swapped_rules, "a step cannot be made again: linear-matmul-matmul-to-matmul-matmul-4574 at y: "),
        (
            _another_rule,
            "a step cannot be made again: linear-matmul-matmul-add-to-concat-concat-matmul-053c at m2: ",
        ),
        (_dropped, "the trace gives 4 nodes, the report says 3"),
        (_reordered, "a step cannot be made again"),
        (_input_of_another, "a step cannot be made again: conv-factor-input at y: conv-factor-input does not match"),
        (_input_invented, "it is told with the inputs k1=k1, k2=k2, k9=k1, x=x, they are k1=k1, k2=k2, x=x"),
        (_input_left_out, "it is told with the inputs k2=k2, x=x, they are k1=k1, k2=k2, x=x"),
        (_member_invented, "there is no node that computes nothing"),
        (_member_left_out, "a step cannot be made again: conv-factor-input at y: "),
        (_in_a_body, "there is no body 'nowhere/body/'"),
        (_no_results, "a step cannot be made again: conv-factor-input at : another number of results"),
    ],
)
def test_a_trace_that_cannot_be_made_again(result: Rewritten, edit: Callable[[list], None], reason: str) -> None:
    result.tell(consistently(result.told(), edit))
    assert reason in problem(result)


def _with(**changes) -> Callable[[Report], Report]:
    return lambda report: report.model_copy(update=changes)


def _rewrite(number: int, **changes) -> Callable[[Report], Report]:
    def edit(report: Report) -> Report:
        rewrites = list(report.rewrites)
        rewrites[number - 1] = rewrites[number - 1].model_copy(update=changes)
        return report.model_copy(update={"rewrites": rewrites})

    return edit


def _another_check(report: Report) -> Report:
    return report.model_copy(update={"check": report.check.model_copy(update={"status": "unchecked"})})


def _other_facts(report: Report) -> Report:
    return report.model_copy(update={"after": report.after.model_copy(update={"nodes": 2})})


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (_rewrite(1, name="identity"), "rewrite 1 of the report, identity at Mul:b: another name"),
        (_rewrite(1, place="Mul:c"), "rewrite 1 of the report, constant-folding at Mul:c: another place"),
        (_rewrite(4, name="matmul-lora"), "rewrite 4 of the report, matmul-lora at m2: another name"),
        (_rewrite(4, rule_digest="0" * 12), "another rule_digest"),
        (_rewrite(4, proof="by definition"), "another proof"),
        (_with(left_out=[("identity", "Identity:a")]), "rewrite 2 of the report, identity at Identity:a: another name"),
        (_with(candidate_nodes=7), "the trace gives 3 nodes, the report says 7"),
        (_with(returned="original"), "the report says that the original's own bytes were returned, these are others"),
        (_with(deployment=None), "metadata_props: one too many: 'superopt.deployment'"),
        (_another_check, "the report returns a model whose outputs it calls unchecked"),
        (_other_facts, "the report tells of another nodes: expected 2, found 3"),
    ],
)
def test_a_report_that_says_something_else(result: Rewritten, edit: Callable[[Report], Report], reason: str) -> None:
    result.tell(edit(result.told()))
    assert reason in problem(result)


def test_times_are_not_audited(result: Rewritten) -> None:
    result.tell(_rewrite(4, measured_us_before=2.0, measured_us_after=1.0)(result.told()))
    assert audited(result).confirmed


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is no JSON"),
        ("[]", "is no report of superopt optimize: it: "),
        ("{}", "is no report of superopt optimize: verdict: Field required"),
        ('{"schema_version": 2}', "is a report of schema version 2, this superopt reads 1"),
        ('{"environment": {"superopt": "0.0.1"}}', r"was written by superopt 0\.0\.1, this is "),
    ],
)
def test_what_is_no_report_is_bad_input(result: Rewritten, text: str, reason: str) -> None:
    result.report.write_text(text)
    with pytest.raises(BadInput, match=reason):
        audited(result)


def test_a_missing_report_and_impossible_options_are_bad_input(result: Rewritten) -> None:
    report = result.told()
    for options in ({}, {**report.options, "growth": "much"}, {**report.options, "allow": "all"}):
        result.tell(report.model_copy(update={"options": options}))
        with pytest.raises(BadInput, match="its options are none of superopt optimize"):
            audited(result)
    result.report.unlink()
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        audited(result)
