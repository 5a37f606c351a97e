# pyright: basic
"""What is concluded from candidates that could not run, and that others take their places on the clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from superopt.cost.turn import ALONE
from superopt.runtime.deployment import Deployment
from superopt.search.ending import Ending
from superopt.search.hunted import Budget, Hunted
from superopt.search.judge import MEASURED, Judge, Look
from superopt.search.kernels import Kernels
from superopt.search.learning import Learner
from superopt.search.scales import Scales

pytestmark = pytest.mark.unit


class Stub(SimpleNamespace):
    __hash__ = object.__hash__  # pyright: ignore[reportAssignmentType]


def candidate(*uses: str) -> Any:
    """Of operators such as `Conv` and `Fused/Relu/half`: with an activation, of a type."""
    members = []
    for use in uses:
        kind, activation, dtype = [*use.split("/"), "", ""][:3]
        attributes = (("activation", activation), ("alpha", 0.5)) if activation else ()
        members.append(SimpleNamespace(kind=kind, attributes=attributes, types=(SimpleNamespace(dtype=dtype),)))
    return Stub(piece=SimpleNamespace(members=members, results=uses), theme=uses, cost=1.0, steps=(), uses=uses)


@pytest.fixture
def kernels() -> Kernels:
    return Kernels()


def test_what_failed_has_an_operator_that_nothing_which_ran_has(kernels: Kernels) -> None:
    kernels.learn([candidate("Conv", "Add")], [candidate("Conv", "Fused/Tanh")])
    assert not kernels.runs(candidate("Add", "Fused/Tanh"))
    assert kernels.runs(candidate("Conv", "Fused/Relu"))
    assert kernels.runs(candidate("Conv", "MatMul"))


def test_of_two_suspects_both_must_be_there(kernels: Kernels) -> None:
    kernels.learn([candidate("Conv")], [candidate("Conv", "Fused", "MatMul")])
    assert kernels.runs(candidate("Fused"))
    assert kernels.runs(candidate("MatMul"))
    assert not kernels.runs(candidate("MatMul", "Fused"))
    kernels.learn([candidate("MatMul")], [])
    assert not kernels.runs(candidate("Fused"))


def test_one_type_says_nothing_of_another(kernels: Kernels) -> None:
    kernels.learn([candidate("Fused//float")], [candidate("Fused//half")])
    assert not kernels.runs(candidate("Fused//half"))
    assert kernels.runs(candidate("Fused//float"))


def test_a_failure_without_suspects_rules_nothing_out(kernels: Kernels) -> None:
    kernels.learn([candidate("Conv", "Relu")], [candidate("Relu", "Conv")])
    assert kernels.runs(candidate("Conv"))


class Device:
    """Its clock takes a second for each operator; it has no kernel for `missing`."""

    turn = ALONE
    deployment = Deployment("cpu")

    def __init__(self, missing: str) -> None:
        self.missing, self.timed = missing, list[tuple[str, ...]]()

    def time(self, subjects: Sequence[Any], seconds: float, tell: Callable[[int, str], None], **_: Any) -> list[Any]:
        self.timed += subjects[1:]
        times: list[float | None] = [float(len(uses)) for uses in subjects]
        for i, uses in enumerate(subjects):
            if self.missing in uses:
                tell(i, "no kernel")
                times[i] = None
        return times


@dataclass(frozen=True)
class Counted(Scales):
    """Prices a graph by its operators, and takes what is fused for nothing."""

    candidates: Sequence[Any]

    def price(self, piece: Any, region: Any) -> float:
        return len(piece.members) - sum(node.kind == "Fused" for node in piece.members)

    def subject(self, piece: Any, region: Any) -> Any:
        return next(c.uses for c in self.candidates if c.piece is piece)

    def graph(self, piece: Any, region: Any) -> Any:
        return piece


def judged(device: Device, candidates: Sequence[Any]) -> Look:
    anything: Any = SimpleNamespace()
    scales = Counted(anything, {}, Learner(anything), cast(Any, device), candidates)
    budget = Budget(search=60.0, measure=1e9, candidates=100, alpha=1.05, growth=0)
    judge = Judge(scales, budget, Hunted(), lambda *_: None, Ending(), anything)
    look = Look([SimpleNamespace(members=())], 1.0, 1, candidates=candidates)  # pyright: ignore[reportArgumentType]
    judge.time(look)
    return look


def test_others_are_timed_in_place_of_those_that_cannot_run() -> None:
    start, good = candidate("Conv", *["Add"] * 9), candidate("Conv", *["Add"] * 8)
    fused = [candidate("Conv", "Fused", *["Add"] * count) for count in range(7)]
    for missing, expected in (("Fused", 9.0), ("", 2.0)):
        device = Device(missing)
        look = judged(device, [start, *fused, good])
        assert min(t for c, t in look.times.items() if t is not None and c is not start) == expected
        assert len([uses for uses in device.timed if "Fused" in uses]) <= MEASURED
