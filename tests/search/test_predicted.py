# pyright: basic
"""A model optimized for a GPU that is not here: from recorded times, checked on the CPU, and never called measured."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path

import onnx
import onnx.parser
import pytest
from rich.console import Console

from superopt.cli.tables import show_report
from superopt.cost.cache import RegionTime
from superopt.cost.contents import Contents, merged
from superopt.cost.costs import read_costs
from superopt.cost.portable import write_portable
from superopt.cost.regions import region_key
from superopt.cost.result import Comparison, PairTiming, SubjectTiming
from superopt.cost.samples import samples
from superopt.cost.workloads import host
from superopt.errors import BadOption
from superopt.explain.page import report_page
from superopt.options import Options
from superopt.report import Report
from superopt.search.aim import aim_of
from superopt.search.audit import audit
from tests.search.counted import GPU, World, as_gpu, calibrated, changed, gpu_file, latency, predicted, saved
from tests.search.test_hunt import lora

pytestmark = pytest.mark.ort

SAMPLES = {region_key(host(), graph, {}) for target in ("cpu", "cuda") for graph in samples(target)}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved(tmp_path / "m.onnx", lora(2))


@pytest.fixture
def shipped(model: Path, tmp_path: Path, world: World) -> Path:
    """What was recorded of the model; from now on nothing may be put on a clock."""
    file = gpu_file(model, tmp_path)
    forbid(world)
    return file


def forbid(world: World) -> None:
    def refuse(*_, **__):
        raise AssertionError("something was timed")

    world.time_regions = world.compare = refuse


def rewritten(file: Path, change) -> Path:
    write_portable(change(read_costs(file)), file)
    return file


def printed(report: Report) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    show_report(console, report)
    return console.export_text()


def test_recorded_times_decide_and_nothing_is_called_measured(model: Path, tmp_path: Path, shipped: Path) -> None:
    report = predicted(model, tmp_path, shipped)
    told = report.prediction
    assert told is not None
    assert (report.returned, told.device, told.driver) == ("optimized", GPU, "9.1")
    assert told.speedup >= told.cautious >= told.least == 1.05
    assert (told.before_is, told.recorded_share) == ("recorded", pytest.approx(1.0))
    assert told.recorded_gains > 0
    assert told.predicted_gains == 0
    assert told.before / told.after == pytest.approx(told.speedup)
    assert (report.timing.status, report.timing.speedup, report.timing.after) == ("untimed", None, None)
    assert report.timing.reason.startswith("predicted, not measured")
    assert report.verdict.startswith(f"predicted, not measured: {told.speedup:.2f}× on {GPU}; outputs checked equal")
    assert (report.environment.target, report.environment.device) == ("cuda", GPU)
    assert report.check.status == "equal"
    assert any("CPU provider" in note for note in report.check.notes)
    assert any("not slower there is not shown" in note for note in report.notes)
    assert sum(n.op_type in ("MatMul", "Gemm") for n in onnx.load(tmp_path / "out.onnx").graph.node) == 2


def test_every_surface_says_that_it_was_predicted(model: Path, tmp_path: Path, shipped: Path) -> None:
    report = predicted(model, tmp_path, shipped)
    table, page = printed(report), report_page(report, None, {})
    assert "latency, predicted, not measured" in table
    assert "timed: no: predicted, not measured" in table
    assert "faster (" not in table
    assert page.count("predicted, not measured") >= 4
    assert "95 % sure" not in page


def test_an_audit_confirms_the_rewrites_and_says_what_it_cannot_repeat(
    model: Path, tmp_path: Path, shipped: Path
) -> None:
    predicted(model, tmp_path, shipped)
    found = audit(model, tmp_path / "out.onnx", tmp_path / "report.json", (), (), lambda *_: None)
    assert found.confirmed, found.problems
    assert found.steps > 0
    assert any("predicted for NVIDIA Fake, not measured" in note for note in found.notes)


def test_options_that_are_unknown_are_said_to_be(model: Path, tmp_path: Path, shipped: Path) -> None:
    report = predicted(model, tmp_path, shipped)
    assert report.deployment is not None
    assert not report.deployment.searched
    assert report.deployment.options["execution_provider"] == "CUDAExecutionProvider"
    assert any("is unknown" in note for note in report.deployment.notes)
    metadata = {e.key: e.value for e in onnx.load(tmp_path / "out.onnx").metadata_props}
    assert json.loads(metadata["superopt.deployment"]) == report.deployment.options


def test_options_recorded_as_best_for_the_same_model_come_back_with_it(
    model: Path, tmp_path: Path, world: World
) -> None:
    calibrated(model, costs=tmp_path / "here.sqlite", options="search")
    file = tmp_path / "gpu.json"
    write_portable(as_gpu(read_costs(tmp_path / "here.sqlite")), file)
    (best,) = [e for e in read_costs(file).comparisons.values() if len(set(e.key.models)) < len(e.key.models)]
    key = dataclasses.replace(best.key, deployments=(best.key.deployments[0], best.key.deployments[1] + " x.y=1"))
    pair = best.comparison.pairs[0].model_copy(update={"speedup": 2.5, "verdict": "faster"})
    better = dataclasses.replace(best, key=key, comparison=best.comparison.model_copy(update={"pairs": (pair,)}))
    keep = {k: e for k, e in read_costs(file).comparisons.items() if e != best} | {key: better}
    rewritten(file, lambda c: changed(Contents(c.regions, keep), slower_candidates(c)))
    forbid(world)
    report = predicted(model, tmp_path, file)
    assert report.returned == "original"
    assert report.deployment is not None
    assert (report.deployment.options["x.y"], report.deployment.speedup) == ("1", 2.5)
    assert "not measured in this run" in report.deployment.notes[0]


def slower_candidates(contents: Contents):
    """All regions take as long as the slowest: nothing pays."""
    most = max(e.time.seconds or 0.0 for k, e in contents.regions.items() if k.structure not in SAMPLES)
    return lambda key, told: told if key in SAMPLES else RegionTime(most)


def test_where_nothing_pays_the_original_comes_back(model: Path, tmp_path: Path, shipped: Path) -> None:
    rewritten(shipped, lambda c: changed(c, slower_candidates(c)))
    report = predicted(model, tmp_path, shipped)
    assert report.returned == "original"
    assert report.verdict == (
        f"0 %: predicted, not measured: nothing was found that should be faster on {GPU}; "
        "the original's own bytes are returned"
    )
    assert (tmp_path / "out.onnx").read_bytes() == model.read_bytes()
    assert "latency, predicted, not measured" in printed(report)


def test_a_gain_that_is_lost_in_the_whole_is_not_returned(model: Path, tmp_path: Path, shipped: Path) -> None:
    """As a whole the original took a second there: what its regions gain is a thousandth of that."""

    def slow(contents: Contents) -> Contents:
        whole = {}
        for key, entry in contents.comparisons.items():
            subjects = tuple(s.model_copy(update={"latency": latency(1.0)}) for s in entry.comparison.subjects)
            whole[key] = dataclasses.replace(
                entry, comparison=entry.comparison.model_copy(update={"subjects": subjects})
            )
        return Contents(contents.regions, whole)

    rewritten(shipped, slow)
    report = predicted(model, tmp_path, shipped)
    assert report.prediction is not None
    assert 1.0 < report.prediction.speedup < 1.01
    assert report.returned == "original"
    assert "1.05× is asked for" in report.verdict
    assert report.verdict.startswith("0 %: predicted, not measured")


def test_a_second_look_that_takes_it_back_counts(model: Path, tmp_path: Path, shipped: Path) -> None:
    rewritten(shipped, lambda c: changed(c, lambda key, t: RegionTime(1.0) if key.endswith(" again") else t))
    assert predicted(model, tmp_path, shipped).returned == "original"


def test_what_was_timed_once_counts_half(model: Path, tmp_path: Path, shipped: Path) -> None:
    rewritten(shipped, lambda c: changed(c, lambda key, t: None if key.endswith(" again") else t))
    told = predicted(model, tmp_path, shipped).prediction
    assert told is not None
    assert told.recorded_gains > 0
    saved_ = 1 - 1 / told.speedup
    assert 1 - 1 / told.cautious == pytest.approx(saved_ / 2)


def test_of_a_model_that_was_not_there_a_third_is_counted(model: Path, tmp_path: Path, shipped: Path) -> None:
    rewritten(shipped, lambda c: Contents(changed(c, lambda key, t: t if key in SAMPLES else None).regions, {}))
    report = predicted(model, tmp_path, shipped)
    told = report.prediction
    assert told is not None
    assert (told.recorded_gains, told.recorded_share, told.before_is) == (0, 0.0, "added up")
    assert told.predicted_gains > 0
    assert 1 - 1 / told.cautious == pytest.approx((1 - 1 / told.speedup) / 3)
    rules = [r for r in report.rewrites if r.kind == "rule"]
    assert rules
    assert all(r.measured_us_before is None and r.predicted_us_before is not None for r in rules)


def test_what_the_clock_said_of_a_region_is_not_overruled_by_prices(model: Path, tmp_path: Path, shipped: Path) -> None:
    """Of each region one candidate is recorded, and is no faster; prices would take others."""
    own = recorded_starts(shipped)

    def one_slow(key: str, told: RegionTime) -> RegionTime | None:
        if key in SAMPLES or key in own:
            return told
        return RegionTime(1.0)

    rewritten(shipped, lambda c: changed(c, one_slow))
    assert predicted(model, tmp_path, shipped).returned == "original"


def recorded_starts(file: Path) -> set[str]:
    """Keys of the model's own regions: the slowest that were recorded."""
    times = {k.structure: e.time.seconds or 0.0 for k, e in read_costs(file).regions.items()}
    regions = {k: t for k, t in times.items() if k not in SAMPLES and not k.endswith(" again")}
    return {k for k, t in regions.items() if t == max(regions.values())}


def test_what_could_not_be_run_there_is_not_used(model: Path, tmp_path: Path, shipped: Path) -> None:
    own = recorded_starts(shipped)

    def failing(key: str, told: RegionTime) -> RegionTime:
        return told if key in SAMPLES or key in own else RegionTime(None, "no kernel")

    rewritten(shipped, lambda c: changed(c, failing))
    report = predicted(model, tmp_path, shipped)
    assert not any(r.kind == "rule" and r.measured_us_before is not None for r in report.rewrites)


def options(costs: Path, **given) -> Options:
    return Options.of(**{"target": "cuda", "costs": costs, **given})


def test_two_devices_are_asked_about_and_one_can_be_named(model: Path, tmp_path: Path, shipped: Path) -> None:
    here = read_costs(tmp_path / "here.sqlite")
    both = merged([read_costs(shipped), as_gpu(here, "NVIDIA Other"), as_gpu(here, runtime="1.0.0"), here]).contents
    write_portable(both, shipped)
    with pytest.raises(BadOption) as caught:
        aim_of(options(shipped))
    for text in ("NVIDIA Fake, driver 9.1", "NVIDIA Other, driver 9.1", "onnxruntime 1.0.0", "--device"):
        assert text in str(caught.value)
    assert "cores" not in str(caught.value)
    other = aim_of(options(shipped, device="other")).machine
    assert other is not None
    assert other.device == "NVIDIA Other"
    with pytest.raises(BadOption, match="holds costs of 2 devices, drivers or runtimes"):
        aim_of(options(shipped, device="Fake"))
    with pytest.raises(BadOption, match="holds no costs of it"):
        aim_of(options(shipped, device="Fake", target="cpu"))
    cpu = aim_of(options(shipped, device="cores", target="auto")).machine
    assert cpu is not None
    assert cpu.target == "cpu"


def test_times_of_another_runtime_are_named(model: Path, tmp_path: Path, shipped: Path) -> None:
    write_portable(as_gpu(read_costs(tmp_path / "here.sqlite"), runtime="1.0.0"), shipped)
    report = predicted(model, tmp_path, shipped)
    assert report.prediction is not None
    assert report.prediction.onnxruntime == "1.0.0" != report.environment.onnxruntime
    assert any(note.startswith("the times are of onnxruntime 1.0.0, the check ran on ") for note in report.notes)


def test_without_costs_of_a_gpu_the_error_says_what_is_missing(tmp_path: Path, world: World) -> None:
    with pytest.raises(BadOption, match="target cuda: not usable here: "):
        aim_of(Options.of(target="cuda"))
    with pytest.raises(
        BadOption, match=r"not usable here: no CUDA device answered; .*none: there is no such cost file"
    ):
        aim_of(options(tmp_path / "none"))
    model = saved(tmp_path / "m.onnx", lora(1))
    calibrated(model, costs=tmp_path / "c", seconds=1e-3)
    with pytest.raises(BadOption, match="holds no costs of a CUDA device"):
        aim_of(options(tmp_path / "c"))
    with pytest.raises(BadOption, match="--device H200: names a device of a cost file; give the file with --costs"):
        Options.of(device="H200")


def test_threads_that_nobody_measured_with_are_refused(model: Path, tmp_path: Path, shipped: Path) -> None:
    with pytest.raises(BadOption, match=r"holds no times of regions on NVIDIA Fake.* with 3 threads"):
        predicted(model, tmp_path, shipped, threads=3)


def test_an_exported_file_serves_a_run_on_the_device_itself(model: Path, tmp_path: Path, world: World) -> None:
    calibrated(model, costs=tmp_path / "here.sqlite")
    write_portable(read_costs(tmp_path / "here.sqlite"), tmp_path / "here.json")
    before, asked = (tmp_path / "here.json").read_bytes(), len(world.regions)
    report = predicted(model, tmp_path, tmp_path / "here.json", target="cpu", threads=1, partial=False)
    assert report.prediction is None
    assert len(world.regions) == asked
    assert any("what was measured besides was not added" in note for note in report.notes)
    assert (tmp_path / "here.json").read_bytes() == before


def test_costs_of_another_runtime_are_not_used_on_the_device_and_that_is_told(
    model: Path, tmp_path: Path, world: World
) -> None:
    calibrated(model, costs=tmp_path / "here.sqlite")
    here = read_costs(tmp_path / "here.sqlite")
    older = Contents.of(
        [dataclasses.replace(e, key=dataclasses.replace(k, runtime="1.0.0")) for k, e in here.regions.items()], []
    )
    write_portable(older, tmp_path / "older.json")
    asked = len(world.regions)
    report = predicted(model, tmp_path, tmp_path / "older.json", target="cpu", threads=1, partial=False)
    assert report.prediction is None
    assert len(world.regions) > asked
    (note,) = [note for note in report.notes if "holds no costs of" in note]
    assert "those of others are not used: " in note
    assert "onnxruntime 1.0.0" in note


def test_a_model_that_the_cpu_does_not_run_comes_back_unchecked(tmp_path: Path, model: Path, shipped: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { a = Identity(x) y = Nope(a) }'
    strange = saved(tmp_path / "strange.onnx", onnx.parser.parse_model(text))
    report = predicted(strange, tmp_path, shipped)
    assert (report.returned, report.check.status, report.prediction) == ("original", "unchecked", None)
    assert (tmp_path / "out.onnx").read_bytes() == strange.read_bytes()


GRAPH = "cuda.enable_cuda_graph"


def with_launches(contents: Contents, speedup: float | None) -> Contents:
    """Times with recorded launches; and how much those gain for the model, where that is known."""
    captured = as_gpu(contents, enable_cuda_graph="1")
    if speedup is None:
        return captured
    (alone,) = [e for e in as_gpu(contents).comparisons.values() if len(e.key.deployments) == 1]
    plain = alone.key.deployments[0]
    (recorded,) = {key.deployment for key in captured.regions}
    subjects = tuple(SubjectTiming(name=name, latency=None) for name in ("original", "recorded"))
    pair = PairTiming(
        name="recorded", verdict="faster", reason="", speedup=speedup, interval=None, sittings=2, pairs=9
    )  # fmt: skip
    told = Comparison(subjects=subjects, pairs=(pair,), seconds=1.0, one_at_a_time=False)
    entry = dataclasses.replace(
        alone, key=dataclasses.replace(alone.key, deployments=(plain, recorded)), comparison=told
    )  # fmt: skip
    return merged([captured, as_gpu(contents), Contents.of([], [entry])]).contents


@pytest.mark.parametrize(("speedup", "launches"), [(None, "1"), (3.0, "1"), (0.9, None)])
def test_launches_are_recorded_where_that_was_found_to_pay(
    model: Path, tmp_path: Path, shipped: Path, speedup: float | None, launches: str | None
) -> None:
    write_portable(with_launches(read_costs(tmp_path / "here.sqlite"), speedup), shipped)
    report = predicted(model, tmp_path, shipped)
    assert report.returned == "optimized"
    assert report.prediction is not None
    assert ("enable_cuda_graph=1" in report.prediction.deployment) == (launches is not None)
    assert report.deployment is not None
    assert report.deployment.options.get(GRAPH) == launches


def test_fixed_options_are_those_without(model: Path, tmp_path: Path, shipped: Path) -> None:
    write_portable(with_launches(read_costs(tmp_path / "here.sqlite"), 3.0), shipped)
    report = predicted(model, tmp_path, shipped, options="fixed")
    assert report.deployment is not None
    assert GRAPH not in report.deployment.options
    assert report.prediction is not None
    assert "enable_cuda_graph" not in report.prediction.deployment


def test_what_could_not_be_captured_is_taken_from_plain_launches(model: Path, tmp_path: Path, shipped: Path) -> None:
    here = read_costs(tmp_path / "here.sqlite")
    captured = changed(
        as_gpu(here, enable_cuda_graph="1"), lambda key, t: t if key in SAMPLES else RegionTime(None, "no capture")
    )
    write_portable(merged([captured, as_gpu(here)]).contents, shipped)
    report = predicted(model, tmp_path, shipped)
    assert report.prediction is not None
    assert report.prediction.recorded_share == pytest.approx(1.0)
    assert report.prediction.recorded_gains > 0
