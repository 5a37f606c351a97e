"""Rounds over a model until nothing changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from superopt.ir.graph import Graph, Node
from superopt.ir.onnx.model import OPSETS, Model
from superopt.normalize.dead import idle, sweep
from superopt.normalize.inlining import names_in
from superopt.normalize.journal import Budget, Journal, default_cap
from superopt.normalize.purity import Purity
from superopt.normalize.rewriter import Known, Rewriter
from superopt.normalize.scope import Context, Scope, count_uses
from superopt.normalize.sharing import share_constants
from superopt.report import Rewrite

ROUNDS = 32


@dataclass(frozen=True)
class Normalized:
    """A graph that computes the same, and what was done to get there; the model's own graph where nothing was."""

    graph: Graph
    rewrites: tuple[Rewrite, ...]


def normalize(
    model: Model,
    *,
    growth_cap: int | None = None,
    forbid: Collection[tuple[str, str]] = (),
    limit: int | None = None,
    for_cuda: bool = False,
) -> Normalized:
    """Tidy the model's graph, with what is faster on CUDA alone where it is for that.

    Its constants grow by at most `growth_cap` bytes in all (default: 1 MiB, or 1 % of them where that is more).
    Rewrites in `forbid`, as (name, place), are not made; with a `limit`, only the first so many of those made without.
    """
    graph = model.graph
    if model.opset not in OPSETS:
        return Normalized(graph, ())
    cap = default_cap(graph) if growth_cap is None else growth_cap
    context = Context(model, Journal(forbid, limit), Budget(cap), Purity(model), Counter(names_in(graph)), for_cuda)
    for _ in range(ROUNDS):
        before, graph = graph, _round(context, graph, {}, {}, "")
        if graph is before:
            break
    return Normalized(graph, tuple(context.journal.rewrites))


def _round(context: Context, graph: Graph, known: Known, foreseen: Known, where: str) -> Graph:
    """One pass of everything over a graph and its bodies; the same graph where nothing was to be done."""

    def visit(body: Graph, known: Known, foreseen: Known, where: str) -> Graph:
        return _round(context, body, known, foreseen, where)

    done = len(context.journal.rewrites)
    scope = Scope(context, graph, known, count_uses(graph))
    unread = idle(graph, scope)
    swept = sweep(graph, scope, where, unread)
    shared, moved = share_constants(swept, scope, where)
    rewriter = Rewriter(context, shared, known, foreseen, where, visit)
    rebuilt = rewriter.run()
    if len(context.journal.rewrites) == done:
        return graph
    for step in (moved, rewriter.moved):
        unread = {step.get(item, item) if isinstance(item, Node) else item for item in unread}
    return sweep(rebuilt, Scope(context, rebuilt, known, count_uses(rebuilt)), where, unread)
