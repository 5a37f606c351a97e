"""Graphs are enumerated by value: equal ones are paired, in whatever way the work is spread."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import specs
from superopt.generate.batch import Plan
from superopt.generate.candidate import directions, first_of_its_names, to_rule
from superopt.generate.enumerate import Enumeration
from superopt.generate.keys import Keys
from superopt.generate.local import local
from superopt.generate.recipe import Scene, load_recipe
from superopt.generate.several import joined, side_by_side
from superopt.generate.stage import Stage
from superopt.generate.term import Pair, show, size
from superopt.generate.worth import written
from superopt.rewrite.text import format_rule, parse_rules

REGISTRY = specs.load()
MATRICES = """
[[scene]]
name = "matrices"
given = "x: [m, k]  w: [k, n]  v: [k, p]  u: [n, q]"
weights = "w v u"
worlds = ["m=2 k=3 n=4 p=5 q=2", "m=1 k=2 n=3 p=1 q=4", "m=3 k=1 n=2 p=4 q=5", "m=5 k=4 n=1 p=2 q=3"]
ops = ["MatMul($, $)", "Relu($)", "Concat($, $, axis=1)", "Split($, split=[n, p], axis=1) -> 2"]
"""


def scene(tmp_path: Path, text: str, max_ops: int) -> Scene:
    path = tmp_path / "test.toml"
    path.write_text(text)
    return load_recipe(str(path), REGISTRY, max_ops=max_ops).scenes[0]


def enumerated(of: Scene, workers: int = 1, memory: int = 1 << 30) -> tuple[Enumeration, list[Pair]]:
    run = Enumeration(Stage(of, REGISTRY, 0), of.max_ops, local(workers), memory=memory)
    return run, list(run.run())


def told(pairs: list[Pair], of: Scene) -> set[str]:
    return {" = ".join(show(t[0], of.templates) for t in (p.left, p.right)) for p in pairs}


@pytest.mark.unit
def test_laws_are_found_and_nothing_else(tmp_path: Path) -> None:
    of = scene(tmp_path, MATRICES, 2)
    _, pairs = enumerated(of)
    found = told(pairs, of)
    assert "MatMul(x, MatMul(w, u)) = MatMul(MatMul(x, w), u)" in found
    assert "Relu(x) = Relu(Relu(x))" in found


@pytest.mark.unit
def test_parallel_products_become_one(tmp_path: Path) -> None:
    of = scene(tmp_path, MATRICES, 3)
    _, pairs = enumerated(of)
    rules = [to_rule(way, of, "found") for pair in joined(pairs, of) for way in directions(pair, of)]
    texts = [format_rule(rule) for rule in rules]
    wanted = "y1 = MatMul(x, w)\n  y2 = MatMul(x, v)\n  =>\n  u1 = Concat(w, v, axis=1)\n  u2 = MatMul(x, u1)"
    assert any(wanted in text for text in texts)
    for text in texts:
        assert format_rule(parse_rules(text)[0]) == text


NORMALIZED = """
[[scene]]
name = "sums"
given = "x: [b, s, n]  z: [b, s, n]  g: [n]  c: [n]"
weights = "g c"
worlds = ["b=2 s=3 n=4", "b=1 s=2 n=3", "b=3 s=1 n=2", "b=2 s=2 n=5"]
distinct = true
ops = [
    "Add(#, #)",
    "LayerNormalization(#, %, %, axis=2, epsilon=0.25)",
    "com.microsoft::SkipLayerNormalization(#, #, %, %, epsilon=0.25) -> 4",
]
"""


@pytest.mark.unit
def test_two_results_of_an_operator_with_more_are_enough(tmp_path: Path) -> None:
    of = scene(tmp_path, NORMALIZED, 2)
    _, pairs = enumerated(of)
    texts = [format_rule(to_rule(way, of, "found")) for pair in joined(pairs, of) for way in directions(pair, of)]
    wanted = (
        "y2 = Add(x, z)\n  y1 = LayerNormalization(y2, g, c, axis=2, epsilon=0.25)\n  =>\n  y1, _, _, y2 = com.micro"
    )
    assert any(wanted in text for text in texts)


@pytest.mark.unit
def test_the_number_of_processes_and_the_memory_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("superopt.generate.local.FEW", 64)
    of = scene(tmp_path, MATRICES, 3)
    first, pairs = enumerated(of)
    for workers, memory in ((2, 1 << 30), (1, 4096)):
        again, others = enumerated(of, workers, memory=memory)
        assert others == pairs
        assert again.progress.graphs == first.progress.graphs


@pytest.mark.unit
def test_of_pairs_that_differ_by_names_one_is_looked_at(tmp_path: Path) -> None:
    of = scene(tmp_path, MATRICES.replace("x: [m, k]", "x: [m, k]  y: [m, k]"), 2)
    _, pairs = enumerated(of)
    looked_at = told([p for p in pairs if first_of_its_names(p, of)], of)
    assert "Relu(x) = Relu(Relu(x))" in looked_at
    assert "Relu(y) = Relu(Relu(y))" in told(pairs, of) - looked_at


@pytest.mark.unit
def test_plans_do_not_travel_to_processes_where_objects_have_other_identities() -> None:
    plan = Plan({1: np.zeros(1)}, {2: (np.zeros(1),)})
    assert pickle.loads(pickle.dumps(plan)) == Plan()


@pytest.mark.unit
def test_filters_are_weights(tmp_path: Path) -> None:
    text = """
[[scene]]
name = "images"
given = "x: [n, c, h]  k: [c, c, 1]"
weights = "k"
worlds = ["n=2 c=2 h=3", "n=1 c=3 h=4", "n=3 c=1 h=2", "n=2 c=4 h=1"]
ops = ["Conv($, %)", "Relu($)"]
"""
    run, _ = enumerated(scene(tmp_path, text, 2))
    terms = {show(term, run.stage.scene.templates) for term in run.table.terms}
    assert {"Conv(x, k)", "Conv(k, k)"} <= terms
    assert not any(term.startswith("Conv(x, x") for term in terms)


@pytest.mark.unit
def test_zeros_of_different_shapes_are_different_values(tmp_path: Path) -> None:
    text = MATRICES.replace('"Relu($)"', '"Sub($, $)"')
    of = scene(tmp_path, text, 1)
    _, pairs = enumerated(of)
    assert "Sub(x, x) = Sub(w, w)" not in told(pairs, of)


@pytest.mark.unit
def test_fingerprints_on_disk_are_those_in_memory() -> None:
    random = np.random.default_rng(0)
    pieces = [random.integers(0, 5000, 700, dtype=np.uint64) << np.uint64(50) for _ in range(5)]
    known = np.unique(random.integers(0, 5000, 300, dtype=np.uint64) << np.uint64(50))
    found = []
    for memory in (1 << 30, 2000):
        keys = Keys(memory)
        for piece in pieces:
            keys.append(piece)
        assert [p.tolist() for p in keys] == [p.tolist() for p in pieces]
        found.append(keys.meeting(known).tolist())
        keys.close()
    values, counts = np.unique(np.concatenate(pieces), return_counts=True)
    wanted = np.union1d(values[counts > 1], np.intersect1d(values, known))
    assert found[0] == found[1] == wanted.tolist()


@pytest.mark.unit
def test_spellings_too_large_to_meet_are_peeled(tmp_path: Path) -> None:
    text = """
[[scene]]
name = "rms"
given = "x: [...b, n]  g: [n]"
weights = "g"
worlds = ["b=2 n=3", "b= n=4", "b=3,1 n=2", "b=1 n=5"]
max-ops = 2
ops = ["ReduceMean($, axes=[|b|])", "Mul($, $)", "Add($, 1e-5)", "Sqrt($)", "Div($, $)"]
targets = ["SimplifiedLayerNormalization($, $, axis=|b|, epsilon=1e-5)"]
"""
    of = scene(tmp_path, text, 2)
    _, pairs = enumerated(of)
    target = "SimplifiedLayerNormalization(x, g, axis=|b|, epsilon=1e-5)"
    spelled = {s for p in pairs if show(p.left[0], of.templates) == target for s in [show(p.right[0], of.templates)]}
    assert "Div(Mul(x, g), Sqrt(Add(ReduceMean(Mul(x, x), axes=[|b|]), 1e-5)))" in spelled


def test_graphs_with_several_results_are_counted_as_choices():
    # 3 graphs with one operator, 10 with two: {a, b} of the three; {a, A}; {a, b, c}.
    assert side_by_side([0, 3, 10], 2) == 3
    assert side_by_side([0, 3, 10, 100], 3) == 3 + 3 * 10 + 1
    assert side_by_side([0, 1, 0, 0], 3) == 0


@pytest.mark.unit
def test_of_too_many_pairs_the_smallest_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = scene(tmp_path, MATRICES, 3)
    run, every = enumerated(of)
    assert run.progress.beyond == 0
    monkeypatch.setattr("superopt.generate.enumerate.MOST_MET", 100)
    short, some = enumerated(of)
    assert short.progress.beyond > 0
    assert set(some) < set(every)
    last = [pair for pair in some if size(*pair.right) == 3]
    largest = max(written(pair.right) for pair in last)
    assert largest <= min(written(pair.right) for pair in set(every) - set(some))
