"""Was a result made as its report says? Everything is done again from the original, and nothing is believed.

The passes run again, every step of the trace is matched again with rules that are proved as they stand, weights are
combined again, and what comes out is held against the file: node by node, name by name, weight by weight. Neither clock
nor device is needed; times, and the comparison of outputs, are left to `superopt bench` and `superopt check`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from superopt.errors import CannotReplay
from superopt.ir.graph import Graph, Value
from superopt.ir.onnx import Model, facts, load
from superopt.ir.onnx.expected import first_difference
from superopt.ir.onnx.raised import raised
from superopt.ir.onnx.stats import added_operators
from superopt.ir.tensor import Tensor
from superopt.normalize import normalize
from superopt.options import Options
from superopt.report import AuditedRule, AuditedWeights, AuditReport, ModelFacts, OwnRule, Record, Report, Rewrite
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.rewriter import Rewriter
from superopt.rewrite.rule import Rule
from superopt.rewrite.weights import combine
from superopt.search.bodies import graphs
from superopt.search.deployments import metadata_of_options
from superopt.search.evidence import differing_data, options_in, read_report, surroundings
from superopt.search.rulebook import Rulebook, open_rulebook
from superopt.search.trace import Traced, heard
from superopt.search.weighing import Origin, Weighing
from superopt.search.workshop import Workshop

_MEASURED = ("predicted_us_before", "predicted_us_after", "measured_us_before", "measured_us_after")
"""What a rewrite tells of the clock: not audited."""

Tell = Callable[[str, str], None]


class _Doubt(Exception):
    """The first thing that could not be confirmed."""


def audit(
    original: Path, optimized: Path, report: Path, rules: Sequence[Path], definitions: Sequence[Path], tell: Tell
) -> AuditReport:
    """`rules`: the user's own, besides those that ship; `definitions`: folders of operators that they use."""
    told = read_report(report)
    tell("loading", original.name)
    return _Audit(load(original), load(optimized), told, options_in(told, report), rules, definitions, tell).run()


class _Audit:
    def __init__(
        self,
        original: Model,
        optimized: Model,
        report: Report,
        options: Options,
        rules: Sequence[Path],
        definitions: Sequence[Path],
        tell: Tell,
    ) -> None:
        self.original, self.optimized, self.report, self.options = original, optimized, report, options
        self.rules, self.definitions, self.tell = rules, definitions, tell
        self.passes: Counter[str] = Counter()
        self.used: list[AuditedRule] = []
        self.regions = self.steps = self.nodes = 0
        self.weights: AuditedWeights | None = None
        self.notes: list[str] = []

    def run(self) -> AuditReport:
        problems: list[str] = []
        try:
            self._confirm_file("the original", self.original, self.report.before)
            if self.report.returned == "original":
                self._confirm_untouched()
            else:
                self._confirm_rewritten()
            self._confirm_file("the result", self.optimized, self.report.after)
            self._tell_prediction()
        except _Doubt as doubt:
            problems.append(str(doubt))
            problems += [p for p in self._other_files() if p not in problems]
            self.notes += surroundings(self.report)
        return AuditReport(
            confirmed=not problems,
            problems=problems,
            original=str(self.original.path),
            optimized=str(self.optimized.path),
            returned=self.report.returned,
            passes=dict(self.passes),
            regions=self.regions,
            steps=self.steps,
            rules=self.used,
            nodes=self.nodes,
            weights=self.weights,
            notes=self.notes,
        )

    def _tell_prediction(self) -> None:
        told = self.report.prediction
        if told is not None:
            self.notes.append(
                f"the speed-up was predicted for {told.device}, not measured, and is not made again here: superopt "
                "bench measures it there; outputs were checked on the CPU alone, superopt check compares them there"
            )

    def _confirm_file(self, what: str, model: Model, told: ModelFacts) -> None:
        if model.sha256 != told.sha256:
            raise _Doubt(_another(what, model, told))
        difference = _differing_field(told, facts(model), but=("path",))
        if difference:
            raise _Doubt(f"{what}, {model.path}: the report tells of another {difference}")

    def _other_files(self) -> list[str]:
        files = (("the original", self.original, self.report.before), ("the result", self.optimized, self.report.after))
        return [_another(what, model, told) for what, model, told in files if model.sha256 != told.sha256]

    def _confirm_untouched(self) -> None:
        """The original itself came back: its bytes, and those of its data files."""
        if self.original.data != self.optimized.data:
            raise _Doubt(
                f"{self.optimized.path}: the report says that the original's own bytes were returned, these are others"
            )
        difference = differing_data(self.original, self.optimized)
        if difference:
            raise _Doubt(difference)
        self.nodes = sum(1 for _ in self.optimized.graph.all_nodes())

    def _confirm_rewritten(self) -> None:
        if self.report.check.status != "equal":
            raise _Doubt(f"the report returns a model whose outputs it calls {self.report.check.status}")
        book = open_rulebook(self.rules, self.definitions)
        self._confirm_mutants(book)
        self._confirm_mined(book)
        self._confirm_rules(book)
        base = self._base()
        self._confirm_vocabulary(base)
        self.tell("tidying again", "")
        growth = None if self.options.growth < 0 else self.options.growth
        for_cuda = self.report.environment.target == "cuda"
        tidied = normalize(base, growth_cap=growth, forbid=set(self.report.left_out), for_cuda=for_cuda)
        combined: set[Tensor] = set()

        def combining(model: Model, wanted: Sequence[Value]) -> Mapping[Value, Tensor]:
            found = combine(model, wanted)
            combined.update(found.values())
            return found

        cuda = for_cuda and self.report.prediction is None
        vocabulary = Vocabulary(contrib=self.options.allow == "contrib", cuda=cuda)
        workshop = Workshop(base, tidied.graph, book, vocabulary, combining)
        trace = [heard(record) for record in self.report.trace]
        self._confirm_rewrites([*tidied.rewrites, *workshop.rewrites(trace)])
        self.passes = Counter(rewrite.name for rewrite in tidied.rewrites)
        graph = self._replayed(workshop, trace)
        if self.report.mutants:
            searched = normalize(base, growth_cap=growth, for_cuda=for_cuda) if self.report.left_out else tidied
            rewriter = Rewriter(book.registry, base.opset, vocabulary, base.functions)
            self._confirm_descriptions(book, searched.graph, rewriter)
        self._confirm_result(base, graph, _origins(base.graph, tidied.graph, graph, combined))

    def _base(self) -> Model:
        """What the rewrites began with: the original, or what onnx makes of it at a newer opset."""
        if not self.options.opset or self.options.opset == self.original.opset:
            return self.original
        self.notes.append(f"the opset was raised to {self.options.opset} by onnx's own converter, which is not proved")
        return raised(self.original, self.options.opset)

    def _confirm_result(self, base: Model, graph: Graph, origins: Mapping[Tensor, Origin]) -> None:
        self.tell("comparing", "")
        weighing = Weighing(lambda tensor: origins.get(tensor, "original"))
        metadata = {} if self.report.deployment is None else metadata_of_options(self.report.deployment.options)
        difference = first_difference(base, graph, metadata, self.optimized, weighing.judge)
        self.weights = weighing.report
        if difference:
            raise _Doubt(f"{self.optimized.path}: {difference}")
        self.nodes = sum(1 for _ in self.optimized.graph.all_nodes())

    def _confirm_rules(self, book: Rulebook) -> None:
        """Each rule of the trace is proved as it stands, and is the one that the report means."""
        counts = Counter((step.rule, step.digest) for record in self.report.trace for step in record.steps)
        for (name, digest), count in counts.items():
            if name not in book.digests:
                raise _Doubt(self._unusable(name, book))
            if digest != book.digests[name]:
                raise _Doubt(f"rule {name}: the report used digest {digest}, as it stands it has {book.digests[name]}")
            self.used.append(AuditedRule(name=name, digest=digest, proof=book.proofs[name], steps=count))

    def _confirm_mutants(self, book: Rulebook) -> None:
        """Mutants are proved again, and join the rules that are in files."""
        if not self.report.mutants:
            return
        try:
            from superopt.search.mutant_proofs import MutantProver  # with z3, which most audits do not need
        except ImportError as error:
            raise _Doubt(f"mutants cannot be proved again here: {error}") from None
        self._confirm_own("mutant", self.report.mutants, MutantProver(book.registry).confirm, book)
        count = len(self.report.mutants)
        what = "mutant with its corrections was" if count == 1 else "mutants with their corrections were"
        self.notes.append(f"{count} {what} proved again")

    def _confirm_mined(self, book: Rulebook) -> None:
        """And so are rules that were mined from the model."""
        if not self.report.mined:
            return
        try:
            from superopt.search.mined_proofs import confirm_mined  # with z3, which most audits do not need
        except ImportError as error:
            raise _Doubt(f"mined rules cannot be proved again here: {error}") from None
        self._confirm_own("mined rule", self.report.mined, lambda told: confirm_mined(told, book.registry), book)
        count = len(self.report.mined)
        self.notes.append(f"{count} mined {'rule was' if count == 1 else 'rules were'} proved again")

    def _confirm_own(
        self, what: str, rules: Sequence[OwnRule], confirm: Callable[[OwnRule], Rule | str], book: Rulebook
    ) -> None:
        """Rules that are in no file: each is used, is no other rule's namesake, and is confirmed."""
        used = {step.rule for record in self.report.trace for step in record.steps}
        for told in rules:
            if told.name not in used:
                raise _Doubt(f"{what} {told.name}: the trace does not use it")
            if told.name in book.digests:
                raise _Doubt(f"{what} {told.name}: there is a rule of this name already")
            self.tell("proving again", told.name)
            found = confirm(told)
            if isinstance(found, str):
                raise _Doubt(found)
            book.add(found)

    def _confirm_descriptions(self, book: Rulebook, searched: Graph, rewriter: Rewriter) -> None:
        """What mutants say of themselves, which no proof is about, is what the search says of them."""
        from superopt.search.mutant_proofs import misdescribed  # with z3, which most audits do not need

        for told in self.report.mutants:
            self.tell("mutating again", told.name)
            doubt = misdescribed(book.rules.patterns[told.name].rule, searched, rewriter)
            if doubt:
                raise _Doubt(doubt)

    def _unusable(self, name: str, book: Rulebook) -> str:
        if name in book.unusable:
            return f"rule {name} is {book.unusable[name]}"
        own = ", ".join(map(str, self.options.rules)) if not self.rules else ""
        hint = f"; the report used rules of {own} besides: give them with --rules" if own else ""
        return f"there is no proved rule {name}{hint}"

    def _confirm_vocabulary(self, base: Model) -> None:
        added = added_operators(base, self.optimized.graph)
        if not added:
            return
        told = ", ".join(f"{count} × {kind}" for kind, count in added.items())
        if self.options.allow == "standard":
            raise _Doubt(f"{self.optimized.path}: standard operators alone were allowed, there are {told}")
        self.notes.append(f"operators that ONNX does not define and the original does not have: {told}")

    def _confirm_rewrites(self, expected: Sequence[Rewrite]) -> None:
        told = [rewrite.model_copy(update=dict.fromkeys(_MEASURED)) for rewrite in self.report.rewrites]
        for number, (a, b) in enumerate(zip(expected, told, strict=False), 1):
            difference = _differing_field(a, b)
            if difference:
                raise _Doubt(f"rewrite {number} of the report, {b.name} at {b.place}: another {difference}")
        if len(expected) > len(told):
            first = expected[len(told)]
            raise _Doubt(f"the report leaves out a rewrite: {first.name} at {first.place}")
        if len(told) > len(expected):
            first = told[len(expected)]
            raise _Doubt(f"the report tells of a rewrite that was not made: {first.name} at {first.place}")

    def _replayed(self, workshop: Workshop, trace: list[Traced]) -> Graph:
        self.tell("replaying", f"{len(trace)} regions")
        try:
            graph, made, _ = workshop.build(trace, strict=True)
        except CannotReplay as error:
            raise _Doubt(f"a step cannot be made again: {error}") from None
        if made != trace:
            lost = next((record for record in trace if record not in made), trace[0])
            raise _Doubt(f"region {lost.kind}: there is no body {lost.where!r}, or it is told in another order")
        nodes = sum(1 for _ in graph.all_nodes())
        if nodes != self.report.candidate_nodes:
            raise _Doubt(f"the trace gives {nodes} nodes, the report says {self.report.candidate_nodes}")
        self.regions, self.steps = len(trace), sum(len(record.steps) for record in trace)
        return graph


def _another(what: str, model: Model, told: ModelFacts) -> str:
    return f"{model.path}: is not {what} that the report is about: its sha256 is {model.sha256}, there {told.sha256}"


def _differing_field(expected: Record, found: Record, but: tuple[str, ...] = ()) -> str:
    for name in type(expected).model_fields:
        a, b = getattr(expected, name), getattr(found, name)
        if name not in but and a != b:
            return f"{name}: expected {a!r}, found {b!r}"
    return ""


def _origins(original: Graph, tidied: Graph, final: Graph, combined: set[Tensor]) -> dict[Tensor, Origin]:
    """Where each tensor of the final graph comes from."""
    found: dict[Tensor, Origin] = dict.fromkeys(_tensors(final), "written")
    found.update(dict.fromkeys(combined, "combined"))
    found.update(dict.fromkeys(_tensors(tidied), "folded"))
    found.update(dict.fromkeys(_tensors(original), "original"))
    return found


def _tensors(top: Graph) -> Iterator[Tensor]:
    for graph, _ in graphs(top):
        yield from (constant.tensor for constant in graph.constants)
        for node in graph.nodes:
            yield from (value for _, value in node.attributes if isinstance(value, Tensor))
