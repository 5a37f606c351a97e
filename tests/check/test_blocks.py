"""Pieces of large arrays, several at once."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

from superopt.check import blocks
from superopt.check.blocks import BLOCK, on_each
from superopt.check.compare import compare, scale_of
from superopt.check.tolerance import Rule

pytestmark = pytest.mark.unit

TIGHT = Rule(1e-6, 1e-6)


def test_pieces_are_the_array_in_order_and_none_is_large() -> None:
    array = np.arange(3 * BLOCK + 5).reshape(1, -1)
    pieces = blocks.blocks(array)
    assert max(piece.size for piece in pieces) <= BLOCK
    np.testing.assert_array_equal(np.concatenate(pieces, axis=1), array)
    assert blocks.blocks(array[:, :BLOCK])[0].size == BLOCK
    assert [piece.shape for piece in blocks.blocks(np.empty((0, 3)))] == [(0, 3)]


def test_answers_come_in_order_from_threads_that_work_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "usable_cores", lambda: 3)
    meeting = threading.Barrier(3, timeout=20)  # nobody goes on before three are there

    def work(one: int, other: int) -> tuple[int, int]:
        meeting.wait()
        return one + other, threading.get_ident()

    answers = on_each(work, [1, 2, 3], [10, 20, 30])
    assert [total for total, _ in answers] == [11, 22, 33]
    assert len({thread for _, thread in answers}) == 3


def test_one_piece_needs_no_thread() -> None:
    assert on_each(lambda _: threading.get_ident(), [0]) == [threading.get_ident()]
    assert on_each(lambda _: 1, []) == []


@pytest.mark.parametrize("count", [1, 4])
def test_numbers_that_overflow_do_so_in_silence(count: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert on_each(lambda x: float(x * x), [np.float32(1e30)] * count) == [np.inf] * count


def test_what_a_piece_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        on_each(lambda x: 1 // x, [1, 0, 1])


@pytest.mark.parametrize("place", [0, BLOCK - 1, BLOCK, 2 * BLOCK + 6])
def test_one_wrong_element_of_many_is_seen_wherever_it_is(place: int) -> None:
    reference = np.ones(2 * BLOCK + 7, np.float32)
    found = reference.copy()
    assert compare(reference, found, TIGHT).within
    found[place] = 1.001
    gap = compare(reference, found, TIGHT)
    assert not gap.within
    assert gap.absolute == pytest.approx(0.001, rel=0.01)
    assert gap.elements == reference.size
    found[place] = np.nan
    assert compare(reference, found, TIGHT).wrong


def test_the_scale_is_that_of_the_piece_with_the_largest_numbers() -> None:
    array = np.ones(2 * BLOCK + 7, np.float32)
    array[-BLOCK // 2 :] = 5
    assert 1 < scale_of(array) <= 5
