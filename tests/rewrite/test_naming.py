# pyright: basic
"""What would be computed from the very value that it replaces is not offered: it only adds work."""

from __future__ import annotations

import pytest

from superopt.rewrite.rewriter import Rules
from superopt.rewrite.text import parse_rules
from tests.rewrite.small import model
from tests.rewrite.taking import REGISTRY, opened

pytestmark = pytest.mark.unit

PADDED = """rule padded
  doc     A border of zeros may be added afterwards.
  given   x: [n, c, h, w]  k: [o, c, 1, 1]  p: int
  y = Conv(x, k, pads=[p, p, p, p])
  =>
  y = Pad(Conv(x, k), pads=[0, 0, p, p, 0, 0, p, p])
"""


@pytest.mark.parametrize(("border", "offered"), [(1, 1), (0, 0)])
def test_a_border_of_none_is_not_added(border: int, offered: int) -> None:
    size = 4 + 2 * border
    text = f"g (float[1, 2, 4, 4] x, float[3, 2, 1, 1] k) => (float[1, 3, {size}, {size}] y)"
    pads = f"<pads = [{border}, {border}, {border}, {border}]>" if border else ""
    start = opened(model(f"{text} {{ y = Conv {pads} (x, k) }}"))
    found = list(start.matches(start.piece, Rules(parse_rules(PADDED), REGISTRY)))
    assert len(found) == offered
