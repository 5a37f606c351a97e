# pyright: basic
"""Models rewritten by named rules, without clock: files and a report as `superopt optimize` leaves them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

from superopt.ir.onnx import Model, facts, load, stage
from superopt.ir.onnx.raised import raised
from superopt.ir.onnx.save import annotate
from superopt.normalize import normalize
from superopt.options import Options
from superopt.report import AuditReport, CheckReport, DeploymentReport, Report, TimingReport
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.rewriter import Rewriter
from superopt.rewrite.whole import piece_of
from superopt.runtime.deployment import Deployment
from superopt.search.audit import audit
from superopt.search.bodies import graphs
from superopt.search.deployments import Deployed, metadata_of
from superopt.search.regions import extract
from superopt.search.rulebook import Rulebook, open_rulebook
from superopt.search.trace import Traced, told, traced
from superopt.search.trial import Trial
from superopt.search.workshop import Workshop

AUDITED_RULES = ("conv-factor-input", "linear-matmul-matmul-to-matmul-matmul-4574")
"""Each fits in `convolutions` once."""

TEXT = """<ir_version: 8, opset_import: ["" : 17], producer_name: "p", metadata_props: ["k" : "v"]>
g (float[1, 3, 8, 8] x, float[n, 6] z) => (float[1, 16, 6, 6] y, float[n, 5] t)
<float[16, 3, 3, 3] k1, float[16, 3, 3, 3] k2, float[6, 7] w1, float[7, 5] w2, float[5] b1 = {1, 2, 3, 4, 5},
 float[1] b2 = {0.5}> {
  a = Identity(x)
  [conv1] c1 = Conv <kernel_shape = [3, 3]> (a, k1)
  [conv2] c2 = Conv <kernel_shape = [3, 3]> (x, k2)
  [joined] y = Add(c1, c2)
  [chain1] m1 = MatMul(z, w1)
  [chain2] m2 = MatMul(m1, w2)
  b = Mul(b1, b2)
  [biased] t = Add(m2, b)
}"""


def convolutions() -> onnx.ModelProto:
    """Two convolutions of one input that are added, a chain of products, something to fold and to drop."""
    proto = parser.parse_model(TEXT)
    fill(proto)
    return proto


def fill(proto: onnx.ModelProto) -> None:
    """Weights for the values that the text declares and nothing computes."""
    random = np.random.default_rng(0)
    made = {name for node in proto.graph.node for name in node.output} | {t.name for t in proto.graph.initializer}
    weights = [v for v in proto.graph.value_info if v.name not in made]
    for value in weights:
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        array = random.standard_normal(shape).astype(np.float32)
        proto.graph.initializer.append(numpy_helper.from_array(array, value.name))
        proto.graph.value_info.remove(value)


@cache
def book() -> Rulebook:
    return open_rulebook()


@dataclass(frozen=True)
class Rewritten:
    original: Path
    optimized: Path
    report: Path

    def copied(self, folder: Path) -> Rewritten:
        paths = (self.original, self.optimized, self.report)
        for path in paths:
            shutil.copyfile(path, folder / path.name)
        return Rewritten(*(folder / path.name for path in paths))

    def told(self) -> Report:
        return Report.model_validate_json(self.report.read_text())

    def tell(self, report: Report) -> None:
        self.report.write_text(report.model_dump_json())

    def forge(self, proto: onnx.ModelProto) -> None:
        """Another result, and a report that claims to be about it."""
        self.optimized.write_bytes(proto.SerializeToString(deterministic=True))
        report = self.told()
        self.tell(report.model_copy(update={"after": facts(load(self.optimized))}))


def rewrite(
    folder: Path, proto: onnx.ModelProto, names: Sequence[str], rulebook: Rulebook | None = None, **options: Any
) -> Rewritten:
    """The model with each named rule applied where it first fits, one after the other, each in a region of its own."""
    original = folder / "original.onnx"
    original.write_bytes(proto.SerializeToString(deterministic=True))
    given = Options.of(**{"target": "cpu", "threads": 1, **options})
    model = load(original)
    base = raised(model, given.opset) if given.opset else model
    tidied = normalize(base, growth_cap=None if given.growth < 0 else given.growth)
    vocabulary = Vocabulary(contrib=given.allow == "contrib")
    workshop = Workshop(base, tidied.graph, rulebook or book(), vocabulary)
    trace: list[Traced] = []
    for number, rule in enumerate(names, 1):
        trace.append(_traced(workshop, trace, rule, number))
    graph, made, notes = workshop.build(trace)
    assert not notes, notes
    assert len(made) == len(trace)
    written = stage(base, graph, folder / "staged", "optimized.onnx", "optimized.onnx.data")
    deployment = Deployment("cpu", threads=1)
    annotate(written.path, metadata_of(deployment))
    for name in ("optimized.onnx", *written.data_files):
        (folder / "staged" / name).rename(folder / name)
    report = _report(model, given, Deployed(deployment, deployment, searched=False).report())
    report = report.model_copy(
        update={
            "after": facts(load(folder / "optimized.onnx")),
            "rewrites": [*tidied.rewrites, *workshop.rewrites(made)],
            "candidate_nodes": sum(1 for _ in graph.all_nodes()),
            "trace": [told(record, workshop.book.digests) for record in made],
        }
    )
    found = Rewritten(original, folder / "optimized.onnx", folder / "report.json")
    found.tell(report)
    return found


def _traced(workshop: Workshop, trace: list[Traced], rule: str, kind: int) -> Traced:
    """One step of the rule in the first of the model's graphs that has a place for it."""
    pattern = workshop.book.rules.patterns[rule]
    graph, _, _ = workshop.build(trace)
    for body, where in graphs(graph):
        model = workshop.model
        rewriter = Rewriter(workshop.book.registry, model.opset, workshop.vocabulary, model.functions)
        piece = piece_of(body, rewriter.constants)
        readable = [n for n in piece.nodes if not n.bodies and not isinstance(rewriter.reader.read(n), str)]
        region = extract(piece, readable, where)
        for node in region.piece.nodes:
            for match, made in rewriter.matches(pattern, node, region.piece):
                taken = rewriter.take(region.piece, match, made, piece.names)
                return traced(region, piece, [taken.step], kind)
    raise AssertionError(f"{rule} fits nowhere")


def _report(model: Model, options: Options, deployment: DeploymentReport) -> Report:
    before = facts(model)
    return Report(
        verdict="1.20× faster (1.10 to 1.30), outputs checked equal", returned="optimized", before=before, after=before,
        rewrites=[], candidate_nodes=0, timing=TimingReport.untimed("no clock"), deployment=deployment,
        check=CheckReport(status="equal", reason="", runs=1, inputs=[], outputs=[]),
        environment=Trial(model, options, lambda *_: None).environment(), options=options.as_json(),
        peak_memory_bytes=0, seconds=0.0,
    )  # fmt: skip


def branches() -> onnx.ModelProto:
    """Two nodes of one name, each with a body that a rule fits in."""
    proto = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (bool c, float[n, 6] z) => (float[n, 5] p, float[n, 5] q) <float[6, 7] w1, float[7, 5] w2> {
          [twin] p = If (c) <
            then_branch = a () => (float[n, 5] pa) { m = MatMul(z, w1) pa = MatMul(m, w2) },
            else_branch = b () => (float[n, 5] pb) { e = MatMul(z, w1) f = MatMul(e, w2) pb = Relu(f) }
          >
          [twin] q = If (c) <
            then_branch = a () => (float[n, 5] qa) { o = MatMul(z, w1) r = MatMul(o, w2) qa = Abs(r) },
            else_branch = b () => (float[n, 5] qb) { s = MatMul(z, w1) u = MatMul(s, w2) qb = Neg(u) }
          >
        }"""
    )
    fill(proto)
    return proto


def with_external_data(proto: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """The same model, its weights in a file beside it."""
    moved = onnx.ModelProto()
    moved.CopyFrom(proto)
    data = b""
    for tensor in moved.graph.initializer:
        raw = numpy_helper.to_array(tensor).tobytes()
        header = helper.make_tensor(tensor.name, tensor.data_type, tensor.dims, raw, raw=True)
        header.ClearField("raw_data")
        header.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", "weights.bin"), ("offset", len(data)), ("length", len(raw))):
            header.external_data.add(key=key, value=str(value))
        data += raw
        tensor.CopyFrom(header)
    (folder / "weights.bin").write_bytes(data)
    return moved


def audited(result: Rewritten, rules: tuple[Path, ...] = ()) -> AuditReport:
    return audit(result.original, result.optimized, result.report, rules, (), lambda *_: None)


def problem(result: Rewritten) -> str:
    found = audited(result)
    assert not found.confirmed
    return found.problems[0]
