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


def test_by_how_much_it_was_slower_is_remembered_and_the_rules_are_named() -> None:
    candidates, repute = known(), Repute()
    repute.learn(1.0, {candidates["lora"]: 0.8, candidates["both"]: 1.2})
    assert repute.blamed(candidates["both"]) == {GELU}
    assert repute.slowdown(candidates["both"]) == pytest.approx(1.5)
    assert repute.blamed(candidates["lora"]) == set()
    assert repute.slowdown(candidates["lora"]) == 1.0


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


class Exchanging(Told):
    """What a candidate spares and adds is what the test says; nothing is kept, but told."""

    def __init__(self, repute: Repute, prices: dict[Candidate, float], added: float = 0.0) -> None:
        super().__init__(repute)

        class Scales:
            def exchanged(self, before, after, region) -> tuple[float, float]:
                return 1.0, added

        by_piece = {id(c.piece): seconds for c, seconds in prices.items()}
        self._price = lambda piece, _: by_piece[id(piece)]
        self.scales = cast(Any, Scales())
        self.growth = cast(Any, self)

    def take(self, change: object) -> None:
        """As a growth does."""

    def _change(self, look: Look, candidate: Candidate) -> Any:
        return candidate

    def _keep(self, *_: Any, **__: Any) -> None:
        """Told by what is returned."""


def guessed(prices: dict[str, float], repute: Repute | None = None, first: tuple[str, ...] = (), added: float = 0.0):
    """The rules of the candidate that is guessed, by its name."""
    start, _, _ = explored()
    candidates = {"start": Candidate(start, 1.0, ()), **known()}
    judge = Exchanging(repute or Repute(), {candidates[name]: s for name, s in {"start": 1.0, **prices}.items()}, added)
    look = Look([cast(Any, None)], 1.0, 1)
    look.candidates = [candidates["start"], *(candidates[name] for name in prices if name not in first)]
    look.first = [candidates[name] for name in first]
    steps = judge._guessed(look)
    return next(name for name, c in candidates.items() if c.steps == steps)


def test_a_small_gain_is_guessed_where_work_is_only_spared() -> None:
    assert guessed({"lora": 0.95}) == "lora"
    assert guessed({"lora": 0.95}, added=0.5) == "start"
    assert guessed({"lora": 0.8}, added=0.5) == "lora"
    assert guessed({"lora": 0.98}) == "start"


def test_what_is_doubted_is_guessed_where_it_should_be_far_faster_than_what_is_not() -> None:
    candidates, repute = known(), Repute()
    repute.learn(1.0, {candidates["gelu"]: 1.1})
    assert guessed({"lora": 0.7, "both": 0.6}, repute) == "lora"
    assert guessed({"lora": 0.7, "both": 0.5}, repute) == "both"
    assert guessed({"both": 0.8}, repute) == "start"


def test_what_is_asked_about_first_may_be_guessed() -> None:
    assert guessed({"lora": 0.7, "both": 0.5}, first=("both",)) == "both"
