"""What there is: the rules, and the devices that work."""

from __future__ import annotations

from functools import cache

from fastapi import APIRouter

from server.access import Served, Tenant
from server.problems import Problem
from server.routes.answers import problems
from server.schemas import DeviceDocument, DeviceList, RuleDocument, RuleList

router = APIRouter(tags=["catalog"])


@router.get(
    "/v1/rules", response_model=RuleList, response_model_exclude_none=True, summary="Every rule", responses=problems()
)
def rules(_: Tenant) -> RuleList:
    return RuleList(rules=[r.model_copy(update={"text": None}) for r in _rules().values()])


@router.get("/v1/rules/{name}", response_model=RuleDocument, summary="One rule in full", responses=problems(404, 422))
def rule(_: Tenant, name: str) -> RuleDocument:
    found = _rules().get(name)
    if found is None:
        raise Problem(404, "there is no rule of that name")
    return found


@router.get("/v1/devices", response_model=DeviceList, summary="Devices that are at work", responses=problems())
def devices(served: Served, _: Tenant) -> DeviceList:
    with served.database.read() as connection:
        live = served.fleet.live(connection)
    return DeviceList(
        devices=[
            DeviceDocument(
                worker=w.id, device=w.device, name=str(w.facts.get("name", w.device)), targets=sorted(w.targets),
                busy=w.job is not None, facts=dict(w.facts),
            )
            for w in live
        ]
    )  # fmt: skip


@cache
def _rules() -> dict[str, RuleDocument]:
    """Read at the first question; they do not change while the process lives."""
    import specs  # a few seconds that not every process spends
    from superopt.rewrite.ruleset import load_rules, rule_files, state
    from superopt.rewrite.text import format_rule

    registry = specs.load()
    return {
        rule.name: RuleDocument(
            name=rule.name, doc=rule.doc, state=state(rule, registry), proof=str(rule.proof or ""),
            text=format_rule(rule),
        )
        for rule in load_rules(rule_files())
    }  # fmt: skip
