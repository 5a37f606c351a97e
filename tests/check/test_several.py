"""Several candidates against one original: it is asked once, and each verdict is what a check alone gives."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

from superopt.check import Checker, check
from superopt.ir.onnx import Model
from tests.check.build import FLOAT, model, node, normal, value

pytestmark = pytest.mark.ort


def product(scale: float, first: bool) -> Model:
    """x·(scale·w), or scale·(x·w); w amplifies: a sum of large terms that cancel."""
    w = (normal(64, 8) * 1e3).astype(np.float32)
    c = np.float32(scale)
    if first:
        nodes, constants = [node("MatMul", ["x", "w"], ["y"])], {"w": w * c}
    else:
        nodes = [node("MatMul", ["x", "w"], ["p"]), node("Mul", ["p", "c"], ["y"])]
        constants = {"w": w, "c": np.asarray(c)}
    return model(nodes, [value("x", ["n", 64], FLOAT)], [value("y", ["n", 8], FLOAT)], constants)


def test_the_original_is_asked_once_and_verdicts_are_those_of_checks_alone() -> None:
    original = product(0.37, first=False)
    candidates = [product(0.37, first=True), product(0.3701, first=True), product(0.37, first=True)]
    said: list[str] = []
    with closing(Checker(original)) as checker:
        together = [checker.check(candidate, said.append) for candidate in candidates]
    alone = [check(original, candidate) for candidate in candidates]
    assert [report.status for report in together] == ["equal", "different", "equal"]
    assert together == alone
    asked = [text for text in said if text.startswith("original: ")]
    assert len(asked) == len(set(asked))
    assert said.count("original against itself") <= 1
