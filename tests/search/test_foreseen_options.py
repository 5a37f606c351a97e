# pyright: basic
"""Session options foreseen for a GPU that is not here, from sample operators whose times are made up: convolutions are
so much slower or faster with channels last, and all else takes as long, but for how fast the device happened to be."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from superopt.cost.cache import CostKey, Entry, RegionEntry, RegionKey, RegionTime
from superopt.cost.channels import works_on_images
from superopt.cost.coefficients import ON_CUDA, Coefficients
from superopt.cost.contents import Contents
from superopt.cost.machine import Machine
from superopt.cost.manner import in_a_model
from superopt.cost.portable import write_portable
from superopt.cost.predict import Predictor
from superopt.cost.regions import REGION_METHOD, region_key
from superopt.cost.result import Comparison, PairTiming, SubjectTiming
from superopt.cost.samples import samples
from superopt.cost.workloads import host
from superopt.ir.onnx import Model, load
from superopt.options import Options
from superopt.runtime.deployment import Deployment, parse_deployment
from superopt.runtime.target import CudaState
from superopt.search.ending import Ending
from superopt.search.foreseen_options import ENOUGH, WORTH
from superopt.search.recorded_trial import PREDICTED, UNKNOWN, USUAL, RecordedTrial
from tests.search.counted import predicted, saved
from tests.search.written import written_book

pytestmark = pytest.mark.ort

FAKE = Machine("cuda", "NVIDIA Fake", "9.1", "1.2.3")
BASE = parse_deployment("cuda threads=1 level=all use_tf32=1")
GRAPH = parse_deployment("cuda threads=1 level=all enable_cuda_graph=1 use_tf32=1")
NHWC = parse_deployment("cuda threads=1 level=all enable_cuda_graph=1 prefer_nhwc=1 use_tf32=1")
FUSED = parse_deployment("cuda threads=1 level=all enable_cuda_graph=1 fuse_conv_bias=1 prefer_nhwc=1 use_tf32=1")
OTHERS = 3
"""Regions of models that nobody has any more: they make one deployment the usual one."""


@dataclass(frozen=True)
class Recorded:
    """What is recorded under one deployment."""

    convolving: float = 1.0
    """What convolutions take, over what they take elsewhere."""
    slower: float = 1.0
    """What everything took, because the device was slower then."""
    samples: int | None = None
    """How many of them, where not all are there."""
    noise: tuple[float, ...] = (1.0,)
    """What was seen over what it takes, by turns."""


def contents(recorded: Mapping[Deployment, Recorded], usual: Deployment = GRAPH) -> Contents:
    regions: list[RegionEntry] = []
    for deployment, told in recorded.items():
        times = sample_times(deployment, told.convolving)
        seen = zip(times[: told.samples], itertools.cycle(told.noise), strict=False)
        entries = [(key, told.slower * noise * seconds) for (key, seconds), noise in seen]
        more = len(times) + OTHERS - len(entries) if deployment == usual else 0
        entries += [(f"another {i}", 1e-3) for i in range(more)]
        regions += [RegionEntry(_key(name, deployment), RegionTime(seconds), 0.0) for name, seconds in entries]
    return Contents.of(regions, [])


@cache
def sample_times(deployment: Deployment, convolving: float) -> list[tuple[str, float]]:
    """As a device would take them whose prices are the priors, but for its convolutions; those on images first."""
    prices = {c: s * convolving if c.kind == "convolution" else s for c, s in ON_CUDA.seconds.items()}
    predictor = Predictor({}, Coefficients(prices), in_a_model(deployment))
    ordered = sorted(samples("cuda"), key=works_on_images, reverse=True)
    return list({region_key(host(), graph, {}): predictor.region(graph) for graph in ordered}.items())


def _key(name: str, deployment: Deployment) -> RegionKey:
    return RegionKey(name, deployment.text, FAKE.device, FAKE.driver, FAKE.runtime, REGION_METHOD)


def network(*layers: str) -> onnx.ModelProto:
    """Convolutions and what else there is, one after the other."""
    shape, nodes, weights = [4, 256, 28, 28], [], {}
    for at, op in enumerate(layers):
        filters = []
        if op == "Conv":
            filters = [f"w{at}"]
            weights[f"w{at}"] = np.full((256, 256, 3, 3), 0.001, np.float32)
        nodes.append(helper.make_node(op, [f"v{at}", *filters], [f"v{at + 1}"]))
        if op == "Conv":
            nodes[-1].attribute.append(helper.make_attribute("pads", [1, 1, 1, 1]))
    described = [helper.make_tensor_value_info(name, 1, shape) for name in ("v0", f"v{len(layers)}")]
    constants = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", described[:1], described[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved(tmp_path / "model.onnx", network("Conv", "Relu", "Conv", "Relu", "Conv"))


def trial_of(model: Path | Model, folder: Path, told: Contents, **given) -> RecordedTrial:
    file = folder / "gpu.costs"
    write_portable(told, file)
    options = Options.of(**{"target": "cuda", "costs": file, **given})
    loaded = load(model) if isinstance(model, Path) else model
    return RecordedTrial(loaded, options, FAKE, lambda *_: None, Ending())


def notes(trial: RecordedTrial, model: Path) -> tuple[str, ...]:
    found = trial.deploy(model, 0.0)
    assert (found.best, found.base, found.speedup, found.searched) == (trial.timed, trial.timed, None, False)
    return found.notes


def test_cheaper_options_are_taken_and_called_predicted(model: Path, tmp_path: Path) -> None:
    trial = trial_of(model, tmp_path, contents({GRAPH: Recorded(), NHWC: Recorded(0.5), FUSED: Recorded(0.3)}))
    assert trial.ladder == (BASE, GRAPH, FUSED)
    (note,) = notes(trial, model)
    assert note.startswith(PREDICTED)
    assert note.endswith(UNKNOWN)
    told = dict(trial.foreseen.others)
    assert told[FUSED] > told[NHWC] > WORTH
    both = f"fuse_conv_bias=1 prefer_nhwc=1 {told[FUSED]:.2f}×, prefer_nhwc=1 {told[NHWC]:.2f}×"
    assert both in note


def test_by_how_much_is_what_the_prices_differ_by(tmp_path: Path) -> None:
    """Next to nothing but convolutions, which take half as long."""
    model = saved(tmp_path / "model.onnx", network(*["Conv"] * 12))
    trial = trial_of(model, tmp_path, contents({GRAPH: Recorded(), NHWC: Recorded(0.5)}))
    ((other, speedup),) = trial.foreseen.others
    assert other == NHWC
    assert 1.6 < speedup < 2.1


@pytest.mark.parametrize("convolving", [0.95, 1.0, 2.0])
def test_what_is_hardly_cheaper_is_not_taken_and_that_is_told(model: Path, tmp_path: Path, convolving: float) -> None:
    trial = trial_of(model, tmp_path, contents({GRAPH: Recorded(), NHWC: Recorded(convolving)}))
    assert trial.ladder == (BASE, GRAPH)
    usual, priced = notes(trial, model)
    assert usual == USUAL
    ((_, speedup),) = trial.foreseen.others
    assert speedup < WORTH
    assert priced.startswith(f"{PREDICTED}: none of what else was recorded should be 10% faster")
    assert priced.endswith(f": prefer_nhwc=1 {speedup:.2f}×")


def test_a_device_that_was_slower_at_the_time_says_nothing_of_options(model: Path, tmp_path: Path) -> None:
    even = trial_of(model, tmp_path, contents({GRAPH: Recorded(), NHWC: Recorded(0.6)}))
    later = trial_of(model, tmp_path, contents({GRAPH: Recorded(), NHWC: Recorded(0.6, slower=1.5)}))
    assert even.timed == later.timed == NHWC
    assert dict(later.foreseen.others)[NHWC] == pytest.approx(dict(even.foreseen.others)[NHWC], rel=0.05)
    sooner = trial_of(model, tmp_path, contents({GRAPH: Recorded(), NHWC: Recorded(slower=0.6)}))
    assert sooner.timed == GRAPH


@pytest.mark.parametrize("short", [GRAPH, NHWC])
def test_of_what_was_hardly_recorded_nothing_is_foreseen(model: Path, tmp_path: Path, short: Deployment) -> None:
    def trial(count: int) -> RecordedTrial:
        told = {GRAPH: Recorded(), NHWC: Recorded(0.3)}
        return trial_of(model, tmp_path, contents({**told, short: replace(told[short], samples=count)}))

    few = trial(ENOUGH - 1)
    assert few.foreseen.others == ()
    assert (few.timed, notes(few, model)) == (GRAPH, (USUAL,))
    assert trial(ENOUGH).timed == NHWC


def test_longer_convolutions_are_not_taken_for_a_slower_device(model: Path, tmp_path: Path) -> None:
    """About half of those samples are of small images, which are moved about for channels last."""
    noisy = Recorded(samples=ENOUGH, noise=(0.8, 1.0, 1.25))
    trial = trial_of(model, tmp_path, contents({GRAPH: Recorded(), NHWC: noisy}))
    assert trial.timed == GRAPH
    ((_, speedup),) = trial.foreseen.others
    assert speedup < 1.0


def test_samples_on_images_alone_would_not_be_enough() -> None:
    assert sum(map(works_on_images, samples("cuda"))) < ENOUGH


def test_channels_first_are_foreseen_where_the_others_are_usual(model: Path, tmp_path: Path) -> None:
    told = contents({GRAPH: Recorded(), NHWC: Recorded(3.0)}, usual=NHWC)
    trial = trial_of(model, tmp_path, told)
    assert trial.ladder == (BASE, GRAPH)
    assert "without prefer_nhwc" in notes(trial, model)[0]
    assert trial_of(model, tmp_path, contents({GRAPH: Recorded(), NHWC: Recorded()}, usual=NHWC)).timed == NHWC


def test_the_same_is_foreseen_every_time_and_of_equals_the_first_by_name(model: Path, tmp_path: Path) -> None:
    def found(order: Iterable[Deployment]) -> tuple[Deployment, str]:
        told = {GRAPH: Recorded(), NHWC: Recorded(0.5), FUSED: Recorded(0.5)}
        trial = trial_of(model, tmp_path, contents({deployment: told[deployment] for deployment in order}))
        return trial.timed, notes(trial, model)[0]

    first = found((GRAPH, NHWC, FUSED))
    assert first[0] == FUSED
    assert first == found((GRAPH, NHWC, FUSED)) == found((FUSED, NHWC, GRAPH))


def test_fixed_options_stay_what_they_are(model: Path, tmp_path: Path) -> None:
    last = replace(BASE, provider_options=(("prefer_nhwc", "1"),))
    told = contents({BASE: Recorded(), last: Recorded(0.3)}, usual=BASE)
    assert trial_of(model, tmp_path, told).ladder == (BASE, last)
    trial = trial_of(model, tmp_path, told, options="fixed")
    assert trial.ladder == (BASE,)
    assert trial.foreseen.others == ()
    assert notes(trial, model) == ()


def test_without_convolutions_there_is_nothing_to_foresee(tmp_path: Path) -> None:
    model = saved(tmp_path / "model.onnx", network("Relu", "Sigmoid", "Tanh"))
    trial = trial_of(model, tmp_path, contents({GRAPH: Recorded(), NHWC: Recorded(0.3)}))
    assert trial.ladder == (BASE, GRAPH)
    assert notes(trial, model) == (USUAL,)


def test_where_nothing_is_left_to_run_nothing_is_foreseen(tmp_path: Path) -> None:
    """A convolution of weights alone is done before the model runs."""
    rows = [numpy_helper.from_array(np.ones((1, 1, 4, 4), np.float32), name) for name in ("image", "filter")]
    described = [helper.make_tensor_value_info("x", 1, [2]), helper.make_tensor_value_info("y", 1, [1, 1, 1, 1])]
    graph = helper.make_graph([helper.make_node("Conv", ["image", "filter"], ["y"])], "g", described[:1], described[1:])
    graph.initializer.extend(rows)
    opsets = [helper.make_opsetid("", 17)]
    model = saved(tmp_path / "model.onnx", helper.make_model(graph, opset_imports=opsets, ir_version=8))
    trial = trial_of(model, tmp_path, contents({GRAPH: Recorded(), NHWC: Recorded(0.3)}))
    assert trial.ladder == (BASE, GRAPH)
    assert trial.foreseen.others == ()


@pytest.mark.parametrize("name", ["cudnn_conv_algo_search", "prefer_nhwc", "fuse_conv_bias"])
def test_values_that_superopt_never_asks_for_are_not_taken_from_a_file(model: Path, tmp_path: Path, name: str) -> None:
    strange = replace(GRAPH, provider_options=(*GRAPH.provider_options, (name, "7")))
    trial = trial_of(model, tmp_path, contents({GRAPH: Recorded(), strange: Recorded(0.3)}))
    assert trial.timed == GRAPH
    assert trial.foreseen.others == ()


@pytest.mark.parametrize("other", ["threads=4", "level=basic", "tunable_op_enable=1"])
def test_nothing_else_is_chosen_by_price(model: Path, tmp_path: Path, other: str) -> None:
    name, _, value = other.partition("=")
    changes = {"threads": {"threads": 4}, "level": {"level": "basic"}}
    further = {"provider_options": (*NHWC.provider_options, (name, value))}
    strange = replace(NHWC, **changes.get(name, further))
    trial = trial_of(model, tmp_path, contents({GRAPH: Recorded(), strange: Recorded(0.3)}))
    assert trial.timed == GRAPH
    assert notes(trial, model) == (USUAL,)


def test_threads_that_were_asked_for_are_kept(model: Path, tmp_path: Path) -> None:
    four = {replace(d, threads=4): told for d, told in ((GRAPH, Recorded()), (NHWC, Recorded(0.3)))}
    told = contents({GRAPH: Recorded(), NHWC: Recorded(2.0), **four})
    assert trial_of(model, tmp_path, told, threads=1).timed == GRAPH
    assert trial_of(model, tmp_path, told, threads=4).timed == replace(NHWC, threads=4)


def test_what_was_recorded_of_the_very_model_decides(model: Path, tmp_path: Path) -> None:
    told = contents({GRAPH: Recorded(), NHWC: Recorded(0.3)})
    trial = trial_of(model, tmp_path, told)
    assert trial.timed == NHWC

    def compared(first: Deployment, speedups: Mapping[Deployment, float]) -> Entry:
        key: CostKey = trial._key([trial.model], [first, *speedups], trial.feeds)
        pairs = [
            PairTiming(
                name=d.text, verdict="not faster", reason="", speedup=speedup, interval=None, sittings=2, pairs=9
            )
            for d, speedup in speedups.items()
        ]
        subjects = tuple(SubjectTiming(name=d.text, latency=None) for d in (first, *speedups))
        comparison = Comparison(subjects=subjects, pairs=tuple(pairs), seconds=1.0, one_at_a_time=False)
        return Entry(key, comparison, 0.0)

    launches = compared(BASE, {GRAPH: 3.0})
    layouts = compared(GRAPH, {NHWC: 0.8, FUSED: 0.7})
    of_it = Contents(told.regions, {e.key: e for e in (launches, layouts)})
    found = trial_of(model, tmp_path, of_it)
    assert found.ladder == (BASE, GRAPH)
    assert notes(found, model) == (USUAL,)
    assert trial_of(model, tmp_path, Contents(told.regions, {launches.key: launches})).timed == NHWC


def test_a_run_returns_what_is_foreseen(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("superopt.search.optimize.open_rulebook", lambda *_: written_book())
    monkeypatch.setattr("superopt.search.aim.cuda_state", lambda: CudaState(False, "no CUDA device answered"))
    file = tmp_path / "gpu.costs"
    write_portable(contents({GRAPH: Recorded(), NHWC: Recorded(0.3)}), file)
    report = predicted(model, tmp_path, file)
    assert report.deployment is not None
    assert report.deployment.options["cuda.prefer_nhwc"] == "1"
    assert not report.deployment.searched
    assert report.prediction is not None
    assert report.prediction.deployment == NHWC.text
    assert any(note.startswith(PREDICTED) and "prefer_nhwc=1" in note for note in report.deployment.notes)
