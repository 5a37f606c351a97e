# pyright: basic
"""Blocks of models, and how many of them the shipped rules recognize as one operator.

    python benchmarks/recognized.py MODEL … [--rules FILE] [--save]

A block is counted by the node that tells it: the Softmax between the two products of an attention, the root of a
normalization that is spelled out, the Erf, Tanh or Sigmoid of an activation, the turned pairs of a rotation. It is
recognized where a proved rule writes an operator of its kind in its place, at once or after one other rewrite.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from superopt.ir.graph import Node
from superopt.ir.onnx import load
from superopt.normalize import normalize
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.piece import Piece, new_nodes
from superopt.rewrite.rewriter import Rewriter, Rules
from superopt.rewrite.rule import calls_of
from superopt.rewrite.whole import piece_of
from superopt.search.bodies import graphs
from superopt.search.rulebook import open_rulebook

RESULTS = Path(__file__).parent / "results"
KINDS = {
    "attention": frozenset(("Attention", "MultiHeadAttention", "GroupQueryAttention")),
    "normalization": frozenset(
        ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization", "SkipLayerNormalization",
         "SkipSimplifiedLayerNormalization", "GroupNormalization", "InstanceNormalization", "GroupNorm")
    ),
    "activation": frozenset(
        ("Gelu", "FastGelu", "QuickGelu", "BiasGelu", "Swish", "HardSwish", "Mish", "HardSigmoid", "Softplus")
    ),
    "rotary": frozenset(("RotaryEmbedding",)),
}  # fmt: skip
_BENDS = frozenset(("Tanh", "Sigmoid", "Clip", "HardSigmoid"))
_THROUGH = frozenset(("Transpose", "Reshape", "Cast", "Identity", "Squeeze", "Unsqueeze", "Where", "Dropout"))


def blocks(piece: Piece) -> Iterator[tuple[str, Node]]:
    """The telling node of each block that is spelled out, or is one operator already."""
    for node in piece.nodes:
        if node.op == "Softmax" and _leads_to(piece, node, "MatMul"):
            yield "attention", node
        elif node.op in ("Sqrt", "Pow") and _comes_from(node, ("ReduceMean", "ReduceSum")):
            yield "normalization", node
        elif node.op == "Erf" or (node.op in _BENDS and _leads_to(piece, node, "Mul")):
            yield "activation", node
        elif node.op == "Concat" and _turns(node):
            yield "rotary", node


def _leads_to(piece: Piece, node: Node, op: str) -> bool:
    waiting, seen = list(node.outputs), set[Node]()
    while waiting:
        for user in piece.reading(waiting.pop()):
            if user.op == op:
                return True
            if user.op in (*_THROUGH, "Add", "Div") and user not in seen and len(seen) < 8:
                seen.add(user)
                waiting += user.outputs
    return False


def _comes_from(node: Node, ops: Sequence[str]) -> bool:
    before = node.inputs[0].node if node.inputs and node.inputs[0] is not None else None
    if before is None or before.op != "Add":
        return False
    return any(v is not None and v.node is not None and v.node.op in ops for v in before.inputs)


def _turns(node: Node) -> bool:
    """A Concat of a negated half and another half: how a rotary embedding turns its pairs."""
    return any(v is not None and v.node is not None and v.node.op == "Neg" for v in node.inputs)


def recognized(piece: Piece, rewriter: Rewriter, rules: Rules, telling: dict[str, Rules]) -> dict[str, set[Node]]:
    """Of each kind, the telling nodes that a rule of the kind covers."""
    wanted = {node: kind for kind, node in blocks(piece)}
    found: dict[str, set[Node]] = {kind: set() for kind in KINDS}

    def look(at: Piece, nodes: Iterable[Node]) -> None:
        for node in nodes:
            for kind, of_kind in telling.items():
                for match, _ in rewriter.moves(of_kind, node, at):
                    found[kind].update(n for n in match.nodes if wanted.get(n) == kind)

    look(piece, piece.nodes)
    left = {node for node, kind in wanted.items() if node not in found[kind]}
    for node in piece.nodes if left else ():
        if not _is_near(node, left, piece):
            continue
        for match, made in rewriter.moves(rules, node, piece):
            step = rewriter.take(piece, match, made, frozenset())
            fresh = new_nodes(made.values(), piece)
            near = [user for made_node in fresh for v in made_node.outputs for user in step.after.reading(v)]
            look(step.after, dict.fromkeys((*fresh, *near)))
    return found


def _is_near(node: Node, left: set[Node], piece: Piece) -> bool:
    """Within three edges of a block that is not recognized yet."""
    edge, seen = [node], {node}
    for _ in range(3):
        edge = [
            other
            for n in edge
            for other in (*(v.node for v in n.operands), *(u for v in n.outputs for u in piece.reading(v)))
            if other is not None and other not in seen
        ]
        seen.update(edge)
    return not seen.isdisjoint(left)


def row(path: Path, rules: Rules, telling: dict[str, Rules], registry) -> dict[str, tuple[int, int]]:
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
        for node in piece.nodes:  # what the exporter wrote as one operator
            for kind, operators in KINDS.items():
                if node.op in operators and not (kind == "activation" and node.op == "HardSigmoid"):
                    present[kind] += 1
                    known[kind] += 1
    return {kind: (known[kind], present[kind]) for kind in KINDS}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--rules", type=Path, action="append", default=[])
    parser.add_argument("--save", action="store_true")
    chosen = parser.parse_args(arguments)
    book = open_rulebook(chosen.rules)
    every = [pattern.rule for pattern in book.rules.patterns.values()]
    telling = {
        kind: Rules((r for r in every if any(c.op in ops for c in calls_of(r.right))), book.registry)
        for kind, ops in KINDS.items()
    }
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
