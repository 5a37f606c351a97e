"""Pictures of graphs: everything has its place, lines lead down, the same graph gives the same picture."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superopt.explain.layout import REACH, Box, Placed, lay_out

pytestmark = pytest.mark.unit

BOX = Box(100.0, 30.0)
Lines = list[tuple[int, int]]


def graph(seed: int, count: int) -> Lines:
    """Each node after the first reads one or two of those shortly before it."""
    draw = random.Random(seed)
    lines: Lines = []
    for i in range(1, count):
        lines += [(draw.randrange(max(0, i - 8), i), i) for _ in range(draw.choice((1, 1, 2)))]
    return lines


def assert_sound(placed: Placed, boxes: list[Box], lines: Lines) -> None:
    for a, b in lines:
        assert placed.centres[a][1] < placed.centres[b][1]
        points = placed.lines[a, b]
        if points:
            assert (points[0], points[-1]) == (placed.centres[a], placed.centres[b])
            assert [y for _, y in points] == sorted(y for _, y in points)
    rows: dict[float, list[int]] = {}
    for i, (x, y) in enumerate(placed.centres):
        rows.setdefault(y, []).append(i)
        assert -1e-6 <= x - boxes[i].width / 2 <= x + boxes[i].width / 2 <= placed.width + 1e-6
    for row in rows.values():
        row.sort(key=lambda i: placed.centres[i][0])
        for a, b in itertools.pairwise(row):
            assert placed.centres[b][0] - placed.centres[a][0] >= (boxes[a].width + boxes[b].width) / 2


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.integers(1, 60))
def test_boxes_do_not_overlap_and_lines_lead_down(seed: int, count: int) -> None:
    lines = graph(seed, count)
    boxes = [Box(60.0 + i % 7 * 20, 30.0) for i in range(count)]
    placed = lay_out(boxes, lines)
    assert_sound(placed, boxes, lines)
    assert lay_out(boxes, lines) == placed


def test_nothing_takes_no_room() -> None:
    assert lay_out([], []) == Placed((), {}, 0.0, 0.0)


def test_a_chain_is_a_straight_line() -> None:
    placed = lay_out([BOX] * 5, [(i, i + 1) for i in range(4)])
    assert len({round(x, 6) for x, _ in placed.centres}) == 1


def test_a_trunk_stays_straight_beside_the_line_that_skips_it() -> None:
    """Twelve residual blocks: the picture may not wander off to one side."""
    lines: Lines = []
    for block in range(12):
        first = block * 5
        lines += [(first + i, first + i + 1) for i in range(5)] + [(first, first + 5)]
    placed = lay_out([BOX] * 61, lines)
    xs = [x for x, _ in placed.centres]
    assert max(xs) - min(xs) < BOX.width


def test_work_on_a_weight_stands_beside_its_reader() -> None:
    """0 → 1 → … → 9 is the trunk; 10 → 11 ends in the last of them."""
    order = [*range(9), 10, 11, 9]
    at = {node: i for i, node in enumerate(order)}
    trunk = [(at[i], at[i + 1]) for i in range(9)]
    placed = lay_out([BOX] * 12, [*trunk, (at[10], at[11]), (at[11], at[9])])
    assert placed.centres[at[10]][1] == placed.centres[at[7]][1]


def test_lines_do_not_cross_where_they_need_not() -> None:
    placed = lay_out([BOX] * 6, [(0, 5), (1, 4), (2, 3)])
    tops, bottoms = [placed.centres[i][0] for i in (0, 1, 2)], [placed.centres[i][0] for i in (5, 4, 3)]
    assert sorted(range(3), key=tops.__getitem__) == sorted(range(3), key=bottoms.__getitem__)


def test_two_thousand_nodes_and_values_that_are_read_far_away() -> None:
    lines = graph(7, 2000) + [(0, i) for i in range(40, 2000, 40)]
    placed = lay_out([BOX] * 2000, lines)
    assert_sound(placed, [BOX] * 2000, lines)
    assert any(not points for points in placed.lines.values()), f"none passes {REACH} layers"
