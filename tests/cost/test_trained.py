"""Prices that were learned of a device are where its calibration starts from, and nobody else's."""

from __future__ import annotations

import pytest

from superopt.cost.coefficients import priors
from superopt.cost.columns import Column
from superopt.cost.trained import FILE, Trained, start_of, written

pytestmark = pytest.mark.unit

LEARNED = Trained(
    target="cuda", device="a GPU", driver="1", runtime="1.31.1", deployment="cuda", observations=3,
    seconds={"launch run": 3e-6, "convolution operation depthwise 9": 5e-13},
)  # fmt: skip


def test_what_is_shipped_is_used_for_its_device_alone() -> None:
    found = start_of("cuda", "NVIDIA H200")
    assert found != priors("cuda")
    assert set(priors("cuda").seconds) <= set(found.seconds)
    assert start_of("cuda", "another GPU") == priors("cuda")
    assert start_of("cpu", "NVIDIA H200") == priors("cpu")


def test_columns_keep_their_names_and_what_was_not_learned_stays() -> None:
    found = LEARNED.coefficients
    assert found.of(Column("launch", "run")) == 3e-6
    assert found.of(Column("convolution", "operation", "depthwise 9")) == 5e-13
    assert found.of(Column("pool", "element")) == priors("cuda").of(Column("pool", "element"))


def test_the_file_is_what_the_script_would_write() -> None:
    from pydantic import TypeAdapter

    text = FILE.read_text()
    assert written(TypeAdapter(list[Trained]).validate_json(text)) == text
