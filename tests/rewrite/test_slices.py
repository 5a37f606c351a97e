# pyright: basic
"""Slices as exporters write them: to the end by a huge number, from the end by a negative one."""

from __future__ import annotations

import pytest

from superopt.rewrite.reading import Reading
from tests.rewrite.small import model
from tests.rewrite.taking import opened

pytestmark = pytest.mark.unit

FAR = 9223372036854775807
TEXT = """
g (float[{}] x) => (float y)
<int64[1] start = {{{}}}, int64[1] end = {{{}}}, int64[1] axis = {{0}}, int64[1] step = {{{}}}>
{{ y = Slice(x, start, end, axis, step) }}"""


def bounds(size: object, start: int, end: int, step: int = 1) -> tuple[str, str]:
    whole = opened(model(TEXT.format(size, start, end, step)))
    reading = whole.rewriter.reader.read(whole.piece.nodes[0])
    assert isinstance(reading, Reading), reading
    ((first,), (past,)) = reading.arguments["starts"], reading.arguments["ends"]
    return str(first), str(past)


@pytest.mark.parametrize(
    ("start", "end", "read"),
    [
        (0, 4, ("0", "4")),
        (3, FAR, ("3", "10")),
        (3, 2**31 - 1, ("3", "10")),
        (-3, FAR, ("7", "10")),
        (0, -3, ("0", "7")),
        (-99, 99, ("0", "10")),
    ],
)
def test_bounds_count_from_the_front_and_stay_within(start: int, end: int, read: tuple[str, str]) -> None:
    assert bounds(10, start, end) == read


def test_what_is_empty_or_backwards_stays_as_it_is_written() -> None:
    assert bounds(10, 5, 5) == ("5", "5")
    assert bounds(10, 9, -FAR, -1) == ("9", str(-FAR))


def test_the_end_of_an_axis_of_unknown_size_is_its_size() -> None:
    assert bounds("N", 0, FAR)[1] == "N"
