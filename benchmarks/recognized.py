# pyright: basic
"""Blocks of models, and how many of them the shipped rules recognize as one operator.

    python benchmarks/recognized.py MODEL … [--rules FILE] [--save]

A block is counted by the node that tells it: the Softmax between the two products of an attention, the root of a
normalization that is spelled out, the Erf, Tanh, Sigmoid or Exp that is multiplied by what it was made of, or divides
it, the turned pairs of a rotation. It is recognized where a proved rule writes an operator of its kind in its place: at
once, after one other rewrite, or after as many steps as the search takes in one of the regions that it cuts, by what it
predicts before anything is measured.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from superopt.cost.predict import Predictor
from superopt.cost.structure import structure
from superopt.ir.graph import Node, Value
from superopt.ir.onnx import load
from superopt.normalize import normalize
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter, Rules
from superopt.rewrite.rule import Rule, calls_of
from superopt.rewrite.whole import piece_of
from superopt.search.bodies import graphs
from superopt.search.explore import Limits, explore
from superopt.search.hunt import ORDER
from superopt.search.regions import Region, cut, graph_of_region, weight_nodes
from superopt.search.rulebook import open_rulebook

RESULTS = Path(__file__).parent / "results"
KINDS = {
    "attention": frozenset(("Attention", "MultiHeadAttention", "GroupQueryAttention")),
    "normalization": frozenset(
        ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization", "SkipLayerNormalization",
         "SkipSimplifiedLayerNormalization", "GroupNormalization", "InstanceNormalization", "GroupNorm")
    ),
    "activation": frozenset(
        ("Gelu", "FastGelu", "QuickGelu", "BiasGelu", "Swish", "HardSwish", "Mish", "Softplus")
    ),
    "rotary": frozenset(("RotaryEmbedding",)),
}  # fmt: skip
_BENDS = frozenset(("Tanh", "Sigmoid", "Clip", "HardSigmoid", "Exp"))
_PRODUCTS = frozenset(("MatMul", "Einsum"))
_AXES = frozenset(("Reshape", "Unsqueeze", "Squeeze"))
_THROUGH = frozenset(
    ("Transpose", "Reshape", "Cast", "Identity", "Squeeze", "Unsqueeze", "Where", "Dropout", "Add", "Div")
)
_POINTWISE = frozenset(("Add", "Sub", "Mul", "Div", "Pow", "Cast", "Neg", "Exp", "Log", "Softplus", *_BENDS))
ALPHA, CANDIDATES, SECONDS = 1.2, 400, 20.0
"""Of the search in one region."""


def blocks(piece: Piece) -> Iterator[tuple[str, Node]]:
    """The telling node of each block that is spelled out."""
    for node in piece.nodes:
        if node.op == "Softmax" and any(n.op in _PRODUCTS for n in _after(piece, node)):
            yield "attention", node
        elif _is_root(piece, node) and _of_a_mean(node):
            yield "normalization", node
        elif node.op == "Erf" or (node.op in _BENDS and _bends_itself(piece, node)):
            yield "activation", node
        elif node.op == "Concat" and _turns(node):
            yield "rotary", node


def operators(piece: Piece) -> Counter[str]:
    """What is one operator already, by its kind."""
    return Counter(kind for node in piece.nodes for kind, known in KINDS.items() if node.op in known)


def _after(piece: Piece, node: Node) -> set[Node]:
    """Nodes that read a node, at once or through others that change little."""
    waiting, seen = list(node.outputs), set[Node]()
    while waiting:
        for user in piece.reading(waiting.pop()):
            if user not in seen and len(seen) < 16:
                seen.add(user)
                waiting += user.outputs if user.op in _THROUGH else ()
    return seen


def _bends_itself(piece: Piece, node: Node) -> bool:
    """Whether it is multiplied by what it was made of; a gate is made of something else, and no activation."""
    made_of, after = _sources(piece, node.inputs[0]), _after(piece, node)
    factors = [v for user in after if user.op in ("Mul", "Div") for v in user.operands]
    return any(_sources(piece, v) == made_of for v in factors if v.node != node and v.node not in after)


def _sources(piece: Piece, value: Value | None) -> set[Value]:
    """What a value is computed from, number by number."""
    waiting, found, seen = [value], set[Value](), set[Value]()
    while waiting:
        v = waiting.pop()
        if v is None or v in seen or piece.constants.is_weight(v):
            continue
        seen.add(v)
        if v.node is not None and v.node.op in _POINTWISE:
            waiting += v.node.inputs
        else:
            found.add(v)
    return found


def _is_root(piece: Piece, node: Node) -> bool:
    exponent = node.inputs[1] if node.op == "Pow" else None
    return node.op == "Sqrt" or (exponent is not None and piece.constants.fill(exponent) in (0.5, -0.5))


def _of_a_mean(root: Node) -> bool:
    """Whether it is taken of a mean, or of the difference of two, to which a number was added."""
    before = root.inputs[0].node if root.inputs[0] is not None else None
    if before is None or before.op != "Add":
        return False
    return any(_made_by(v, _AXES | {"Sub"}).op in ("ReduceMean", "ReduceSum") for v in before.operands if v.node)


def _made_by(value: Value, through: Container[str]) -> Node:
    """The node that a value comes from, others passed by their first operand."""
    node = value.node
    assert node is not None
    while node.op in through and node.inputs[0] is not None and node.inputs[0].node is not None:
        node = node.inputs[0].node
    return node


def _turns(node: Node) -> bool:
    """A Concat of a negated half and another half, or of a·cos − b·sin and a·sin + b·cos: how a rotary embedding turns
    its pairs."""
    parts = [_made_by(v, _AXES) for v in node.operands if v.node is not None]
    if any(part.op == "Neg" for part in parts):
        return True
    products = all(v.node is not None and v.node.op == "Mul" for part in parts for v in part.operands)
    return sorted(part.op for part in parts) == ["Add", "Sub"] and products


def recognized(piece: Piece, rewriter: Rewriter, rules: Rules, telling: Rules) -> dict[str, set[Node]]:
    """Of each kind, the telling nodes that an operator of the kind takes the place of."""
    wanted = {node: kind for kind, node in blocks(piece)}
    found = _covered(piece, piece.nodes, rewriter, telling)
    gains: dict[str, Counter[str]] = {}
    for offset in ORDER:
        for region in cut(piece, lambda node: not isinstance(rewriter.reader.read(node), str), offset):
            left: dict[str, set[Node]] = {}
            for node in region.members:
                kind = wanted.get(node)
                if kind is not None and node not in found[kind]:
                    left.setdefault(kind, set()).add(node)
            if not left:
                continue
            key = structure(graph_of_region(region.piece, tuple(region.outside), weight_nodes(region.piece)), {})
            if key not in gains:
                gains[key] = _after_one(region, rewriter, rules, telling) | _searched(region, rewriter, rules)
            for kind, nodes in left.items():
                told = sum(wanted.get(node) == kind for node in region.members)
                if gains[key][kind] >= told:
                    found[kind] |= nodes
    return found


def _covered(piece: Piece, nodes: Iterable[Node], rewriter: Rewriter, telling: Rules) -> dict[str, set[Node]]:
    """By kind, telling nodes of a graph that a rule which ends at one of these nodes covers."""
    wanted = {node: kind for kind, node in blocks(piece)}
    found: dict[str, set[Node]] = {kind: set() for kind in KINDS}
    for node in nodes:
        for match, _ in rewriter.moves(telling, node, piece):
            for kind in kinds_of(match.pattern.rule):
                found[kind].update(n for n in match.nodes if wanted.get(n) == kind)
    return found


def kinds_of(rule: Rule) -> list[str]:
    written = {call.op for call in calls_of(rule.right)}
    return [kind for kind, known in KINDS.items() if written & known]


def _after_one(region: Region, rewriter: Rewriter, rules: Rules, telling: Rules) -> Counter[str]:
    """How many blocks are covered after one other rewrite, whatever it costs."""
    before, best = set(region.piece.nodes), Counter[str]()
    moves = [move for node in region.piece.nodes for move in rewriter.moves(rules, node, region.piece)]
    for match, made in moves:
        after = rewriter.take(region.piece, match, made).after
        for kind, nodes in _covered(after, [n for n in after.nodes if n not in before], rewriter, telling).items():
            best[kind] = max(best[kind], len(nodes))
    return best


def _searched(region: Region, rewriter: Rewriter, rules: Rules) -> Counter[str]:
    """How many blocks of a region become one operator each, in the graphs that the search comes to."""
    until = time.monotonic() + SECONDS
    limits = Limits(ALPHA, CANDIDATES, lambda: time.monotonic() > until)
    predictor, inputs = Predictor({}), tuple(region.outside)
    explored = explore(
        region.piece, rules, rewriter, lambda piece: predictor.region(graph_of_region(piece, inputs)), limits
    )
    spelled, written = _counted(region.piece), operators(region.piece)
    best: Counter[str] = Counter()
    for candidate in explored.candidates:
        now, made = _counted(candidate.piece), operators(candidate.piece)
        for kind in KINDS:
            best[kind] = max(best[kind], min(spelled[kind] - now[kind], made[kind] - written[kind]))
    return best


def _counted(piece: Piece) -> Counter[str]:
    return Counter(kind for kind, _ in blocks(piece))


def row(path: Path, rules: Rules, telling: Rules, registry) -> dict[str, tuple[int, int]]:
    model = load(path)
    present: Counter[str] = Counter()
    known: Counter[str] = Counter()
    rewriter = Rewriter(registry, model.opset, Vocabulary(cuda=True), model.functions)
    for graph, _ in graphs(normalize(model).graph):
        piece = piece_of(graph, rewriter.constants)
        for kind, _ in blocks(piece):
            present[kind] += 1
        for kind, nodes in recognized(piece, rewriter, rules, telling).items():
            known[kind] += len(nodes)
        for kind, count in operators(piece).items():  # what the exporter wrote as one operator
            present[kind] += count
            known[kind] += count
    return {kind: (known[kind], present[kind]) for kind in KINDS}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--rules", type=Path, action="append", default=[])
    parser.add_argument("--save", action="store_true")
    chosen = parser.parse_args(arguments)
    book = open_rulebook(chosen.rules)
    every = [pattern.rule for pattern in book.rules.patterns.values()]
    telling = Rules(filter(kinds_of, every), book.registry)
    lines = [f"{'recognized of present':34s}" + "".join(f"{kind:>16s}" for kind in KINDS)]
    print(lines[0], flush=True)
    for path in chosen.models:
        found = row(path, book.rules, telling, book.registry)
        lines.append(f"{path.stem:34s}" + "".join(f"{f'{k} of {n}' if n else '-':>16s}" for k, n in found.values()))
        print(lines[-1], flush=True)
    if chosen.save:
        (RESULTS / "recognized.txt").write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
