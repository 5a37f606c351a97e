"""How long each stage took."""

from __future__ import annotations

import pytest

from superopt.engine.stages import WAITING, Stages

pytestmark = pytest.mark.unit


def test_seconds_add_up_by_stage_and_waiting_counts_apart() -> None:
    now, waited = [0.0], [0.0]
    stages = Stages("starting", lambda: waited[0], lambda: now[0])

    def after(seconds: float, stage: str, waiting: float = 0.0) -> None:
        now[0] += seconds
        waited[0] += waiting
        stages.enter(stage)

    after(1, "searching")
    after(5, "checking", waiting=2)
    after(4, "searching")
    now[0] += 7
    assert stages.seconds() == {"starting": 1, "searching": 3 + 7, WAITING: 2, "checking": 4}
    assert sum(stages.seconds().values()) == now[0]
