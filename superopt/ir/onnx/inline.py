# pyright: basic
"""Local functions put in the place of their calls: for looking into them, never for writing."""

from __future__ import annotations

from onnx import inliner

from superopt.ir.onnx.model import Model, parse


def inlined(model: Model) -> Model:
    """The model without calls of its own functions, but for those of another version of the operator set than its own.

    The same model where it has none.
    """
    if not model.functions:
        return model
    return parse(inliner.inline_local_functions(model.proto).SerializeToString(), model.path)
