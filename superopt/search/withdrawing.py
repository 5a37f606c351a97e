"""A session option that pays for most of a model's operators and costs dearly for a few, with those out of its reach.

onnxruntime's fuse_conv_bias has cuDNN add biases inside of convolutions, which has fast kernels for that, but not for
convolutions in groups: a network with depthwise convolutions runs three times as long with it on an H200. A bias that
is added behind its convolution is none of the option's business. So where there are such convolutions and others, the
model with their biases apart and the option on is raced against the model as it is: neither of the two pays alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from superopt.ir.graph import Graph, Node
from superopt.rewrite.rule import Rule
from superopt.runtime.deployment import Deployment
from superopt.search.choices import FUSED_BIAS, NHWC, Choice
from superopt.search.leaving_out import brings_in, is_about, without
from superopt.search.variants import WITHDRAWN, Variant
from superopt.search.workshop import Workshop

APART = "conv-bias-apart"
TIMED = f"the rewritten model was timed with {FUSED_BIAS[0]} besides, which the original does not gain by"
_OPTION = Choice("convolution layout", provider_options=(FUSED_BIAS,))


def withdrawn(workshop: Workshop, base: Variant, timed: Deployment, numbered: int = 0) -> Variant | None:
    """The variant for the option, where it may pay; `timed` is what everything is timed with, and regions are
    `numbered` up to there."""
    given = dict(timed.provider_options)
    asks = timed.target == "cuda" and NHWC in given.items() and FUSED_BIAS[0] not in given
    if not asks or APART not in workshop.book.rules.patterns or not _is_mixed(workshop.tidied):
        return None
    used = [workshop.book.rules.patterns[s.rule].rule for record in base.trace for s in record.steps]
    trace = workshop.extended(without(base.trace, parting(used)), [APART], _is_grouped, numbered)
    graph, made, notes = workshop.build(trace)
    if not any(step.rule == APART for record in made for step in record.steps):
        return None
    own = _OPTION.applied(timed)
    return Variant(WITHDRAWN, graph, base.passes, tuple(made), notes=(*notes, TIMED), deployment=own)


def parting(rules: Iterable[Rule]) -> set[str]:
    """Those that take biases out of convolutions; of products they may stay out."""
    return {rule.name for rule in rules if is_about(rule, "Conv") and brings_in(rule, "Sum")}


def _is_mixed(graph: Graph) -> bool:
    """Whether there are biases that the option likes, and others."""
    found = {_is_grouped(node) for node in graph.all_nodes() if _has_bias(node)}
    return found == {True, False}


def _is_grouped(node: Node) -> bool:
    return _has_bias(node) and dict(node.attributes).get("group", 1) != 1


def _has_bias(node: Node) -> bool:
    return node.kind == "Conv" and len(node.inputs) > 2 and node.inputs[2] is not None
