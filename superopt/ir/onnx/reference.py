# pyright: basic
"""onnx's own evaluation of a model, in numpy: for the types that onnxruntime has no kernel for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto

from superopt.errors import CannotRun
from superopt.ir.tensor import Array


def evaluate_plainly(model: bytes, feeds: Mapping[str, Array]) -> list[Array]:
    """The outputs in the model's order."""
    from onnx.reference import ReferenceEvaluator  # takes long to load, and few models need it

    proto = ModelProto()
    proto.ParseFromString(model)
    try:
        with np.errstate(all="ignore"):
            found = ReferenceEvaluator(proto).run(None, dict(feeds))
    except Exception as error:  # noqa: BLE001 (each operator's own code, which raises what it likes)
        raise CannotRun(f"onnx's reference evaluation failed: {type(error).__name__}: {str(error)[:200]}") from None
    return [np.asarray(array) for array in found]
