# pyright: basic
"""Which variant is checked and raced: also one without operators that rewrites brought in."""

from __future__ import annotations

from pathlib import Path

import pytest

from superopt.ir.files import Written
from superopt.ir.graph import Graph
from superopt.ir.onnx import stage
from superopt.search.choosing import Chooser
from superopt.search.ending import Ending
from superopt.search.variants import ALL
from tests.search.test_ablation import with_gelu
from tests.search.test_contest import GELU_OPERATOR, Told
from tests.search.test_hunt import hunted

pytestmark = pytest.mark.ort

WITHOUT = f"{ALL} but {GELU_OPERATOR}"


def chosen(speeds: dict[str, float], folder: Path, ending: Ending | None = None) -> tuple[str, list[str], list[str]]:
    """Who wins, whose files are left, and whose are on the disk."""
    shop, found, _ = hunted(with_gelu())
    staged: list[Path] = []

    def put(graph: Graph) -> Written:
        staged.append(folder / f"candidate{len(staged)}")
        return stage(shop.model, graph, staged[-1], "m.onnx", "m.onnx.data")

    told = Told({"original": 1.0, **speeds})
    chooser = Chooser(told, shop.model, 1.0, ending or Ending(), put)  # pyright: ignore[reportArgumentType]
    variant, files = chooser.of_all(shop, (), found)
    return variant.name, sorted(files), [path.name for path in staged if path.exists()]


def test_an_operator_that_does_not_pay_is_left_out(tmp_path: Path) -> None:
    name, files, there = chosen({ALL: 1.3, WITHOUT: 1.4}, tmp_path)
    assert (name, files) == (WITHOUT, [ALL, WITHOUT])
    assert len(there) == 2


def test_one_that_pays_stays_and_what_lost_is_removed(tmp_path: Path) -> None:
    name, files, there = chosen({ALL: 1.3, WITHOUT: 1.2}, tmp_path)
    assert (name, files) == (ALL, [ALL])
    assert len(there) == 1


def test_once_an_end_is_asked_for_nothing_is_left_out(tmp_path: Path) -> None:
    name, files, _ = chosen({}, tmp_path, Ending(lambda: True))
    assert (name, files) == (ALL, [ALL])
