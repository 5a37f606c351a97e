"""The shipped recipes say what can be computed: every operator fits some operands in every world."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pytest

import specs
from superopt.errors import BadInput
from superopt.generate.candidate import directions
from superopt.generate.recipe import FEWEST_WORLDS, Recipe, Scene, load_recipe, shipped
from superopt.generate.stage import Signature, Stage
from superopt.generate.term import Node, Pair
from superopt.ops.domains import Reals
from superopt.ops.evaluate import evaluate
from superopt.rewrite.expression import names_in
from superopt.rewrite.rule import Block, Number

pytestmark = pytest.mark.unit

REGISTRY = specs.load()
RECIPES = {name: load_recipe(name, REGISTRY) for name in shipped()}
SCENES = [pytest.param(scene, id=f"{name}-{scene.name}") for name, r in RECIPES.items() for scene in r.scenes]
DEEPEST = 3
"""Operators below which every operator of a scene must have become legal once."""
TRIES = 1_000, 10_000
"""Of operands, for each operator: a few are enough for most scenes."""
MOST_ELEMENTS = 64
"""Of an input, so that millions of values stay cheap."""

Choose: TypeAlias = "Callable[[list[Signature], int], Iterator[tuple[Signature, ...]]]"


def test_the_recipes_of_the_manual_are_shipped() -> None:
    assert {"taso", "linear", "conv", "pointwise", "reduce", "layout", "fused"} <= set(RECIPES)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_scenes_have_names_of_their_own(recipe: Recipe) -> None:
    names = [scene.name for scene in recipe.scenes]
    assert len(set(names)) == len(names)
    assert recipe.doc


@pytest.mark.parametrize("scene", SCENES)
def test_worlds_differ_and_name_every_size(scene: Scene) -> None:
    worlds = [tuple(sorted(world.items())) for world in scene.worlds]
    assert len(set(worlds)) == len(worlds) >= FEWEST_WORLDS
    mentioned = {n for g in scene.given for d in g.dims for n in (_size_names(d))} | {g.name for g in scene.whole}
    assert len({frozenset(world) for world in scene.worlds}) == 1
    assert set(scene.worlds[0]) == mentioned
    for template in scene.templates:
        used = {n for _, value in template.call.arguments for n in names_in(value)}
        used |= {n for o in template.call.operands if isinstance(o, Number) for n in names_in(o.expression)}
        assert {n.strip("|") for n in used} <= mentioned, template.text


def _size_names(dim: Any) -> set[str]:
    return {dim.name} if isinstance(dim, Block) else names_in(dim)


@pytest.mark.parametrize("scene", SCENES)
def test_inputs_are_small_and_told_apart(scene: Scene) -> None:
    stage = Stage(scene, REGISTRY, 0)
    assert 1 <= len(scene.given) <= 10
    for signature in stage.leaves.values():
        assert all(1 <= math.prod(shape) <= MOST_ELEMENTS for shape in signature)
    assert any(g.name not in scene.weights for g in scene.given)


@pytest.mark.parametrize("scene", SCENES)
def test_every_operator_fits_some_operands_in_every_world(scene: Scene) -> None:
    stage = Stage(scene, REGISTRY, 0)
    waiting = set(range(len(scene.templates)))
    for tries, choose in itertools.product(TRIES, (_different, _any)):
        shapes = list(dict.fromkeys(stage.leaves.values()))
        for _ in range(DEEPEST):
            if waiting:
                shapes = list(dict.fromkeys([*shapes, *_found(stage, shapes, choose, waiting, tries)]))
    assert [scene.templates[number].text for number in waiting] == []


def _found(stage: Stage, shapes: list[Signature], choose: Choose, waiting: set[int], tries: int) -> list[Signature]:
    """Shapes of what the operators give for operands of these shapes; takes operators that fit off the waiting list."""
    found: list[Signature] = []
    for number, template in enumerate(stage.scene.templates):
        for operands in itertools.islice(choose(shapes, template.slots), tries):
            applied = stage.apply(number, operands)
            if applied is None:
                continue
            if number in waiting:
                _assert_computable(stage, number, operands)
                waiting.remove(number)
            found += [stage.signature(applied, output) for output in range(template.outputs)]
    return found


def _different(shapes: list[Signature], slots: int) -> Iterator[tuple[Signature, ...]]:
    """Operands whose shapes differ, which is quick where many are joined."""
    return itertools.permutations(shapes, slots)


def _any(shapes: list[Signature], slots: int) -> Iterator[tuple[Signature, ...]]:
    return itertools.product(shapes, repeat=slots)


def _assert_computable(stage: Stage, number: int, operands: tuple[Signature, ...]) -> None:
    """The formula has a number for every element, in each world."""
    applied = stage.apply(number, operands)
    assert applied is not None
    random = np.random.default_rng(0)
    for world, at in enumerate(applied):
        inputs = {f"s{k}": random.uniform(0.5, 2, signature[world]) for k, signature in enumerate(operands)}
        for result in at.results:
            values = evaluate(result, inputs, Reals())
            assert values.shape == tuple(int(n) for n in result.shape)  # pyright: ignore[reportArgumentType]
            assert np.isfinite(values).all(), stage.scene.templates[number].text


def test_an_arrow_inside_an_equation_is_no_number_of_results(tmp_path: Any) -> None:
    scene = _load(tmp_path, 'ops = ["Einsum($, $, equation=\\"ij,jk->ik\\")", "Split($, split=[m, m], axis=0) -> 2"]')
    assert [t.outputs for t in scene.templates] == [1, 2]


def test_targets_are_among_the_operators(tmp_path: Any) -> None:
    scene = _load(tmp_path, 'ops = ["Erf($)"]\ntargets = ["Gelu($)"]')
    assert scene.targets == ("Gelu(s0)",)
    assert [t.call.op for t in scene.templates] == ["Erf", "Gelu"]


def test_a_scene_says_where_laws_lead_uphill(tmp_path: Any) -> None:
    ops = 'ops = ["Relu($)", "Neg(Min(Neg($), 0))"]'
    short, long = (Node(template, ("x",)) for template in range(2))
    shorter, longer = Pair((long,), (short,)), Pair((short,), (long,))
    assert list(directions(longer, _load(tmp_path, ops))) == [shorter]
    assert list(directions(longer, _load(tmp_path, f"{ops}\nuphill = true"))) == [longer]


def test_whole_numbers_are_no_inputs(tmp_path: Any) -> None:
    scene = _load(tmp_path, 'ops = ["Slice($, starts=[0], ends=[p], axes=[0])"]', more="  p: int", world=" p=1")
    assert [g.name for g in scene.given] == ["x"]
    assert [g.name for g in scene.whole] == ["p"]


def test_an_operator_that_nobody_defines_is_refused(tmp_path: Any) -> None:
    with pytest.raises(BadInput, match="Frobnicate"):
        _load(tmp_path, 'ops = ["Frobnicate($)"]')


@pytest.mark.parametrize("key", ["uphill", "distinct"])
def test_what_is_neither_true_nor_false_is_refused(tmp_path: Any, key: str) -> None:
    with pytest.raises(BadInput, match=f"`{key}` must be true or false, not 'no'"):
        _load(tmp_path, f'ops = ["Relu($)"]\n{key} = "no"')


def _load(folder: Any, ops: str, more: str = "", world: str = "") -> Scene:
    path = folder / "one.toml"
    worlds = ", ".join(f'"m={m}{world}"' for m in (1, 2, 3, 4))
    path.write_text(f'[[scene]]\nname = "one"\ngiven = "x: [m, m]{more}"\nworlds = [{worlds}]\n{ops}\n')
    return load_recipe(str(path), REGISTRY).scenes[0]
