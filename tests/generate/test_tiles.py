"""Convolutions by tiles: what a recipe may ask for, the rules that are made of it, and that they are proved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import specs
from superopt.errors import BadInput, BadOption
from superopt.generate.generate import Settings, generate
from superopt.generate.ledger import Ledger
from superopt.generate.recipe import load_recipe
from superopt.generate.tiles import candidates, read_tiling

REGISTRY = specs.load()
ROWS: dict[str, Any] = {"name": "rows", "window": [1, 3], "outputs": [1, 2], "points": ["0", "1", "-1", "1/2"]}
RECIPE = """
doc = "Rows."
[[tiles]]
name = "rows"
window = [1, 3]
outputs = [1, 2]
points = ["0", "1", "-1", "1/2"]
"""


@pytest.mark.unit
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"window": [2]}, "one number for each axis"),
        ({"window": [1, 2]}, "windows are odd"),
        ({"outputs": [1, 0]}, "at least one output"),
        ({"points": ["0", "1"]}, "3 to 16 different points"),
        ({"points": ["0", "1", "1", "2"]}, "different points"),
        ({"points": ["0", "1/0", "2"]}, "rows"),
        ({"points": ["one", "0", "2"]}, "rows"),
        ({"rests": "some"}, "either equal or any"),
        ({"window": 3}, "`window` must be a list"),
        ({"window": [99], "outputs": [90]}, "take 187 points, at most 16"),
        ({"window": [3, 3, 3], "outputs": [2, 2, 2]}, "one axis or two"),
    ],
)
def test_what_cannot_be_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        read_tiling({**ROWS, **changed}, "rows")


@pytest.mark.unit
def test_what_is_missing_is_named() -> None:
    with pytest.raises(BadInput, match="'points' is missing"):
        read_tiling({key: ROWS[key] for key in ("window", "outputs")}, "rows")


@pytest.mark.unit
@pytest.mark.parametrize(
    ("window", "outputs", "rests", "count"),
    [([3, 3], [2, 2], "any", 8), ([3, 3], [2, 2], "equal", 4), ([3], [2], "any", 4), ([1, 3], [1, 2], "equal", 4)],
)
def test_there_is_a_rule_for_every_rest_with_a_bias_and_without(
    window: list[int], outputs: list[int], rests: str, count: int
) -> None:
    tiling = read_tiling({**ROWS, "window": window, "outputs": outputs, "rests": rests}, "here")
    tables, tried = tiling.tables()
    rules = list(candidates(tiling, tables))
    assert len(rules) == count
    assert len({str(rule.given) for rule in rules}) == count
    assert tried >= 4
    assert all("products for" in rule.doc for rule in rules)


@pytest.mark.unit
@pytest.mark.parametrize("text", ['tiles = "threes"', 'scene = "x"', "tiles = [1]", "[scene]\nname = 'x'"])
def test_entries_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(text)
    with pytest.raises(BadInput, match="must be entries of their own"):
        load_recipe(str(path), REGISTRY)


@pytest.mark.smt
def test_the_number_of_workers_does_not_change_how_many_are_asked(tmp_path: Path) -> None:
    path = tmp_path / "rows.toml"
    path.write_text(RECIPE)
    for workers in (1, 2):
        settings = Settings(seconds=30, workers=workers, candidates=1)
        ((counts, findings),) = generate(load_recipe(str(path), REGISTRY), REGISTRY, Ledger(), settings)
        assert (len(findings), counts.left, counts.stopped) == (1, 3, True)


@pytest.mark.smt
def test_a_recipe_of_tiles_is_proved_and_written(tmp_path: Path) -> None:
    path = tmp_path / "rows.toml"
    path.write_text(RECIPE)
    recipe = load_recipe(str(path), REGISTRY)
    ((counts, findings),) = generate(recipe, REGISTRY, Ledger(), Settings(seconds=30, workers=2))
    assert (counts.proved, counts.refuted, counts.unknown, counts.unsafe) == (4, 0, 0, 0)
    assert [finding.scene for finding in findings] == ["rows"] * 4
    assert all(finding.rule.calls[0].op == "Conv" for finding in findings)


@pytest.mark.unit
def test_scenes_are_chosen_by_name(tmp_path: Path) -> None:
    path = tmp_path / "rows.toml"
    path.write_text(RECIPE)
    recipe = load_recipe(str(path), REGISTRY)
    assert recipe.only(["rows"]) == recipe
    with pytest.raises(BadOption, match="no scene columns; it has rows"):
        recipe.only(["columns"])
    with pytest.raises(BadInput, match="has no scene with any of MatMul"):
        load_recipe(str(path), REGISTRY, ops=["MatMul"])
