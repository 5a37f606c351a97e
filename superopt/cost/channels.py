"""A region with channels last at its borders, as it stands in a model whose convolutions are run so.

onnxruntime then keeps images with channels last from one convolution to the next, and moves data only where another
operator wants them first. A region that is given images with channels first, and asked for them, would be timed with
two movements that the model does not make; and a product in a convolution's place, which makes them in the model, would
be timed without. Transposes at the borders, which onnxruntime cancels against its own, set both right.
"""

from __future__ import annotations

from collections.abc import Container

from superopt.cost.layouts import TO_FIRST, TO_LAST, turned
from superopt.ir.graph import Graph, Parameter, Value, make_node, make_parameter, replace_inputs
from superopt.ir.types import TensorType

_IMAGES = frozenset(("Conv", "ConvTranspose", "FusedConv", "AveragePool", "MaxPool", "GlobalAveragePool"))
"""Operators on images, at least one of which makes a region one of them."""


def works_on_images(graph: Graph) -> bool:
    return any(node.op in _IMAGES for node in graph.nodes)


def with_channels_last(graph: Graph, inner: Container[Parameter]) -> Graph:
    """Those inputs that are `inner`, and all outputs, with channels last, as far as they are images."""
    inputs: list[Parameter] = []
    moved: dict[Value, Value] = {}
    added = []
    for parameter in graph.inputs:
        type_ = parameter.type
        if parameter in inner and isinstance(type_, TensorType) and _is_image(type_):
            last = make_parameter(parameter.position, turned(type_, TO_LAST))
            back = make_node("Transpose", [Value(last)], {"perm": TO_FIRST}, [type_])
            moved[Value(parameter)] = back.outputs[0]
            added.append(back)
            inputs.append(last)
        else:
            inputs.append(parameter)
    nodes = []
    for node in graph.nodes:
        new = replace_inputs(
            node, (v and moved.get(v, v) for v in node.inputs), (moved.get(v, v) for v in node.captured)
        )
        moved |= zip(node.outputs, new.outputs, strict=True)
        nodes.append(new)
    outputs: list[Value] = []
    for output in (moved.get(v, v) for v in graph.outputs):
        type_ = output.tensor_type
        if type_ is not None and _is_image(type_):
            last = make_node("Transpose", [output], {"perm": TO_LAST}, [turned(type_, TO_LAST)])
            nodes.append(last)
            output = last.outputs[0]
        outputs.append(output)
    return Graph(tuple(inputs), tuple(outputs), (*added, *nodes), graph.input_names, graph.output_names)


def _is_image(type_: TensorType) -> bool:
    return type_.rank == 4 and type_.dtype is not None and type_.dtype.is_float
