"""What Prometheus is told, held to the table in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from server.metrics import exposition
from server.stages import Reached
from tests.server.world import TARGETS, World

pytestmark = pytest.mark.unit

DOCS = Path(__file__).resolve().parents[2] / "docs" / "service.md"
ROW = re.compile(r"^\| `(superopt_\w+)` \| ([^|]*)\|", re.MULTILINE)


def told(world: World) -> dict[str, set[str]]:
    """Labels of every metric of ours, by the name that its samples have."""
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(exposition(world.database, world.fleet).decode()):
        if family.name.startswith("superopt_"):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            found[name] = {label for sample in family.samples for label in sample.labels} - {"le"}
    return found


def test_the_docs_list_every_metric_with_its_labels(world: World) -> None:
    world.fleet.register("w", "cpu", TARGETS, {"rules": 3})
    world.submit(b"one")
    claim = world.claim()
    world.claims.tell(claim, Reached("timing"))
    world.claims.complete(claim, world.outcome())
    documented = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in ROW.findall(DOCS.read_text())}
    assert documented == told(world)
