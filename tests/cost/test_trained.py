"""Prices that were learned of a device are where its calibration starts from, and nobody else's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from superopt.cost.coefficients import priors
from superopt.cost.columns import Column
from superopt.cost.machine import Machine
from superopt.cost.trained import FILE, Trained, learned, start_of, written
from superopt.runtime.deployment import Deployment

pytestmark = pytest.mark.unit

RECORDED = Deployment("cuda", threads=3, provider_options=(("enable_cuda_graph", "1"),))
H200 = Machine("cuda", "NVIDIA H200", "another driver", "1.31.1")
LEARNED = Trained(
    target="cuda", device="a GPU", driver="1", runtime="1.31.1", deployment="cuda", observations=3,
    seconds={"launch run": 3e-6, "convolution operation depthwise 9": 5e-13},
)  # fmt: skip


def test_what_is_shipped_is_used_for_its_device_alone() -> None:
    found = start_of(RECORDED, "NVIDIA H200")
    assert found != priors("cuda")
    assert set(priors("cuda").seconds) <= set(found.seconds)
    assert start_of(RECORDED, "another GPU") == priors("cuda")
    assert start_of(Deployment("cpu", threads=1), "NVIDIA H200") == priors("cpu")


def test_options_that_kernels_depend_on_have_prices_of_their_own() -> None:
    others = replace(RECORDED, threads=7, provider_options=(*RECORDED.provider_options, ("prefer_nhwc", "1")))
    assert start_of(others, "NVIDIA H200") != start_of(RECORDED, "NVIDIA H200")
    assert learned(others, H200) == start_of(others, "NVIDIA H200")
    assert learned(RECORDED, replace(H200, device="another GPU")) is None
    searched = replace(others, provider_options=(*others.provider_options, ("cudnn_conv_algo_search", "HEURISTIC")))
    assert learned(searched, H200) == learned(others, H200)
    strange = replace(RECORDED, config=(("session.strange", "1"),))
    assert learned(strange, H200) is None
    assert learned(RECORDED, replace(H200, runtime="1.0")) is None
    assert start_of(strange, "NVIDIA H200") == start_of(RECORDED, "NVIDIA H200")


def test_columns_keep_their_names_and_what_was_not_learned_stays() -> None:
    found = LEARNED.coefficients
    assert found.of(Column("launch", "run")) == 3e-6
    assert found.of(Column("convolution", "operation", "depthwise 9")) == 5e-13
    assert found.of(Column("pool", "element")) == priors("cuda").of(Column("pool", "element"))


def test_the_file_is_what_the_script_would_write() -> None:
    from pydantic import TypeAdapter

    text = FILE.read_text()
    assert written(TypeAdapter(list[Trained]).validate_json(text)) == text
