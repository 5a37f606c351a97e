# pyright: basic
"""Blocks inside a model's own functions, and inside the bodies of its nodes, are mined as well."""

from __future__ import annotations

import onnx.parser
import pytest
from onnx import shape_inference

from superopt.generate.answering import MEMORY, Workers
from superopt.generate.ledger import Ledger
from superopt.ir.onnx import inlined, parse
from superopt.mine.mine import Miner
from superopt.rewrite.rule import calls_of
from tests.mine.blocks import REGISTRY

HEAD = '<ir_version: 8, opset_import: ["" : 17, "mine" : 1]>'
SPELLED = """
  a = Div(x, r)
  b = Erf(a)
  c = Add(b, one)
  d = Mul(x, c)
  y = Mul(d, h)
"""
NUMBERS = (
    "h = Constant<value_float = 0.5>()\n one = Constant<value_float = 1.0>()\n r = Constant<value_float = 1.41421356>()"
)

FUNCTION = f"""{HEAD}
g (float[2,5,12] x) => (float[2,5,12] y) {{ y = mine.Bent(x) }}
<domain: "mine", opset_import: ["" : 17]>
Bent (x) => (y) {{ {NUMBERS} {SPELLED} }}
"""

BODY = f"""{HEAD}
g (float[2,5,12] x, bool which) => (float[2,5,12] z)
<float h = {{0.5}}, float one = {{1}}, float r = {{1.41421356}}>
{{
  z = If (which) <
    then_branch = then_graph () => (float[2,5,12] y) {{ {SPELLED} }},
    else_branch = else_graph () => (float[2,5,12] n) {{ n = Neg(x) }}
  >
}}
"""


@pytest.mark.smt
@pytest.mark.parametrize("text", [FUNCTION, BODY], ids=["function", "body"])
def test_blocks_inside_are_mined(text: str) -> None:
    proto = shape_inference.infer_shapes(onnx.parser.parse_model(text), strict_mode=True)
    with Workers(1, (), MEMORY) as pool:
        miner = Miner(REGISTRY, Ledger(), pool, anchors=frozenset({"Erf"}))
        found = list(miner.mine(inlined(parse(proto.SerializeToString())), "a test"))
    assert any(call.op == "Gelu" for mined in found for call in calls_of(mined.rule.right))
