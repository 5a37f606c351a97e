"""A scene and a way to write its terms down, for tests."""

from __future__ import annotations

from pathlib import Path

import specs
from superopt.generate.recipe import Scene, load_recipe
from superopt.generate.term import Node, Pair, Term
from superopt.rewrite.rule import Call
from superopt.rewrite.text import parse_call

REGISTRY = specs.load()
MATRICES = load_recipe(str(Path(__file__).with_name("tiny.toml")), REGISTRY).scenes[0]


def term(text: str, scene: Scene = MATRICES) -> Term:
    """`Add(x, Relu(y))`; attributes as in the scene; `Split(…).1` is written `Split1(…)`."""
    return text if "(" not in text else _node(parse_call(text), scene)


def _node(call: Call, scene: Scene) -> Node:
    op = call.op.rstrip("0123456789")
    operands = [o for o in call.operands if isinstance(o, str | Call)]
    fixed = [str(o) for o in call.operands if not isinstance(o, str | Call)]
    arguments = {name: str(value) for name, value in call.arguments}
    [template] = [
        k
        for k, t in enumerate(scene.templates)
        if t.call.op == op and t.slots == len(operands) and fixed == [str(n) for n in t.numbers]
        and arguments.items() <= {name: str(value) for name, value in t.call.arguments}.items()
    ]  # fmt: skip
    filled = tuple(o if isinstance(o, str) else _node(o, scene) for o in operands)
    return Node(template, filled, int(call.op[len(op) :] or 0))


def pair(text: str, scene: Scene = MATRICES) -> Pair:
    """`Relu(Relu(x)) = Relu(x)`; several results with `;` between them."""
    left, right = text.replace("axis=", "axis:").split(" = ")
    sides = [tuple(term(t.strip().replace("axis:", "axis="), scene) for t in s.split(";")) for s in (left, right)]
    return Pair(sides[0], sides[1])
