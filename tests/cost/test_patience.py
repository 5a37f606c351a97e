"""When an open interval is worth more sittings."""

import math

import pytest

from superopt.cost.patience import may_still_win
from superopt.cost.statistics import Estimate

pytestmark = pytest.mark.unit


def interval(centre: float, half: float) -> Estimate:
    """In percent."""
    return Estimate(*(math.exp(x / 100) for x in (centre, centre - half, centre + half)))


@pytest.mark.parametrize(
    ("centre", "half", "at_the_end", "expected", "answer"),
    [
        (1.5, 3.0, 40, 1.0, True),  # 1.5 % are seen, and four times the sittings halve the interval
        (0.1, 3.0, 12, 1.0, False),  # nothing is seen, and little time is left
        (0.1, 3.0, 1000, 1.0, True),
        (-0.1, 3.0, 1000, 1.0, False),  # the centre is on the losing side
        (-0.1, 3.0, 60, 1.015, True),  # but its regions are faster, and the interval holds what they say
        (-0.1, 3.0, 60, 1.05, False),  # what they say is refuted
        (-0.1, 3.0, 11, 1.015, False),  # no time is left to see it
        (-2.0, 1.5, 60, 1.015, False),  # slower
        (2.0, 1.5, 10, 1.0, True),  # won already
    ],
)
def test_what_could_be_told_by_the_end(
    centre: float, half: float, at_the_end: int, expected: float, answer: bool
) -> None:
    assert may_still_win(interval(centre, half), 10, at_the_end, expected) == answer


def test_few_sittings_cannot_be_projected() -> None:
    assert may_still_win(interval(0.1, 20.0), 4, 12)
    assert may_still_win(Estimate(1.01, 0.0, math.inf), 1, 12)
    assert not may_still_win(interval(-0.1, 20.0), 4, 12)
