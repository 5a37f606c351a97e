"""How far a job has come: the stages are those of the search, and no others."""

from __future__ import annotations

from typing import get_args

import pytest

from server.stages import REACHED, Reached
from superopt.engine.job import Stage
from superopt.search.stages import StageName

pytestmark = pytest.mark.unit


def test_every_stage_of_a_run_is_part_of_the_way_in_its_order() -> None:
    assert tuple(REACHED) == get_args(StageName)
    assert list(REACHED.values()) == sorted(REACHED.values())
    assert 0.0 < min(REACHED.values()) < max(REACHED.values()) < 1.0


def test_progress_never_goes_back() -> None:
    reached = Reached().after(Stage(stage="checking"))
    assert reached.progress == REACHED["checking"]
    assert reached.after(Stage(stage="searching", detail="again")).progress == REACHED["checking"]
    assert reached.after(Stage(stage="drawing")).progress == REACHED["drawing"]
    assert reached.after(Stage(stage="something new")).progress == REACHED["checking"]
