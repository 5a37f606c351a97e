# pyright: basic
"""A rulebook of what people wrote: the same whatever the generator finds."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from onnx import ModelProto

import specs
from superopt.ir.onnx import parse
from superopt.normalize import normalize
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.rewriter import Rules
from superopt.rewrite.ruleset import LATE, SHIPPED, digest, load_rules, state
from superopt.search.rulebook import Rulebook
from superopt.search.variants import TIDIED, Variant
from superopt.search.workshop import Workshop

FORMER = Path(__file__).parents[1] / "generate" / "handwritten.rules"


@cache
def written_book() -> Rulebook:
    registry = specs.load()
    rules = load_rules([*sorted(set(SHIPPED.glob("*.rules")) - {LATE}), FORMER])
    usable = [rule for rule in rules if state(rule, registry) == "proved" and not rule.finite]
    digests = {rule.name: digest(rule, registry) for rule in usable}
    proofs = {rule.name: str(rule.proof) for rule in usable}
    return Rulebook(registry, Rules(usable, registry), digests, proofs, {}, ())


def workshop_of(proto: ModelProto, book: Rulebook) -> Workshop:
    model = parse(proto.SerializeToString())
    return Workshop(model, normalize(model).graph, book, Vocabulary(contrib=True))


def plain(shop: Workshop) -> Variant:
    """The variant in which nothing was rewritten."""
    return Variant(TIDIED, shop.tidied, ())
