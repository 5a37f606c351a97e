"""What the CUDA provider does not run is not written into a model that is meant for it."""

from __future__ import annotations

from typing import Any

import pytest

import specs
from superopt.ir.types import DType
from superopt.rewrite.conflict import Conflict
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.kernels import runs_on_cuda

pytestmark = pytest.mark.unit

CONV, GEMM = "com.microsoft::FusedConv", "com.microsoft::FusedGemm"
SKIPPED = "com.microsoft::SkipSimplifiedLayerNormalization"


@pytest.mark.parametrize(
    ("kind", "dtype", "arguments", "runs"),
    [
        (CONV, DType.FLOAT32, {"activation": "Relu"}, True),
        (CONV, DType.FLOAT32, {}, True),
        (CONV, DType.FLOAT32, {"activation": "HardSwish"}, False),
        (CONV, DType.FLOAT16, {"activation": "Relu"}, False),
        (GEMM, DType.FLOAT32, {"activation": "Relu"}, False),
        ("Conv", DType.FLOAT16, {}, True),
        ("com.microsoft::FusedMatMul", DType.FLOAT16, {}, True),
        (SKIPPED, DType.FLOAT32, {}, True),
        (SKIPPED, DType.FLOAT16, {}, False),
        (SKIPPED, DType.BFLOAT16, {}, False),
    ],
)
def test_what_has_a_kernel(kind: str, dtype: DType, arguments: dict[str, Any], runs: bool) -> None:
    assert runs_on_cuda(kind, dtype, arguments) == runs


def test_only_models_for_cuda_do_without_it() -> None:
    operator = next(o for o in specs.load() if o.kind == GEMM)
    Vocabulary(cuda=True).refuse(operator, 17, DType.FLOAT32, {})
    with pytest.raises(Conflict, match="does not run on CUDA"):
        Vocabulary(cuda=True, for_cuda=True).refuse(operator, 17, DType.FLOAT32, {})
