"""Weights of workloads: the same numbers every time, and none before somebody wants them."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.cost.samples import samples
from superopt.cost.workloads import weights
from superopt.ir.tensor import Tensor
from superopt.ir.types import DType

pytestmark = pytest.mark.unit


def drawn(*shape: int, dtype: DType = DType.FLOAT32, seed: int = 0) -> Tensor:
    tensor = weights(*shape, dtype=dtype, seed=seed).constant
    assert tensor is not None
    return tensor


def test_the_numbers_are_the_same_every_time_and_differ_with_the_seed() -> None:
    first, again, other = drawn(4, 3), drawn(4, 3), drawn(4, 3, seed=1)
    np.testing.assert_array_equal(first.numpy(), again.numpy())
    assert first.digest == again.digest != other.digest
    assert 0 < np.abs(first.numpy()).max() < 4 / 4**0.5


def test_type_and_content_are_those_that_are_told() -> None:
    half = drawn(2, 5, dtype=DType.FLOAT16)
    assert (half.dtype, half.shape, half.nbytes) == (DType.FLOAT16, (2, 5), 20)
    assert half.numpy().dtype == np.float16
    assert b"".join(half.chunks()) == half.numpy().tobytes()
    with pytest.raises(ValueError, match="read-only"):
        half.numpy()[0, 0] = 1


def test_samples_are_made_without_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np.random, "default_rng", lambda *_: pytest.fail("numbers were drawn"))
    assert len(list(samples("cuda"))) > len(list(samples("cpu"))) > 100
