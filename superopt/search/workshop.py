"""One tidied model and the rules: what the search found in it, and any part of that as a graph again.

A graph is always made by replaying a trace from the tidied graph, whether to check it, to find a guilty rewrite or to
audit a result: there is no second way that could differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Literal

from superopt.cost.predict import Predictor
from superopt.cost.recorded import RecordedTimer
from superopt.cost.timer import RegionTimer
from superopt.errors import CannotReplay
from superopt.ir.graph import Attribute, Graph, Node, Value, make_node
from superopt.ir.onnx import Model
from superopt.ir.tensor import Tensor
from superopt.normalize.builder import substitute
from superopt.partial.lift import places
from superopt.report import Rewrite
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter, Step
from superopt.rewrite.weights import CannotCombine, combine
from superopt.rewrite.whole import graph_of, piece_of, weights_read
from superopt.search.bodies import bodies, graphs
from superopt.search.ending import Ending
from superopt.search.forecast import Forecast
from superopt.search.foreseeing import Foreseer
from superopt.search.foreteller import Foreteller
from superopt.search.fusing import Fuser, StayingFuser
from superopt.search.growth import bytes_of
from superopt.search.guessing import Guesser, pays
from superopt.search.hunt import Hunter
from superopt.search.hunted import FORESEEN, SPREAD, Budget, Gain, Hunted
from superopt.search.judge import Judge
from superopt.search.learning import Learner
from superopt.search.regions import extract, stitch
from superopt.search.rulebook import Rulebook
from superopt.search.scales import Scales
from superopt.search.spreading import Spreader
from superopt.search.stages import Tell
from superopt.search.trace import Traced, name_of, replay_one, replay_some, traced
from superopt.search.trimming import trimmed

Combining = Callable[[Model, Sequence[Value]], Mapping[Value, Tensor]]


@dataclass(frozen=True)
class Workshop:
    model: Model
    tidied: Graph
    book: Rulebook
    vocabulary: Vocabulary
    combining: Combining = combine
    """How weights are combined; whoever wants to know which ones listens here."""

    def hunt(
        self,
        timer: RegionTimer,
        predictor: Predictor,
        sizes: Mapping[str, int],
        budget: Budget,
        tell: Tell,
        ending: Ending | None = None,
    ) -> tuple[Hunted, float | None]:
        """What the rules give, and how well predictions ranked it."""
        rewriter, ending = self.rewriter(), ending or Ending()
        scales = Scales(self.model, sizes, Learner(predictor), timer)
        forecast = Forecast({where: predictor.region(graph, graph.outputs) for graph, where in graphs(self.tidied)})
        judging = Foreteller if isinstance(timer, RecordedTimer) else Judge
        hunter = Hunter(self.book, rewriter, scales, budget, tell, ending, forecast, judging)
        pieces = [(piece_of(graph, rewriter.constants), where) for graph, where in graphs(self.tidied)]
        if budget.partial and any(next(places(piece, rewriter), None) for piece, _ in pieces):
            self._mutate(pieces, hunter)
        for piece, where in pieces:
            hunter.run(piece, where)
        before = self._weights([])
        hunter.found.trace = trimmed(hunter.found, budget.growth, lambda trace: self._weights(trace) - before)
        if judging is Foreteller:
            self._take_further(hunter, before)
        elif pays(scales, predictor.region(self.tidied, self.tidied.outputs)):
            hunter.found.guesses = dict(self._guesses(pieces, hunter, before))
        return hunter.found, scales.learner.rank_correlation

    def _take_further(self, hunter: Hunter, weights: int) -> None:
        """Where prices decide anyway: what was found, wherever it fits."""
        further = self._spread(hunter.found.trace, hunter, hunter.found.distinct)
        trace = [*hunter.found.trace, *(record for record, _ in further)]
        if self._weights(trace) - weights <= hunter.budget.growth:
            hunter.found.trace = trace
            hunter.found.gains += [gain for _, gain in further]

    def _spread(self, trace: Sequence[Traced], hunter: Hunter, numbered: int) -> list[tuple[Traced, Gain]]:
        """What is gained behind a trace with what it is made of, by prediction."""
        hunter.tell("searching", "what was found, wherever it fits")
        spreader, found = Spreader.of(trace, self.book, hunter), list[tuple[Traced, Gain]]()
        for where, piece in self._replayed(trace, hunter.rewriter)[1].items():
            found += spreader.spread(piece, where, numbered + len(found))
        return found

    def _guesses(
        self, pieces: Sequence[tuple[Piece, str]], hunter: Hunter, weights: int
    ) -> Iterator[tuple[str, list[Traced]]]:
        """Traces to what was found wherever it fits, and to everything fused; on a CPU to everything that can be
        without moving more, where regions are timed seldom to everything that is predicted to pay. Weights may grow as
        far as those of others."""
        numbers = hunter.found.distinct
        kinds: tuple[type[Guesser], ...] = (Fuser, Foreseer) if hunter.scales.opens_slowly else (Fuser, StayingFuser)
        found = {SPREAD: hunter.found.trace}
        for kind in kinds:
            guesser = kind(self.book, hunter.rewriter, hunter.scales, hunter.budget, hunter.tell, hunter.ending)
            guesser.known, guesser.found.distinct = hunter.best, numbers  # its regions have numbers of their own
            for piece, where in pieces:
                guesser.run(piece, where)
            numbers = guesser.found.distinct
            found[kind.name] = guesser.found.trace
        for name in (SPREAD, FORESEEN) if FORESEEN in found else (SPREAD,):
            further = self._spread(found[name], hunter, numbers)
            found[name] = [*found[name], *(record for record, _ in further)]
            numbers += len(further)
        for name, trace in found.items():
            if trace != hunter.found.trace and self._weights(trace) - weights <= hunter.budget.growth:
                yield name, trace

    def grown(self, trace: Sequence[Traced]) -> int:
        """Bytes that weights take more with it."""
        return self._weights(trace) - self._weights([])

    def _weights(self, trace: Sequence[Traced]) -> int:
        """Bytes of the weights of all graphs."""
        return sum(bytes_of(weights_read(piece)) for piece in self.replayed(trace)[1].values())

    def _mutate(self, pieces: Sequence[tuple[Piece, str]], hunter: Hunter) -> None:
        """Adds the mutants that are faster to the rules, each proved."""
        try:
            from superopt.search.mutants import MutantFinder  # with z3, which takes its time and need not be there
        except ImportError as error:
            hunter.found.notes.append(f"no mutants were made, because they could not be proved: {error}")
            return
        finder = MutantFinder(
            self.book, hunter.rewriter, hunter.scales, hunter.budget.partial, hunter.tell, hunter.ending
        )
        for piece, where in pieces:
            finder.run(piece, where)
        hunter.found.mutated = finder.found
        hunter.found.notes += finder.notes

    def build(self, trace: Sequence[Traced], strict: bool = False) -> tuple[Graph, list[Traced], list[str]]:
        """The tidied graph with these rewrites, those that were made, and why others were not.

        Leaving one out may leave no place for a later one; `strict` raises `CannotReplay` instead.
        """
        made: list[Traced] = []
        notes: list[str] = []
        graph = self._build(self.tidied, "", trace, made, notes, strict)
        return graph, made, notes

    def fitting(self, trace: Sequence[Traced]) -> list[Traced]:
        """What of these rewrites still finds its place where others that came before them were left out."""
        return self.replayed(trace)[0]

    def replayed(self, trace: Sequence[Traced]) -> tuple[list[Traced], Mapping[str, Piece]]:
        """The same, and the graphs as they are then, by the way there."""
        return self._replayed(trace, self.rewriter())

    def extended(
        self, trace: Sequence[Traced], rules: Sequence[str], chosen: Callable[[Node], bool], numbered: int = 0
    ) -> list[Traced]:
        """What of the trace still finds its place, and behind it the first of the rules that fits at every node that is
        chosen. These are regions that nobody has timed, with a number beyond those that are `numbered`."""
        rewriter, patterns = self.rewriter(), [self.book.rules.patterns[rule] for rule in rules]
        found, pieces = self._replayed(trace, rewriter)
        kind = 1 + max((numbered, *(record.kind for record in found)))
        for where, piece in pieces.items():
            for name in [name_of(node, piece) for node in piece.nodes if chosen(node)]:
                value = piece.names.get(name)  # the steps before have made what reads their results anew
                node = None if value is None else value.node
                if node is None:
                    continue
                region = extract(piece, [node], where)
                inner = region.piece
                fitting = (m for p in patterns for n in inner.nodes for m in rewriter.matches(p, n, inner))
                for match, made in islice(fitting, 1):
                    taken = rewriter.take(inner, match, made, piece.names)
                    found.append(traced(region, piece, [taken.step], kind))
                    piece = stitch(piece, region, taken.after, piece.names).piece
        return found

    def _replayed(self, trace: Sequence[Traced], rewriter: Rewriter) -> tuple[list[Traced], Mapping[str, Piece]]:
        pieces = {where: piece_of(graph, rewriter.constants) for graph, where in graphs(self.tidied)}
        found: list[Traced] = []
        for record in trace:
            with suppress(CannotReplay):
                piece, fits = replay_some(pieces[record.where], record, self.book.rules, rewriter)
                if fits.steps:
                    pieces[record.where] = piece
                    found.append(fits)
        return found, pieces

    def _build(
        self, graph: Graph, where: str, trace: Sequence[Traced], made: list[Traced], notes: list[str], strict: bool
    ) -> Graph:
        graph = self._with_bodies(graph, where, trace, made, notes, strict)
        own = [record for record in trace if record.where == where]
        if not own:
            return graph
        rewriter = self.rewriter()
        piece = piece_of(graph, rewriter.constants)
        done: list[Traced] = []
        for record in own:
            try:
                piece = replay_one(piece, record, self.book.rules, rewriter, strict)
            except CannotReplay as error:
                if strict:
                    raise
                notes.append(str(error))
            else:
                done.append(record)
        try:
            initializers = self.model.ir_version >= 4
            combining = partial(self.combining, self.model)
            built = graph_of(piece, graph, combining, initializers, self.book.digests)
        except CannotCombine as error:
            if strict:
                raise CannotReplay(f"weights cannot be combined: {error}") from None
            notes.append(f"weights could not be combined, so nothing was rewritten: {error}")
            return graph
        made += done
        return built

    def _with_bodies(
        self, graph: Graph, where: str, trace: Sequence[Traced], made: list[Traced], notes: list[str], strict: bool
    ) -> Graph:
        """The graph with the bodies that the trace tells of rebuilt."""

        def rebuilt(before: Node, after: Node, present: tuple[bool, ...]) -> Node:
            if not before.bodies:
                return after
            attributes: dict[str, Attribute] = dict(after.attributes)
            for name, body, place in bodies(graph, before, where):
                if any(record.where.startswith(place) for record in trace):
                    attributes[name] = self._build(body, place, trace, made, notes, strict)
            if all(attributes[name] is value for name, value in after.attributes):
                return after
            return make_node(
                after.op, after.inputs, attributes, after.types,
                domain=after.domain, captured=after.captured, instance=after.instance,
            )  # fmt: skip

        if not any(record.where != where and record.where.startswith(where) for record in trace):
            return graph
        return substitute(graph, {}, refine=rebuilt)[0]

    def rewriter(self) -> Rewriter:
        return Rewriter(self.book.registry, self.model.opset, self.vocabulary, self.model.functions)

    def rewrites(self, made: Sequence[Traced], hunted: Hunted | None = None) -> list[Rewrite]:
        """The steps for people."""
        gains = {gain.kind: gain for gain in hunted.gains} if hunted is not None else {}
        found: list[Rewrite] = []
        for record in made:
            gain = gains.get(record.kind)
            for number, step in enumerate(record.steps):
                costs = hunted.costs.get((record.kind, number)) if hunted is not None else None
                found.append(
                    Rewrite(
                        name=step.rule, place=record.where + next(iter(step.results), ""), detail=_doc(self.book, step),
                        proof=self.book.proofs[step.rule], kind=_kind(self.book, step),
                        rule_digest=self.book.digests[step.rule],
                        nodes=list(record.members), results=list(step.results), region=record.kind,
                        predicted_us_before=None if costs is None else costs[0] * 1e6,
                        predicted_us_after=None if costs is None else costs[1] * 1e6,
                        measured_us_before=None if gain is None or not gain.timed else gain.measured[0] * 1e6,
                        measured_us_after=None if gain is None or not gain.timed else gain.measured[1] * 1e6,
                    )
                )  # fmt: skip
        return found


def _kind(book: Rulebook, step: Step) -> Literal["rule", "partial"]:
    return "partial" if book.rules.patterns[step.rule].rule.is_partial else "rule"


def _doc(book: Rulebook, step: Step) -> str:
    return book.rules.patterns[step.rule].rule.doc
