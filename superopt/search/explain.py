"""Why was this node not rewritten? Every rule is tried at it in the tidied graph, and says where it stopped fitting.

No clock and no search are needed. After a search its report tells, besides, which rules were used here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from superopt.errors import CannotReplay
from superopt.ir.graph import Graph, Label, Node, Value
from superopt.ir.onnx import Model, load
from superopt.ir.onnx.raised import raised
from superopt.ir.types import format_type
from superopt.normalize import Normalized, normalize
from superopt.options import Options
from superopt.report import Explained, ExplainReport, Report, RuleAttempt
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.found import Match
from superopt.rewrite.match import Mismatch
from superopt.rewrite.pattern import Pattern
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter, Taken
from superopt.rewrite.synonyms import names_of
from superopt.rewrite.text import format_rule
from superopt.rewrite.whole import piece_of
from superopt.search.aim import aim_of
from superopt.search.bodies import graphs
from superopt.search.places import Place, find, refuse_unknown
from superopt.search.rulebook import Rulebook, open_rulebook
from superopt.search.trace import heard, replay_one

Tell = Callable[[str, str], None]

AROUND = 400
"""Nodes around one that are looked at for the beginning of a rule, at most."""
SHOWN = 20
"""Attempts of one rule that are told, at most."""
WITHOUT_SEARCH = "whether it pays, the clock says: with -o or --dry-run it is asked"
LATE = "it is not searched for: when a search on a GPU is over, the clock is asked about all its places at once"


def explain(path: Path, asked: Sequence[str], options: Options, report: Report | None, tell: Tell) -> ExplainReport:
    """Each node asked for, as `NODE` or `NODE:RULE`; a name that several nodes have stands for all of them."""
    tell("loading", path.name)
    model = load(path)
    base = raised(model, options.opset) if options.opset else model
    growth = None if options.growth < 0 else options.growth
    for_cuda, forbid = _is_for_cuda(options, report), set(report.left_out) if report is not None else ()
    tidied = normalize(base, growth_cap=growth, forbid=forbid, for_cuda=for_cuda)
    vocabulary = Vocabulary(contrib=options.allow == "contrib", cuda=_is_on_cuda(options, report), for_cuda=for_cuda)
    explainer = _Explainer(base, tidied, open_rulebook(options.rules), vocabulary, report)
    tell("explaining", ", ".join(asked))
    return ExplainReport(explained=[found for name in asked for found in explainer.explain(name)])


def _is_for_cuda(options: Options, report: Report | None) -> bool:
    return (report.environment.target if report is not None else aim_of(options).target) == "cuda"


def _is_on_cuda(options: Options, report: Report | None) -> bool:
    """Whether results run on a GPU that is here; what only such ones run is not used elsewhere."""
    if report is not None:
        return report.environment.target == "cuda" and report.prediction is None
    aim = aim_of(options)
    return aim.target == "cuda" and aim.machine is None


@dataclass(frozen=True)
class _Told:
    """A match for people."""

    results: str
    bindings: str
    size: int


@dataclass(frozen=True)
class _Tried:
    """A rule at a node: the matches that the node is part of, in words, and what stopped the others."""

    pattern: Pattern
    matches: list[_Told]
    reasons: list[Mismatch]

    @property
    def furthest(self) -> Mismatch:
        return max(self.reasons, key=lambda r: r.depth, default=Mismatch("nothing around it is where the rule begins"))


class _Explainer:
    def __init__(
        self, model: Model, tidied: Normalized, book: Rulebook, vocabulary: Vocabulary, report: Report | None
    ) -> None:
        self.model, self.tidied, self.book, self.report = model, tidied, book, report
        self.rewriter = Rewriter(book.registry, model.opset, vocabulary, model.functions)

    def explain(self, asked: str) -> Iterator[Explained]:
        found, rule = self._find(asked)
        for place in found:
            yield self._explained(asked, place, rule)

    def _find(self, asked: str) -> tuple[list[Place], str | None]:
        """Names may hold colons: what stands after the last one is a rule's name if it is one."""
        for graph in (self.model.graph, self.tidied.graph):
            found = find(graph, asked)
            if found:
                return found, None
            name, _, rule = asked.rpartition(":")
            if rule in self.book.rules.patterns and (found := find(graph, name)):
                return found, rule
        refuse_unknown(self.model.graph, asked)
        return [], None

    def _explained(self, asked: str, place: Place, rule: str | None) -> Explained:
        passes = [f"{r.name}: {r.detail}" for r in self.tidied.rewrites if r.place == place.place]
        now = self._after_passes(place)
        tried: list[_Tried] = []
        steps: list[Taken] = []
        if now is None:
            barrier = "it is gone after the passes" if passes else "nobody reads it any more after the passes"
        else:
            graph, node = now
            barrier = self._barrier(node)
            if not barrier:
                piece = piece_of(graph, self.rewriter.constants)
                wanted = [self.book.rules.patterns[rule]] if rule is not None else self.book.rules.patterns.values()
                tried = [t for p in wanted if (t := self._tried(p, node, piece, everywhere=rule is not None))]
                steps = self._steps(place, piece)
        used = {taken.rule.name for taken in steps}
        return Explained(
            asked=asked,
            place=place.place,
            operator=place.node.kind,
            outputs=[
                f"{n}: {format_type(v.type)}" for n, v in zip(place.label.outputs, place.node.outputs, strict=True)
            ],
            passes=passes,
            barrier=barrier,
            steps=[self._told(taken) for taken in steps],
            attempts=sorted((self._attempt(t, used) for t in tried), key=_rank),
            detail=[] if rule is None else self._detail(rule, tried),
        )

    def _after_passes(self, place: Place) -> tuple[Graph, Node] | None:
        """What computes the node's values in the tidied graph."""
        names = {name for name in place.label.outputs if name}
        for graph, where in graphs(self.tidied.graph):
            if where != place.where:
                continue
            for node in graph.nodes:
                if not names.isdisjoint(graph.labels.get(node, Label()).outputs):
                    return graph, node
        return None

    def _barrier(self, node: Node) -> str:
        if node.bodies:
            return "it holds subgraphs: rules work inside them, not across"
        if self.rewriter.constants.is_weight(Value(node)):
            return "it depends on constants alone: rules take it for a weight"
        reading = self.rewriter.reader.read(node)
        return reading if isinstance(reading, str) else ""

    def _tried(self, pattern: Pattern, node: Node, piece: Piece, everywhere: bool) -> _Tried | None:
        """None for a rule that has no root of the node's operator, unless the node is part of a match of it.

        With several roots, or further inside, the match may begin at another node.
        """
        kinds = [(n.call.domain, n.call.op) for n in pattern.nodes]
        own = names_of(node)
        if not pattern.roots or not any(kind in own for kind in kinds):
            return _Tried(pattern, [], [_no_such(pattern, node)]) if everywhere else None
        is_root = any(kinds[root] in own for root in pattern.roots)
        begins = kinds[pattern.roots[0]]
        radius = 0 if sum(kind in own for kind in kinds) == 1 and begins in own else len(pattern.nodes)
        starts = [n for n in _around(node, piece, radius) if begins in names_of(n)]
        matches: list[_Told] = []
        reasons: list[Mismatch] = []
        for start in starts:
            found, why = self.rewriter.attempts(pattern, start, piece)
            matches += [_match_told(match, piece) for match in found if node in match.nodes]
            reasons += [reason for reason in why if node in reason.nodes]
        if not matches and not is_root and not everywhere:
            return None
        return _Tried(pattern, matches, reasons)

    def _attempt(self, tried: _Tried, used: set[str]) -> RuleAttempt:
        name = tried.pattern.rule.name
        if name in used:
            return RuleAttempt(rule=name, outcome="used", reason="", fitted=len(tried.pattern.nodes))
        if not tried.matches:
            return RuleAttempt(rule=name, outcome="no match", reason=tried.furthest.reason, fitted=tried.furthest.depth)
        match = tried.matches[0]
        reason = f"it would compute {match.results} again; {self._why_unused(name)}"
        return RuleAttempt(rule=name, outcome="matches", reason=reason, fitted=match.size)

    def _why_unused(self, rule: str) -> str:
        if rule in self.book.rules.late:
            return LATE
        if self.report is None:
            return WITHOUT_SEARCH
        noted = [note for note in self.report.notes if rule in note]
        if noted:
            return "; ".join(noted)
        search = self.report.search
        if search is None:
            return "the rules were not searched in this run"
        seen = f"{search.candidates} graphs were looked at, {search.measured} timed"
        if not search.exhausted:
            return f"the clock decided against it, or the search did not come there before its budget was spent: {seen}"
        return f"the clock or the prediction decided against it: {seen}"

    def _steps(self, place: Place, piece: Piece) -> list[Taken]:
        """The steps of the run that had a node in hand that computes what this one does."""
        names = {name for name in place.label.outputs if name}
        found: list[Taken] = []

        def watch(taken: Taken) -> None:
            tags = taken.before.tags
            if any(node in tags and not names.isdisjoint(tags[node].outputs) for node in taken.match.nodes):
                found.append(taken)

        for record in self.report.trace if self.report is not None else ():
            if record.where == place.where:
                try:
                    piece = replay_one(piece, heard(record), self.book.rules, self.rewriter, watch=watch)
                except CannotReplay:
                    continue
        return found

    def _told(self, taken: Taken) -> str:
        step = taken.step
        told = f"{step.rule} computes {', '.join(step.results)} again"
        assert self.report is not None
        for r in self.report.rewrites:
            if r.name == step.rule and tuple(r.results) == step.results:
                if r.measured_us_before is not None and r.measured_us_after is not None:
                    told += f"; its region took {r.measured_us_before:.1f} µs, then {r.measured_us_after:.1f} µs"
                break
        if self.report.returned == "original":
            told += "; the original came back all the same"
        return told

    def _detail(self, rule: str, tried: Sequence[_Tried]) -> list[str]:
        lines = format_rule(self.book.rules.patterns[rule].rule).splitlines()
        for each in tried:
            lines += [f"matches at {match.results}: {match.bindings}" for match in each.matches]
            reasons = sorted(each.reasons, key=lambda r: -r.depth)
            told = dict.fromkeys(f"does not match, {r.depth} nodes and inputs fitted: {r.reason}" for r in reasons)
            lines += list(told)[:SHOWN]
        return lines


def _rank(attempt: RuleAttempt) -> tuple[int, int, str]:
    return ("used", "matches", "no match").index(attempt.outcome), -attempt.fitted, attempt.rule


def _no_such(pattern: Pattern, node: Node) -> Mismatch:
    if not pattern.roots:
        return Mismatch("its results share nothing: it is never looked for")
    return Mismatch(f"its pattern has no {node.kind}")


def _match_told(match: Match, piece: Piece) -> _Told:
    called = piece.called
    bound = {name: called.get(value, "a constant") for name, value in match.inputs.items()}
    bound |= {name: value for name, value in match.names.items() if "|" not in name and "." not in name}
    return _Told(
        ", ".join(called.get(value, "a value") for value in match.results.values()),
        ", ".join(f"{name} = {value}" for name, value in bound.items()),
        len(match.nodes) + len(match.inputs),
    )


def _around(node: Node, piece: Piece, radius: int) -> list[Node]:
    """Nodes that a rule of so many nodes can reach from this one, near ones first."""
    found = {node: None}
    ring = [node]
    for _ in range(radius):
        below = [v.producer for n in ring for v in n.operands]
        above = [user for n in ring for v in n.outputs for user in piece.reading(v)]
        beside = [user for n in ring for v in n.operands for user in piece.reading(v)]
        ring = [n for n in dict.fromkeys((*below, *above, *beside)) if isinstance(n, Node) and n not in found]
        ring = [n for n in ring if n in piece.tags]
        found.update(dict.fromkeys(ring))
        if not ring or len(found) > AROUND:
            break
    return list(found)[:AROUND]
