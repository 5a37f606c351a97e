"""All mutants of a model's programs that can be proved, whether or not a clock would choose them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import specs
from superopt.errors import BadOption
from superopt.ir.onnx import load
from superopt.normalize import normalize
from superopt.partial.corrected import Corrected, correct, mutants
from superopt.partial.lift import originals
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
    model, registry = load(path), specs.load(*definitions)
    if model.opset is None:
        raise BadOption(f"{path}: has no opset of ONNX's own operators")
    rewriter = Rewriter(registry, model.opset, Vocabulary(), model.functions)
    proofs = Proofs(registry, seconds)
    seen: set[str] = set()
    for graph, _ in graphs(normalize(model).graph):
        for original in originals(piece_of(graph, rewriter.constants), rewriter):
            for mutant in mutants(original, registry):
                if families and mutant.family not in families:
                    continue
                found = correct(mutant, proofs, tell=tell)
                if found is not None and found.rule.name not in seen:
                    seen.add(found.rule.name)
                    yield found
