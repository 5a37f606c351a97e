# pyright: basic
"""On a Ray cluster of two nodes the same rules are found, also when a node dies meanwhile."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

import specs
from superopt.generate import cluster as clusters
from superopt.generate.cluster import Cluster
from superopt.generate.generate import Settings, generate
from superopt.generate.ledger import Ledger
from superopt.generate.local import local
from superopt.generate.recipe import load_recipe
from superopt.rewrite.text import format_rule

ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")
pytestmark = [pytest.mark.ray, pytest.mark.slow]

REGISTRY = specs.load()
RECIPE = load_recipe(str(Path(__file__).with_name("tiny.toml")), REGISTRY, max_ops=2, ops=["MatMul", "Relu", "Split"])


def found(**engine) -> list[str]:
    rules: list[str] = []
    for _, findings in generate(RECIPE, REGISTRY, Ledger(), Settings(workers=2, seconds=10, candidates=4), **engine):
        rules += [format_rule(f.rule) for f in findings]
    return rules


DEFINITION = """from superopt.ops.draws import unary
from superopt.ops.formula import elementwise
from superopt.ops.registry import operator
@operator('TwiceIt', domain='test.cluster', since=1, draw=unary)
def twice_it(x):
    return elementwise(lambda e: e + e, x)
"""
"""Of an operator that no other process can import by name."""


@pytest.fixture
def two_nodes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "twice_it.py").write_text(DEFINITION)
    specs.load(tmp_path)
    monkeypatch.setattr("superopt.generate.cluster.FEW", 8)
    monkeypatch.setattr("superopt.generate.local.FEW", 8)
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    yield cluster, second
    ray.shutdown()
    cluster.shutdown()


def test_two_nodes_find_what_one_process_finds_and_a_dead_one_loses_nothing(
    two_nodes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cluster, second = two_nodes
    alone = found(spread=local(1))
    assert alone
    as_ever = clusters._fingerprints
    begun, doomed = tmp_path / "begun", second.node_id

    def appears(path: Path) -> None:
        end = time.monotonic() + 120
        while not path.exists() and time.monotonic() < end:
            time.sleep(0.02)

    def without_end_on_the_second(table, works, worlds):
        """The other one waits until there is work that the second takes with it when it dies."""
        if ray.get_runtime_context().get_node_id() == doomed:
            begun.touch()
            time.sleep(600)
        appears(begun)
        return as_ever(table, works, worlds)

    def kill() -> None:
        appears(begun)
        cluster.remove_node(second, allow_graceful=False)

    monkeypatch.setattr(clusters, "_fingerprints", without_end_on_the_second)
    killer = threading.Thread(target=kill)
    with Cluster(cluster.address) as engine:
        assert engine.cpus == 2
        killer.start()
        assert found(spread=engine.spread(), pool=engine.pool()) == alone
        killer.join()
    assert begun.exists()
