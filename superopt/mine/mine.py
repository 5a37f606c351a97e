"""From models to proved rules: cut, lift, look up, prove.

Nothing that is found is used before it is proved for all sizes that its shapes allow: what equal numbers suggest may be
wrong, what the prover says is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from superopt.generate.infinite import makes_nan
from superopt.generate.known import Known
from superopt.generate.ledger import Ledger
from superopt.generate.proving import Pool, settle
from superopt.generate.reduce import is_found
from superopt.generate.respell import respelled
from superopt.generate.safety import trades_safety
from superopt.ir.onnx import Model
from superopt.mine.cut import ANCHORS, Grower
from superopt.mine.inside import graphs
from superopt.mine.lift import inputs_of, lifted
from superopt.mine.lookup import Hit, Lookup
from superopt.normalize import normalize
from superopt.ops.registry import Registry
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.rewriter import Rewriter
from superopt.rewrite.rule import Rule
from superopt.rewrite.text import format_meaning
from superopt.rewrite.whole import piece_of

TOGETHER = 8
"""Hits that are proved at a time."""
KNOWN_STEPS = 2
"""What known rules do in so many steps is not written again."""


@dataclass
class Counts:
    """What became of everything, over all models."""

    cuts: int = 0
    parts: int = 0
    """Cuts that differ in more than sizes and weights."""
    hits: int = 0
    known: int = 0
    proved: int = 0
    refuted: int = 0
    unknown: int = 0
    unsafe: int = 0
    """Proved, and bad trades in floating point."""


@dataclass(frozen=True)
class Mined:
    rule: Rule
    origin: str
    """The exporter, the opset and the model that it was found in."""


@dataclass
class Miner:
    """Mines one model after the other; what one had is not looked up again."""

    registry: Registry
    ledger: Ledger
    pool: Pool
    folders: tuple[Path, ...] = ()
    seconds: float = 20.0
    known: Known | None = None
    deadline: float = float("inf")
    """On the clock of time.monotonic."""
    tell: Callable[[str, Counts], None] = lambda _, __: None
    anchors: frozenset[str] = ANCHORS
    """Operators that a part must have one of."""
    counts: Counts = field(default_factory=Counts)
    _seen: set[str] = field(default_factory=set[str])
    _lookup: Lookup | None = None

    def mine(self, model: Model, origin: str) -> Iterator[Mined]:
        """Proved rules that were not known, smallest parts first for each of their operators."""
        waiting: list[Hit] = []
        for hit in self._hits(model, origin):
            waiting.append(hit)
            if len(waiting) == TOGETHER:
                yield from self._proved(waiting, origin)
                waiting = []
        yield from self._proved(waiting, origin)

    def _hits(self, model: Model, origin: str) -> Iterator[Hit]:
        lookup = self._lookup = self._lookup or Lookup(self.registry)
        rewriter = Rewriter(self.registry, model.opset, Vocabulary(cuda=True), model.functions)
        pieces = (piece_of(graph, rewriter.constants) for graph in graphs(normalize(model).graph))
        for cut in (cut for piece in pieces for cut in Grower(piece, rewriter, self.anchors).cuts()):
            if time.monotonic() > self.deadline:
                return
            self.counts.cuts += 1
            if self.counts.cuts % 50 == 0:
                self.tell(origin, self.counts)
            operators = [(node.op, node.domain) for node in cut.nodes]
            found: set[str] = set()
            if not lookup.may_be(operators, len(cut.outputs), *inputs_of(cut, rewriter)):
                continue
            for part in lifted(cut, rewriter):
                if part.text in self._seen:
                    continue
                self._seen.add(part.text)
                self.counts.parts += 1
                for hit in lookup.hits(part, operators):
                    # One call of an operator is enough, and with variables for its numbers a part says more than with
                    # the numbers it has.
                    if hit.target.operator not in found:
                        found.add(hit.target.operator)
                        self.counts.hits += 1
                        yield hit

    def _proved(self, hits: Iterable[Hit], origin: str) -> Iterator[Mined]:
        rules: dict[str, Rule] = {}
        for hit in hits:
            rule = respelled(hit.rule)
            if self.known is not None and self.known.leads(rule, steps=KNOWN_STEPS):
                self.counts.known += 1
            else:
                rules.setdefault(format_meaning(rule), rule)
        settled = settle(
            rules.values(), self.folders, self.ledger,
            seconds=self.seconds, pool=self.pool, useful=lambda form: is_found(respelled(form), self.registry),
        )  # fmt: skip
        for one in settled:
            self.counts.proved += one.status == "proved"
            self.counts.refuted += one.status == "refuted"
            self.counts.unknown += one.status == "unknown"
            self.tell(origin, self.counts)
            if one.rule is None:
                continue
            rule = respelled(one.rule)
            if trades_safety(rule, self.registry) or makes_nan(rule, self.registry):
                self.counts.unsafe += 1
            elif self.known is None or not self.known.leads(rule):
                if self.known is not None:
                    self.known.add(rule)
                yield Mined(rule, origin)
