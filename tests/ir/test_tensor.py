# pyright: basic
"""Packing agrees with onnx for every element type; content is named the same wherever it lies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from superopt.ir.onnx.tensors import CODES, embedded, tensor_of
from superopt.ir.tensor import ArrayTensor, FileTensor, dtype_of, is_numpy_shape, numpy_dtype, pack, unpack
from superopt.ir.types import DType

pytestmark = pytest.mark.unit

FIXED = [d for d in DType if d is not DType.STRING]


def sample(dtype: DType, count: int) -> np.ndarray:
    """Every bit pattern of a small type; numbers of both signs for the others."""
    if dtype.bits < 8:
        low = -(1 << (dtype.bits - 1)) if dtype in (DType.INT4, DType.INT2) else 0
        if dtype is DType.FLOAT4E2M1:
            return np.arange(count, dtype=np.uint8).__mod__(16).astype(np.uint8).view(numpy_dtype(dtype))
        return (np.arange(count) % (1 << dtype.bits) + low).astype(np.int8).astype(numpy_dtype(dtype))
    signed = not dtype.value.startswith(("uint", "bool", "float8e8"))
    return (np.arange(count) - (count // 2 if signed else -1)).astype(np.float32).astype(numpy_dtype(dtype))


@pytest.mark.parametrize("count", [0, 1, 3, 4, 17])
@pytest.mark.parametrize("dtype", FIXED)
def test_pack_is_undone_by_unpack(dtype: DType, count: int) -> None:
    array = sample(dtype, count)
    raw = pack(array, dtype)
    assert len(raw) == (count * dtype.bits + 7) // 8
    back = unpack(raw, dtype, (count,))
    assert back.dtype == array.dtype
    assert pack(back, dtype) == raw
    assert back.astype(np.complex128).tolist() == array.astype(np.complex128).tolist()


@pytest.mark.parametrize("dtype", FIXED)
def test_onnx_reads_what_we_write_and_we_read_what_onnx_writes(dtype: DType) -> None:
    array = sample(dtype, 7).reshape(7, 1)
    ours = embedded(ArrayTensor(array), "t")
    assert numpy_helper.to_array(ours).tobytes() == array.tobytes()
    theirs = numpy_helper.from_array(array, "t")
    assert theirs.data_type == CODES[dtype]
    assert tensor_of(theirs, None, "t").numpy().tobytes() == array.tobytes()
    assert tensor_of(theirs, None, "t").digest == ArrayTensor(array).digest


@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.INT4, DType.UINT8, DType.BOOL])
def test_the_digest_does_not_depend_on_the_field_that_holds_the_content(dtype: DType) -> None:
    values = [0, 1, 1, 0, 1]
    typed = helper.make_tensor("t", CODES[dtype], [5], values)
    raw = numpy_helper.from_array(np.array(values).astype(numpy_dtype(dtype)), "t")
    assert raw.HasField("raw_data")
    assert not typed.HasField("raw_data")
    assert tensor_of(typed, None, "t").digest == tensor_of(raw, None, "t").digest


def test_the_digest_tells_types_shapes_and_content_apart() -> None:
    arrays = [np.zeros(4, np.float32), np.zeros((2, 2), np.float32), np.zeros(4, np.int32), np.ones(4, np.float32)]
    assert len({ArrayTensor(a).digest for a in arrays}) == 4


def test_strings_keep_their_boundaries() -> None:
    one, two = (ArrayTensor(np.array(words, object)) for words in (["ab", "c"], ["a", "bc"]))
    assert one.digest != two.digest
    assert embedded(one, "t").string_data == [b"ab", b"c"]
    assert tensor_of(embedded(one, "t"), None, "t").digest == one.digest


def test_a_stretch_of_a_file_is_the_same_tensor(tmp_path: Path) -> None:
    array = np.arange(3000, dtype=np.float32).reshape(30, 100)
    (tmp_path / "w").write_bytes(b"before" + array.tobytes() + b"after")
    tensor = FileTensor(tmp_path / "w", 6, array.nbytes, DType.FLOAT32, array.shape)
    assert (tensor.numpy() == array).all()
    assert tensor.digest == ArrayTensor(array).digest
    assert not tensor.numpy().flags.writeable


def test_an_array_in_a_graph_cannot_be_changed() -> None:
    tensor = ArrayTensor(np.zeros(3))
    with pytest.raises(ValueError, match="read-only"):
        tensor.numpy()[0] = 1


@pytest.mark.parametrize("shape", [(1,) * 65, (2**62, 4), (2**62, 2**62, 0)])
def test_what_numpy_cannot_hold_only_passes_through(shape: tuple[int, ...]) -> None:
    assert not is_numpy_shape(shape)
    if 0 in shape:
        tensor = tensor_of(TensorProto(name="t", data_type=TensorProto.FLOAT, dims=shape), None, "t")
        assert not tensor.readable
        assert tensor.digest
        assert embedded(tensor, "t").dims == list(shape)


def test_types_of_arrays() -> None:
    assert dtype_of(np.array(["a"])) is DType.STRING
    for dtype in FIXED:
        assert dtype_of(np.zeros(1, numpy_dtype(dtype))) is dtype
