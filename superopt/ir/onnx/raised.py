# pyright: basic
"""A model at a newer opset, converted by onnx itself."""

from __future__ import annotations

from onnx import ModelProto, helper, version_converter

from superopt.errors import BadOption
from superopt.ir.onnx.model import OPSETS, Model, parse


def raised(model: Model, opset: int) -> Model:
    """The model at the opset asked for, its IR version raised where that opset needs it; raises `BadOption`."""
    if opset < model.opset:
        raise BadOption(f"--opset {opset}: the model has opset {model.opset}, which is never lowered")
    if opset == model.opset:
        return model
    if opset not in OPSETS:
        raise BadOption(f"--opset {opset}: expected at most {OPSETS[-1]}")
    if model.external:
        raise BadOption("--opset: a model with external data cannot be converted")
    try:
        converted = version_converter.convert_version(model.proto, opset)
    except (RuntimeError, ValueError, IndexError) as error:
        raise BadOption(f"--opset {opset}: onnx cannot convert the model: {str(error).splitlines()[0]}") from None
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    proto.graph.CopyFrom(converted.graph)
    for entry in proto.opset_import:
        if entry.domain in ("", "ai.onnx"):
            entry.version = opset
    proto.ir_version = max(model.ir_version, _needed(opset))
    return parse(proto.SerializeToString(deterministic=True))


def _needed(opset: int) -> int:
    """The IR version that came with an opset."""
    table = {row[2]: row[1] for row in helper.VERSION_TABLE}
    return table.get(opset, 0)
