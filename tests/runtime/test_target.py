import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

from superopt.errors import BadOption, CannotRun
from superopt.runtime import target
from superopt.runtime.deployment import Deployment
from superopt.runtime.session import Session
from superopt.runtime.target import CudaState, cuda_state, resolve_target
from tests.runtime.models import add_one, model, tensor


@pytest.fixture
def without_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "cuda_state", lambda: CudaState(False, "libx.so is missing"))


@pytest.fixture
def with_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "cuda_state", lambda: CudaState(True, ""))


@pytest.fixture
def a_gpu() -> None:
    if not cuda_state().works:
        pytest.skip(cuda_state().reason)


@pytest.mark.unit
@pytest.mark.usefixtures("without_cuda")
def test_auto_is_the_cpu_where_cuda_does_not_work():
    assert resolve_target("auto") == "cpu"


@pytest.mark.unit
@pytest.mark.usefixtures("without_cuda")
def test_cuda_asked_for_in_vain_is_an_error_with_its_reason():
    with pytest.raises(BadOption, match=r"^target cuda: not usable here: libx\.so is missing\Z"):
        resolve_target("cuda")


@pytest.mark.unit
@pytest.mark.usefixtures("with_cuda")
def test_auto_is_cuda_where_it_works():
    assert resolve_target("auto") == "cuda"


@pytest.mark.unit
@pytest.mark.usefixtures("with_cuda")
def test_cpu_stays_cpu():
    assert resolve_target("cpu") == "cpu"


@pytest.mark.unit
def test_other_words_are_refused():
    with pytest.raises(BadOption, match="found 'gpu'"):
        resolve_target("gpu")  # pyright: ignore[reportArgumentType]


@pytest.mark.ort
def test_probing_is_silent_and_says_why(capfd: pytest.CaptureFixture[str]):
    cuda_state.cache_clear()
    state = cuda_state()
    assert capfd.readouterr() == ("", "")
    assert state.works == (state.reason == "")


@pytest.mark.ort
def test_a_cuda_session_never_falls_back(capfd: pytest.CaptureFixture[str]):
    if cuda_state().works:
        pytest.skip("CUDA works here")
    with pytest.raises(CannotRun, match="CUDA"):
        Session(add_one(), Deployment("cuda"))
    assert capfd.readouterr() == ("", "")


@pytest.mark.gpu
@pytest.mark.usefixtures("a_gpu")
def test_a_cuda_session_runs_on_cuda():
    x = np.ones((2, 3), np.float32)
    for options in ((), (("enable_cuda_graph", "1"),)):
        with Session(add_one(), Deployment("cuda", provider_options=options)) as session:
            assert session.cpu_nodes == 0
            np.testing.assert_array_equal(session.run({"x": x})["y"], x + 1)
            one, two = session.bind({"x": x}), session.bind({"x": 2 * x})
            for binding in (one, two, one, two):
                binding.run()


@pytest.mark.gpu
@pytest.mark.usefixtures("a_gpu")
def test_a_captured_graph_reads_its_inputs_anew():
    deployment = Deployment("cuda", provider_options=(("enable_cuda_graph", "1"),))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with Session(add_one(), deployment) as session:
        np.testing.assert_array_equal(session.replay({"x": 0 * x}, {"x": x})["y"], x + 1)


@pytest.mark.gpu
@pytest.mark.usefixtures("a_gpu")
def test_a_captured_graph_of_a_type_that_numpy_does_not_know_reads_its_inputs_anew():
    deployment = Deployment("cuda", provider_options=(("enable_cuda_graph", "1"),))
    x, y = (tensor(name, [2, 3], TensorProto.BFLOAT16) for name in "xy")
    made = model([helper.make_node("Add", ["x", "x"], ["y"])], [x], [y])
    whole = np.arange(6).reshape(2, 3)
    values, twice = whole.astype(ml_dtypes.bfloat16), (2 * whole).astype(ml_dtypes.bfloat16)
    with Session(made.SerializeToString(), deployment) as session:
        found = session.replay({"x": np.zeros_like(values)}, {"x": values})["y"]
        np.testing.assert_array_equal(found, twice)
