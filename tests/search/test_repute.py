# pyright: basic
"""What the clock has said of rules."""

from __future__ import annotations

from typing import Any, cast

import pytest

from superopt.search.candidate import Candidate
from superopt.search.judge import Judge, Look
from superopt.search.repute import Repute
from tests.search.test_ablation import GELU, LORA, explored, names, price

pytestmark = pytest.mark.ort


def known() -> dict[str, Candidate]:
    _, _, candidates = explored()
    rules = {"lora": [LORA], "gelu": [GELU], "both": [LORA, GELU]}
    return {name: next(c for c in candidates if names([c]) == [steps]) for name, steps in rules.items()}


@pytest.mark.parametrize(
    ("times", "doubtful"),
    [
        ({"lora": 0.8, "both": 1.1}, {"gelu", "both"}),
        ({"both": 1.2}, {"both"}),
        ({"lora": 1.2, "both": 1.2}, {"lora", "both"}),
        ({"gelu": 0.9, "both": 1.2}, {"lora", "both"}),
        ({"lora": 0.8, "both": 0.9}, {"gelu", "both"}),
        ({"lora": 0.8, "gelu": 1.2, "both": 0.7}, set()),
        ({"lora": 1.0, "both": 1.0}, set()),
    ],
)
def test_as_few_rules_are_doubtful_as_explain_what_was_slower(times, doubtful) -> None:
    candidates, repute = known(), Repute()
    repute.learn(1.0, {candidates[name]: taken for name, taken in times.items()})
    assert {name for name, c in candidates.items() if repute.doubts(c)} == doubtful


def test_one_region_where_it_pays_clears_a_rule() -> None:
    candidates, repute = known(), Repute()
    repute.learn(1.0, {candidates["lora"]: 1.3})
    assert repute.doubts(candidates["both"])
    repute.learn(1.0, {candidates["lora"]: 0.5})
    assert not repute.doubts(candidates["both"])


def test_of_rules_that_were_slower_together_those_that_are_not_cleared_are_to_blame() -> None:
    candidates, repute = known(), Repute()
    repute.learn(1.0, {candidates["both"]: 1.3})
    assert not repute.doubts(candidates["lora"])
    repute.learn(1.0, {candidates["gelu"]: 0.5})
    assert repute.doubts(candidates["lora"])
    assert not repute.doubts(candidates["gelu"])


class Told(Judge):
    """Without a clock: predictions are what the test says."""

    def __init__(self, repute: Repute) -> None:
        class All:
            def runs(self, _: Candidate) -> bool:
                return True

        self._price = lambda piece, _: price(piece)
        self._kernels, self._repute = All(), repute


def test_what_is_doubtful_waits_for_the_second_look_and_comes_last() -> None:
    start, _, _ = explored()
    candidates, repute = known(), Repute()
    repute.learn(1.0, {candidates["lora"]: 1.3})
    judge = Told(repute)
    look = Look([cast(Any, None)], 1.0, 1)
    look.candidates = [Candidate(start, price(start), ()), candidates["both"], candidates["gelu"]]
    assert judge.promising(look) == [candidates["gelu"]]
    look.second = True
    assert judge.promising(look)[0] is candidates["gelu"]
    assert candidates["both"] in judge.promising(look)
