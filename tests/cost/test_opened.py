"""When models are started: beside others, or in the turn where a first run chooses kernels by timing them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from superopt.cost.measure import opened
from superopt.errors import CannotRun
from superopt.runtime.deployment import Deployment
from superopt.runtime.session import Session

pytestmark = pytest.mark.unit

HEURISTIC = (("cudnn_conv_algo_search", "HEURISTIC"),)
TUNED = (("ep.cuda.enable_gemm_auto_tune", "1"),)


class Fake:
    """A session that counts what is asked of it."""

    def __init__(self, deployment: Deployment, fails: bool = False) -> None:
        self.deployment, self.fails, self.bound, self.closed = deployment, fails, 0, 0

    def bind(self, feeds: Any) -> Any:
        self.bound += 1
        if self.fails:
            raise CannotRun("no kernel")
        return SimpleNamespace(run=lambda: None)

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize(
    ("deployment", "started"),
    [
        (Deployment("cpu"), 0),
        (Deployment("cuda"), 0),
        (Deployment("cuda", provider_options=(("cudnn_conv_algo_search", "EXHAUSTIVE"),)), 0),
        (Deployment("cuda", provider_options=HEURISTIC, config=TUNED), 0),
        (Deployment("cuda", provider_options=HEURISTIC), 1),
    ],
)
def test_a_model_is_started_as_it_is_opened_where_no_kernels_are_timed_for_it(
    deployment: Deployment, started: int
) -> None:
    session = Fake(deployment)
    model = opened(cast(Session, session), {})
    assert session.bound == started
    model.start()
    model.start()
    assert session.bound == 1


def test_a_model_that_fails_at_once_is_closed() -> None:
    session = Fake(Deployment("cuda", provider_options=HEURISTIC), fails=True)
    with pytest.raises(CannotRun, match="no kernel"):
        opened(cast(Session, session), {})
    assert session.closed == 1
