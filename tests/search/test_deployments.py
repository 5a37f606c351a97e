# pyright: basic
"""Session options are searched by the clock: what helps is kept, what fails or differs is told, the base is the answer
to any doubt."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from superopt.cost.contest import Contest, Method
from superopt.cost.result import Comparison, PairTiming, Verdict
from superopt.cost.sitting import Bench
from superopt.errors import CannotRun
from superopt.ir.onnx import load, parse
from superopt.ir.types import DType
from superopt.report import Interval
from superopt.runtime.deployment import Deployment
from superopt.runtime.recipe import python_code
from superopt.runtime.target import cuda_state
from superopt.search.choices import Contents, contents_of, options_for
from superopt.search.deployments import WORTH, Deployed, Search, Stand, metadata_of, search_deployment
from superopt.search.sameness import Sameness, reversed_values
from tests.cost.world import RUN, Model, Weather, World

CPU = Deployment("cpu", 4)
CUDA = Deployment("cuda", 4)
NOTHING = Contents()
CONVOLUTIONS = Contents(frozenset(("Conv", "Relu")))


def texts(base: Deployment, contents: Contents = NOTHING) -> list[str]:
    return [choice.text for choice in options_for(base, contents)]


class FakeStand:
    """Deployments that take as long as `cost` says, on the simulated machine's clock."""

    def __init__(
        self,
        cost: Callable[[Deployment], float],
        differs: Callable[[Deployment], str] = lambda d: "",
        at: Sequence[Callable[[Deployment], float]] = (),
        world: World | None = None,
    ) -> None:
        self.world = world or World(7, Weather())
        self.costs, self.differs = (cost, *at), differs
        self.raced: list[list[str]] = []

    def race(self, deployments: Sequence[Deployment], seconds: float, feeds: int, further: float = 0.0) -> Comparison:
        self.raced.append([d.text for d in deployments])
        method = Method(seconds=seconds, further=further, negligible=WORTH - 1)
        costs = self.costs[feeds]
        bench = Bench(
            lambda i: Model(self.world, RUN * costs(deployments[i])), self.world.clock, method.sample_seconds, 0.5
        )
        return Contest([d.text for d in deployments], bench, method, True).run()

    def difference(self, deployment: Deployment) -> str:
        return self.differs(deployment)


def searched(
    stand: Stand, base: Deployment, contents: Contents = CONVOLUTIONS, seconds: float = 200.0, further: int = 0
) -> Deployed:
    return Search(stand, base, options_for(base, contents), seconds, further).run()


def fails(deployment: Deployment) -> float:
    raise CannotRun(f"no kernel for {deployment.text}")


@pytest.mark.unit
def test_a_cpu_is_asked_for_threads_and_levels_never_for_more_threads():
    assert texts(CPU) == [
        "threads=1", "threads=2", "session.dynamic_block_base=4", "level=extended", "level=basic",
    ]  # fmt: skip
    assert texts(Deployment("cpu", 1)) == ["level=extended", "level=basic"]
    assert texts(Deployment("cpu", 2, "extended")) == ["threads=1", "level=basic"]
    assert texts(Deployment("cpu", 1, "disable")) == []


@pytest.mark.unit
def test_a_gpu_is_asked_for_what_the_model_can_feel():
    plain = ["enable_cuda_graph=1", "level=extended", "level=basic"]
    assert texts(CUDA) == plain
    with_convolutions = texts(CUDA, CONVOLUTIONS)
    assert "prefer_nhwc=1 fuse_conv_bias=1" in with_convolutions
    assert not any("sdpa" in text or "nc1d" in text for text in with_convolutions)
    assert "sdpa_kernel=1" in texts(CUDA, Contents(frozenset(("MultiHeadAttention",))))
    tuned = Contents(frozenset(("MatMul",)), frozenset((DType.FLOAT16,)))
    assert set(texts(CUDA, tuned)) - set(plain) == {"ep.cuda.enable_gemm_auto_tune=1"}
    assert len(texts(CUDA, Contents(opaque=True))) > len(with_convolutions)


@pytest.mark.unit
def test_what_the_caller_has_set_is_not_asked_again():
    given = Deployment("cuda", 4, provider_options=(("prefer_nhwc", "0"), ("device_id", "1")))
    asked = texts(given, CONVOLUTIONS)
    assert "fuse_conv_bias=1" in asked
    assert not any("prefer_nhwc" in text for text in asked)


@pytest.mark.unit
def test_nothing_that_changes_numbers_is_ever_asked():
    everything = Contents(opaque=True, convolves_sequences=True)
    asked = " ".join([*texts(CPU, everything), *texts(CUDA, everything)])
    for word in ("tf32", "bfloat16", "gelu", "denormal", "spinning", "qdq", "int8", "cast_chain"):
        assert word not in asked


@pytest.mark.unit
def test_the_page_names_every_option_that_is_tried_and_shows_the_code_as_it_is():
    page = (Path(__file__).resolve().parents[2] / "docs" / "deployment.md").read_text()
    everything = Contents(opaque=True, convolves_sequences=True)
    for choice in (*options_for(CPU, everything), *options_for(CUDA, everything)):
        assert f"| {choice.dimension} |" in page
        for name, _ in (*choice.provider_options, *choice.config):
            assert f"`{name}`" in page
    assert f"```python\n{python_code(Deployment('cpu', 1, 'extended'))}```" in page


@pytest.mark.unit
def test_a_model_says_what_it_holds():
    made = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (float16[1, 4, 8] x, float16[2, 4, 3] w) => (float16[1, 2, 6] y) { y = Conv(x, w) }"""
    )
    found = contents_of(parse(made.SerializeToString()))
    assert found == Contents(frozenset(("Conv",)), frozenset((DType.FLOAT16,)), convolves_sequences=True)
    made.graph.node[0].domain = "my.own"
    made.opset_import.add(domain="my.own", version=1)
    assert contents_of(parse(made.SerializeToString())).opaque


@pytest.mark.unit
def test_winners_of_several_dimensions_are_combined():
    def cost(d: Deployment) -> float:
        return (0.5 if d.threads == 1 else 1.0) * (0.8 if d.level == "extended" else 1.0)

    found = searched(FakeStand(cost), CPU)
    assert (found.best.threads, found.best.level) == (1, "extended")
    assert found.best.config == ()
    assert found.speedup == pytest.approx(2.5, rel=0.1)
    assert found.interval is not None
    assert found.interval.low > 1
    assert [row.change for row in found.tried if row.kept] == ["threads=1", "level=extended"]
    assert {row.change: row.verdict for row in found.tried}["level=basic"] == "not faster"


@pytest.mark.unit
def test_a_choice_is_judged_under_what_was_kept_before_it():
    """Launches hide what the layout gains: only with a CUDA graph does it show."""

    def cost(d: Deployment) -> float:
        options = dict(d.provider_options)
        kernels = 0.3 if "prefer_nhwc" in options else 0.5
        return kernels if "enable_cuda_graph" in options else 1.0

    found = searched(FakeStand(cost), CUDA)
    assert dict(found.best.provider_options)["prefer_nhwc"] == "1"
    assert found.speedup == pytest.approx(1 / 0.3, rel=0.1)
    assert any("captures one for each" in note for note in found.notes)
    assert any("TF32" in note for note in found.notes)


@pytest.mark.unit
def test_an_option_that_fails_is_skipped_with_its_reason():
    def cost(d: Deployment) -> float:
        options = dict(d.provider_options)
        if "fuse_conv_bias" in options and "prefer_nhwc" not in options:
            return fails(d)
        return 0.5 if "fuse_conv_bias" in options else 1.0

    found = searched(FakeStand(cost), CUDA)
    assert dict(found.best.provider_options) == {"prefer_nhwc": "1", "fuse_conv_bias": "1"}
    (row,) = [row for row in found.tried if row.change == "fuse_conv_bias=1"]
    assert (row.verdict, row.speedup) == ("failed", None)
    assert "no kernel" in row.note


@pytest.mark.unit
def test_an_option_that_answers_otherwise_is_skipped_and_the_next_best_taken():
    def cost(d: Deployment) -> float:
        return {"all": 1.0, "extended": 0.7, "basic": 0.5}[d.level]

    stand = FakeStand(cost, differs=lambda d: "output y: off by 3" if d.level == "basic" else "")
    found = searched(stand, Deployment("cpu", 1))
    assert found.best.level == "extended"
    (row,) = [row for row in found.tried if row.change == "level=basic"]
    assert (row.verdict, row.kept) == ("different", False)
    assert "off by 3" in row.note


@pytest.mark.unit
@pytest.mark.parametrize("seed", range(3))
def test_where_nothing_helps_the_base_comes_back(seed: int):
    found = searched(FakeStand(lambda d: 1.0, world=World(seed, Weather(luck=0.01))), CPU)
    assert found.best == CPU
    assert found.speedup is None
    assert len(found.tried) == len(texts(CPU))


@pytest.mark.unit
def test_winners_that_do_not_add_up_are_not_returned():
    def cost(d: Deployment) -> float:
        if len(stand.raced[-1]) == 2 and stand.raced[-1][0] == CPU.text and d.level == "extended":
            return 1.2  # in the last race alone
        return 0.8 if d.level == "extended" else 1.0

    stand = FakeStand(cost)
    found = searched(stand, CPU)
    assert stand.raced[-1][1].endswith("level=extended")
    assert found.best == CPU
    assert "together not faster" in found.notes[0]


class Told:
    """A stand that answers what it was told: verdict and speed-up of the options in which two deployments differ."""

    def __init__(self, verdicts: dict[str, tuple[Verdict, float]]) -> None:
        self.verdicts = verdicts

    def race(self, deployments: Sequence[Deployment], seconds: float, feeds: int, further: float = 0.0) -> Comparison:
        known = set(deployments[0].text.split())
        pairs = tuple(self.pair(d.text, set(d.text.split()) - known) for d in deployments[1:])
        return Comparison(subjects=(), pairs=pairs, seconds=1.0, one_at_a_time=False)

    def pair(self, name: str, new: set[str]) -> PairTiming:
        verdict, speedup = next((v for word, v in self.verdicts.items() if word in new), ("not faster", 1.0))
        interval = Interval(low=speedup - 0.01, high=speedup + 0.01)
        return PairTiming(
            name=name, verdict=verdict, reason="", speedup=speedup, interval=interval, sittings=2, pairs=9
        )  # pyright: ignore[reportArgumentType]

    def difference(self, deployment: Deployment) -> str:
        return ""


@pytest.mark.unit
def test_where_all_together_is_in_doubt_what_was_sure_alone_comes_back():
    stand = Told(
        {"prefer_nhwc=1": ("not faster", 1.09), "enable_cuda_graph=1": ("faster", 1.6)}
    )  # the likely one with the sure one is in doubt again; the sure one alone is not
    found = searched(stand, CUDA)
    assert found.best.text.endswith("enable_cuda_graph=1 use_tf32=1")
    assert "prefer_nhwc" not in found.best.text
    assert found.speedup == 1.6
    assert any("together not faster" in note for note in found.notes)


@pytest.mark.unit
def test_a_deployment_that_is_slower_at_another_size_is_not_returned():
    def small(d: Deployment) -> float:
        return 0.5 if d.threads == 1 else 1.0

    def large(d: Deployment) -> float:
        return 2.0 if d.threads == 1 else 1.0

    assert searched(FakeStand(small, at=(small,)), CPU, further=1).best.threads == 1
    found = searched(FakeStand(small, at=(large,)), CPU, further=1)
    assert found.best == CPU
    assert "slower at others" in found.notes[0]


@pytest.mark.unit
def test_when_the_time_is_over_the_rest_is_not_tried():
    stand = FakeStand(lambda d: 50.0)
    found = searched(stand, CPU, seconds=5.0)
    assert found.best == CPU
    assert len(stand.raced) == 1
    assert [row.verdict for row in found.tried[2:]] == ["not tried"] * 3


@pytest.mark.unit
def test_a_model_that_does_not_run_is_no_error():
    found = searched(FakeStand(fails), CPU)
    assert found.best == CPU
    assert "could not be timed: no kernel" in found.notes[0]


@pytest.mark.unit
def test_reversed_values_are_the_same_values():
    feeds: dict[str, Any] = {"x": np.arange(6.0).reshape(2, 3), "n": np.array([3, 4]), "s": ["a"]}
    found: dict[str, Any] = reversed_values(feeds, "f")
    assert found["x"].tolist() == [[5, 4, 3], [2, 1, 0]]
    assert found["n"] is feeds["n"]
    assert found["s"] is feeds["s"]
    found = reversed_values(feeds, "fi")
    assert found["n"].tolist() == [4, 3]


def products(path: Path, steps: int = 6, width: int = 96) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    nodes = [helper.make_node("MatMul", [f"t{i}", f"w{i}"], [f"t{i + 1}"]) for i in range(steps)]
    weights = [
        numpy_helper.from_array((rng.standard_normal((width, width)) / width**0.5).astype(np.float32), f"w{i}")
        for i in range(steps)
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("t0", TensorProto.FLOAT, ["n", width])],
        [helper.make_tensor_value_info(f"t{steps}", TensorProto.FLOAT, ["n", width])],
        weights,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, path)
    return {"t0": rng.standard_normal((4, width)).astype(np.float32)}


@pytest.mark.ort
def test_a_real_model_comes_back_with_options_that_open_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    feeds = products(tmp_path / "m.onnx")
    base = Deployment("cpu", 2)
    told: list[tuple[str, str]] = []
    found = search_deployment(
        tmp_path / "m.onnx", feeds, base, 1.5, further=[{"t0": feeds["t0"][:1]}],
        tell=lambda stage, detail: told.append((stage, detail)),
    )  # fmt: skip
    assert [row.change for row in found.tried] == ["threads=1", "level=extended", "level=basic"]
    assert all(row.verdict in ("faster", "not faster", "slower", "not tried") for row in found.tried)
    assert (found.speedup is None) == (found.best == base)
    assert told[0] == ("options", "threads, 1 of 2")
    report = found.report("m.onnx")
    names: dict[str, Any] = {}
    monkeypatch.chdir(tmp_path)
    exec(compile(report.code, "pasted", "exec"), names)
    assert names["session"].run(None, feeds)[0].shape == (4, 96)
    assert report.options["intra_op_num_threads"] == str(names["options"].intra_op_num_threads)
    assert json.loads(metadata_of(found.best)["superopt.deployment"]) == report.options
    assert os.listdir(tmp_path) == ["m.onnx"]


@pytest.mark.ort
def test_answers_are_compared_within_tolerance(tmp_path: Path):
    feeds = products(tmp_path / "m.onnx")
    model = load(tmp_path / "m.onnx")
    same = Sameness(tmp_path / "m.onnx", model, feeds, Deployment("cpu", 2))
    assert same.difference(Deployment("cpu", 1, "basic")) == ""


@pytest.mark.ort
def test_another_answer_is_named(tmp_path: Path):
    feeds = products(tmp_path / "m.onnx")
    same = Sameness(tmp_path / "m.onnx", load(tmp_path / "m.onnx"), feeds, Deployment("cpu", 1))
    assert same.difference(Deployment("cpu", 1)) == ""
    made = onnx.load(tmp_path / "m.onnx")
    weight = numpy_helper.to_array(made.graph.initializer[0]) * np.float32(1.01)
    made.graph.initializer[0].CopyFrom(numpy_helper.from_array(weight, "w0"))
    onnx.save(made, tmp_path / "m.onnx")
    assert same.difference(Deployment("cpu", 1)).startswith("output t6: off by ")


@pytest.mark.gpu
def test_a_gpu_is_searched_and_no_option_is_an_error(tmp_path: Path):
    if not cuda_state().works:
        pytest.skip(cuda_state().reason)
    feeds = products(tmp_path / "m.onnx")
    base = Deployment("cuda", 2)
    same = Sameness(tmp_path / "m.onnx", load(tmp_path / "m.onnx"), feeds, base)
    for choice in options_for(base, Contents(opaque=True, convolves_sequences=True)):
        assert same.difference(choice.applied(base)) == "", choice.text
    found = search_deployment(tmp_path / "m.onnx", feeds, base, 10.0)
    assert [row.change for row in found.tried] == ["enable_cuda_graph=1", "level=extended", "level=basic"]
    assert {row.verdict for row in found.tried} <= {"faster", "not faster", "slower"}


@pytest.mark.gpu
def test_a_cuda_graph_that_would_freeze_an_input_is_skipped(tmp_path: Path):
    if not cuda_state().works:
        pytest.skip(cuda_state().reason)
    made = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[2, 3] x, int64[2] s) => (float[m, n] y) { a = Exp(x)  y = Reshape(a, s) }"""
    )
    onnx.save(made, tmp_path / "m.onnx")
    feeds = {"x": np.ones((2, 3), np.float32), "s": np.array([3, 2])}
    base = Deployment("cuda", 2)
    same = Sameness(tmp_path / "m.onnx", load(tmp_path / "m.onnx"), feeds, base)
    with pytest.raises(CannotRun, match="input s is read on the CPU"):
        same.difference(Deployment("cuda", 2, provider_options=(("enable_cuda_graph", "1"),)))


@pytest.mark.unit
def test_little_time_does_not_lose_what_is_obvious():
    """Sessions that take seconds to open leave one look at each choice; what is three times faster is confirmed."""

    def cost(d: Deployment) -> float:
        return 0.3 if d.captures_cuda_graph else 1.0

    found = searched(FakeStand(cost, world=World(7, Weather(opening=1.5))), CUDA, NOTHING, seconds=8.0)
    assert found.best.captures_cuda_graph
    assert found.speedup is not None
    assert found.speedup > 2
    same = searched(FakeStand(lambda d: 1.0, world=World(7, Weather(opening=1.5))), CUDA, NOTHING, seconds=8.0)
    assert same.best == CUDA
