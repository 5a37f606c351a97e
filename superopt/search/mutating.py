"""All mutants of a model's programs that can be proved, whether or not a clock would choose them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import specs
from superopt.errors import BadModel, BadOption
from superopt.ir.graph import Graph
from superopt.ir.onnx import load
from superopt.ir.onnx.model import OPSETS
from superopt.normalize import normalize
from superopt.partial.corrected import Corrected, corrections, mutants
from superopt.partial.families import BY_NAME, FAMILIES, Family
from superopt.partial.lift import originals
from superopt.partial.program import Original
from superopt.partial.proofs import Proofs
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.rewriter import Rewriter
from superopt.rewrite.whole import piece_of
from superopt.search.bodies import graphs

Tell = Callable[[str, str], None]


def mutants_of_model(
    path: Path, families: Collection[str], definitions: Collection[Path], seconds: float, tell: Tell
) -> Iterator[Corrected]:
    """Each once, with its proof; `tell` hears of the others. Without `families`, those of all."""
    wanted = [_family(name) for name in families] or FAMILIES
    model, registry = load(path), specs.load(*definitions)
    if model.opset not in OPSETS:
        raise BadModel(f"{path}: opset {model.opset} of ONNX's own operators is not one that superopt knows")
    rewriter = Rewriter(registry, model.opset, Vocabulary(), model.functions)
    proofs = Proofs(registry, seconds)
    seen: set[str] = set()
    for original in programs(normalize(model).graph, rewriter):
        for mutant in mutants(original, registry, wanted):
            for found in corrections(mutant, proofs, tell=tell):
                if found.rule.name not in seen:
                    seen.add(found.rule.name)
                    yield found


def programs(top: Graph, rewriter: Rewriter) -> Iterator[Original]:
    """Those of a graph and of the bodies in it."""
    for graph, _ in graphs(top):
        yield from originals(piece_of(graph, rewriter.constants), rewriter)


def _family(name: str) -> Family:
    if name not in BY_NAME:
        raise BadOption(f"--family {name}: there is no such family; they are {', '.join(BY_NAME)}")
    return BY_NAME[name]
