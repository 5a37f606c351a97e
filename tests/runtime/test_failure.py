from pathlib import Path

import pytest

from superopt.errors import CannotRun
from superopt.runtime.failure import is_of_memory, reason, translated

pytestmark = pytest.mark.unit

RESHAPE = (
    "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running Reshape node. Name:'' Status "
    "Message: /onnxruntime_src/onnxruntime/core/providers/cpu/tensor/reshape_helper.h:91 onnxruntime::ReshapeHelper"
    "::ReshapeHelper(const onnxruntime::TensorShape&, onnxruntime::TensorShapeVector&, bool) input_shape_size == "
    "requested_shape_size was false. The input tensor cannot be reshaped to the requested shape.\n"
)


def test_status_and_source_place_are_dropped():
    assert reason(RuntimeError(RESHAPE)) == (
        "Non-zero status code returned while running Reshape node. Name:'' Status Message: input_shape_size == "
        "requested_shape_size was false. The input tensor cannot be reshaped to the requested shape."
    )


@pytest.mark.parametrize(
    ("text", "kept"), [("\n \n First. \nSecond.", "First."), ("Bad at\n index 2\nMore.", "Bad at index 2")]
)
def test_the_first_sentence_is_kept(text: str, kept: str):
    assert reason(RuntimeError(text)) == kept


def test_our_temporary_folders_are_hidden():
    path = Path("/tmp/superopt-x1/model.onnx")
    assert reason(RuntimeError(f"Load model from {path} failed"), path) == "Load model from model.onnx failed"


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("std::bad_alloc")])
def test_memory_is_named(error: Exception):
    assert reason(error) == "out of memory"


def test_an_error_without_words_has_its_kind():
    assert reason(ValueError("")) == "ValueError"


def test_errors_become_cannot_run_and_keep_their_cause():
    with pytest.raises(CannotRun, match=r"^opening: no\Z") as caught, translated("opening"):
        raise ValueError("no")
    assert isinstance(caught.value.__cause__, ValueError)


def test_interruption_passes():
    with pytest.raises(KeyboardInterrupt), translated("opening"):
        raise KeyboardInterrupt


def test_what_cuda_says_is_kept_without_what_surrounds_it():
    said = (
        "[with ERRTYPE = cudaError; bool THRW = true] CUDA failure 100: no CUDA-capable device is detected ; GPU=-1 ; "
        "hostname=vm ; file=/onnxruntime_src/cuda_execution_provider.cc ; line=355 ; expr=cudaSetDevice();"
    )
    assert reason(RuntimeError(said)) == "CUDA failure 100: no CUDA-capable device is detected"


@pytest.mark.parametrize(
    ("said", "of_memory"),
    [
        ("Failed to allocate memory for requested buffer of size 9", True),
        ("CUDA failure 2: out of memory ; GPU=0 ; hostname=vm", True),
        ("CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0 ; hostname=vm", True),
        ("no kernel for Foo", False),
    ],
)
def test_too_little_memory_is_told_from_other_failures(said: str, of_memory: bool):
    assert is_of_memory(reason(RuntimeError(said))) == of_memory
