"""What masks are filled with."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.check.domains import Domain
from superopt.check.fill import Style, fill
from superopt.ir.types import DType

pytestmark = pytest.mark.unit

ROWS = Style("masks with nothing in some rows", flags="rows")


def test_some_rows_of_a_mask_show_nothing_and_others_something() -> None:
    mask = fill(Domain("flag"), DType.BOOL, (2, 1, 6, 32), ROWS, 0, [0])
    shown = np.any(mask, axis=-1)
    assert not shown[..., ::3].any()
    assert np.delete(shown, (0, 3), axis=-1).all()


def test_a_mask_without_rows_is_as_random_as_any() -> None:
    assert set(fill(Domain("flag"), DType.INT64, (64,), ROWS, 0, [0]).tolist()) == {0, 1}
