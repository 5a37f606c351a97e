# pyright: basic
"""Models that are almost a rule's left side: one thing about them is changed.

Nobody says whether a rule may still be used there. Whatever is done must leave what the model computes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, ModelProto, TensorProto, helper, numpy_helper

Change = Callable[[ModelProto, np.random.Generator], bool]
"""Changes a model in place; False where there is nothing to change."""


def _pick(rng: np.random.Generator, options: list) -> Any:
    return options[int(rng.integers(len(options)))] if options else None


def whole_attribute(model: ModelProto, rng: np.random.Generator) -> bool:
    """A stride, a pad, a group, an axis, a flag: one more or one less, or another."""
    found = [
        (n, a) for n in model.graph.node for a in n.attribute if a.type in (AttributeProto.INT, AttributeProto.INTS)
    ]
    chosen = _pick(rng, found)
    if chosen is None:
        return False
    _, attribute = chosen
    step = int(rng.choice([-2, -1, 1, 2]))
    if attribute.type == AttributeProto.INT:
        attribute.i += step
    elif attribute.ints:
        attribute.ints[int(rng.integers(len(attribute.ints)))] += step
    return True


def fraction_attribute(model: ModelProto, rng: np.random.Generator) -> bool:
    found = [a for n in model.graph.node for a in n.attribute if a.type == AttributeProto.FLOAT]
    attribute = _pick(rng, found)
    if attribute is None:
        return False
    near = np.nextafter(np.float32(attribute.f), np.float32(9))
    attribute.f = float(_pick(rng, [near, attribute.f * 1.5 + 0.25, 0.0, -attribute.f, 1.0]))
    return True


def dropped_attribute(model: ModelProto, rng: np.random.Generator) -> bool:
    found = [(n, k) for n in model.graph.node for k in range(len(n.attribute)) if n.op_type != "Constant"]
    chosen = _pick(rng, found)
    if chosen is None:
        return False
    node, k = chosen
    del node.attribute[k]
    return True


def _constants(model: ModelProto) -> list[TensorProto]:
    nodes = [a.t for n in model.graph.node if n.op_type == "Constant" for a in n.attribute if a.name == "value"]
    return [*model.graph.initializer, *nodes]


def _rewrite(tensor: TensorProto, array: np.ndarray) -> None:
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def whole_constant(model: ModelProto, rng: np.random.Generator) -> bool:
    """Axes, pads, targets, starts and ends."""
    tensor = _pick(rng, [t for t in _constants(model) if t.data_type == TensorProto.INT64])
    if tensor is None:
        return False
    array = numpy_helper.to_array(tensor).copy()
    if array.size:
        array.reshape(-1)[int(rng.integers(array.size))] += int(rng.choice([-2, -1, 1, 2, -5]))
    _rewrite(tensor, array)
    return True


def _floats(model: ModelProto) -> list[TensorProto]:
    kinds = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
    return [t for t in _constants(model) if t.data_type in kinds]


def fraction_constant(model: ModelProto, rng: np.random.Generator) -> bool:
    """One unit in the last place, or far off, or no number at all."""
    tensor = _pick(rng, _floats(model))
    if tensor is None:
        return False
    array = numpy_helper.to_array(tensor).copy()
    if not array.size:
        return False
    special = array.dtype.type(_pick(rng, [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 1e-30]))
    changed = [
        np.nextafter(array, np.full_like(array, 9)),
        array * array.dtype.type(1.25),
        np.full_like(array, special),
    ]
    _rewrite(tensor, np.asarray(_pick(rng, changed)))
    return True


def uniform_constant(model: ModelProto, rng: np.random.Generator) -> bool:
    """A weight that holds one number everywhere, as rules have numbers."""
    tensor = _pick(rng, _floats(model))
    if tensor is None:
        return False
    array = numpy_helper.to_array(tensor)
    number = array.reshape(-1)[0] if array.size and rng.random() < 0.5 else rng.choice([0, 1, 2, 0.5, -1])
    _rewrite(tensor, np.full_like(array, number))
    return True


def larger_constant(model: ModelProto, rng: np.random.Generator) -> bool:
    """A number that has axes, of size 1 or more: it broadcasts what it meets."""
    tensor = _pick(rng, [t for t in _floats(model) if np.prod(t.dims, dtype=int) == 1])
    if tensor is None:
        return False
    array = numpy_helper.to_array(tensor)
    shape = _pick(rng, [(1,), (1, 1), (1, 1, 1), (1, 1, 1, 1, 1), (2,), (3, 1), (4,), (2, 1, 1), (3, 1, 1, 1)])
    _rewrite(tensor, np.full(shape, array.reshape(-1)[0], array.dtype))
    return True


def reshaped_constant(model: ModelProto, rng: np.random.Generator) -> bool:
    """A bias with other axes of size 1."""
    tensor = _pick(rng, _floats(model))
    if tensor is None:
        return False
    array = numpy_helper.to_array(tensor)
    if rng.random() < 0.5:
        array = np.expand_dims(array, int(rng.integers(array.ndim + 1)))
    else:
        ones = [k for k, n in enumerate(array.shape) if n == 1]
        if not ones:
            return False
        array = np.squeeze(array, _pick(rng, ones))
    _rewrite(tensor, array)
    return True


def input_size(model: ModelProto, rng: np.random.Generator) -> bool:
    """Another size of an input: 1 broadcasts, 0 is empty."""
    found = [d for i in model.graph.input for d in i.type.tensor_type.shape.dim if d.HasField("dim_value")]
    dim = _pick(rng, found)
    if dim is None:
        return False
    dim.dim_value = int(_pick(rng, [0, 1, 1, 2, 3, 4, 5]))
    return True


def input_rank(model: ModelProto, rng: np.random.Generator) -> bool:
    shape = _pick(rng, [i.type.tensor_type.shape for i in model.graph.input])
    if shape is None:
        return False
    if len(shape.dim) and rng.random() < 0.5:
        del shape.dim[0]
    else:
        dims = [d.dim_value for d in shape.dim]
        del shape.dim[:]
        for n in (int(_pick(rng, [1, 1, 2])), *dims):
            shape.dim.add(dim_value=n)
    return True


def intermediate_output(model: ModelProto, rng: np.random.Generator) -> bool:
    """Values on the way are results as well."""
    known = {o.name for o in model.graph.output}
    made = [o for n in model.graph.node if n.op_type != "Constant" for o in n.output if o and o not in known]
    chosen = [name for name in made if rng.random() < 0.6] or made[:1]
    for name in chosen:
        model.graph.output.append(onnx.ValueInfoProto(name=name))
    return bool(chosen)


def same_operand(model: ModelProto, rng: np.random.Generator) -> bool:
    """Two operands that are one: shared weights, a value used twice."""
    names = [i.name for i in model.graph.input] + [t.name for t in model.graph.initializer]
    nodes = [n for n in model.graph.node if n.op_type != "Constant" and any(i in names for i in n.input)]
    node = _pick(rng, nodes)
    if node is None:
        return False
    k = _pick(rng, [k for k, i in enumerate(node.input) if i in names])
    node.input[k] = _pick(rng, names)
    return True


def swapped_operands(model: ModelProto, rng: np.random.Generator) -> bool:
    node = _pick(rng, [n for n in model.graph.node if len(n.input) > 1])
    if node is None:
        return False
    a, b = (int(k) for k in rng.choice(len(node.input), 2, replace=False))
    node.input[a], node.input[b] = node.input[b], node.input[a]
    return True


def swapped_results(model: ModelProto, rng: np.random.Generator) -> bool:
    node = _pick(rng, [n for n in model.graph.node if len(n.output) > 1])
    if node is None:
        return False
    a, b = (int(k) for k in rng.choice(len(node.output), 2, replace=False))
    node.output[a], node.output[b] = node.output[b], node.output[a]
    return True


def other_operator(model: ModelProto, rng: np.random.Generator) -> bool:
    """A neighbour in the family: a maximum for a sum, a mean for a maximum."""
    families = [
        ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"),
        ("Relu", "Sigmoid", "Tanh", "Erf", "Exp", "Neg", "Abs", "Sqrt", "Reciprocal", "Identity", "Softplus"),
        ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2"),
        ("MaxPool", "AveragePool"),
        ("Softmax", "LogSoftmax"),
        ("GlobalAveragePool", "GlobalMaxPool"),
    ]
    found = [(n, family) for n in model.graph.node for family in families if n.op_type in family and not n.domain]
    chosen = _pick(rng, found)
    if chosen is None:
        return False
    node, family = chosen
    node.op_type = _pick(rng, [op for op in family if op != node.op_type])
    return True


def dropped_operand(model: ModelProto, rng: np.random.Generator) -> bool:
    node = _pick(rng, [n for n in model.graph.node if len(n.input) > 2])
    if node is None:
        return False
    node.input.pop()
    return True


def captured(model: ModelProto, rng: np.random.Generator) -> bool:
    """A value on the way is also read by the branches of an If."""
    made = [o for n in model.graph.node if n.op_type != "Constant" for o in n.output if o]
    names = [*made, *(i.name for i in model.graph.input)]
    value = _pick(rng, names)
    if value is None:
        return False
    branches = []
    for op in ("Neg", "Abs"):
        node = helper.make_node(op, [value], [f"{op}_of_captured"])
        branches.append(helper.make_graph([node], op, [], [onnx.ValueInfoProto(name=f"{op}_of_captured")]))
    flag = numpy_helper.from_array(np.array(bool(rng.random() < 0.5)), "captured_flag")
    model.graph.initializer.append(flag)
    model.graph.node.append(
        helper.make_node("If", ["captured_flag"], ["captured_result"], then_branch=branches[0], else_branch=branches[1])
    )
    model.graph.output.append(onnx.ValueInfoProto(name="captured_result"))
    return True


def named_dims(model: ModelProto, rng: np.random.Generator) -> bool:
    """One name for dims that need not be equal."""
    changed = False
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if rng.random() < 0.5:
                dim.dim_param, changed = _pick(rng, ["n", "n", "m"]), True
    return changed


def twice(model: ModelProto, rng: np.random.Generator) -> bool:
    """Everything once more, on the same inputs, under other names."""
    for node in list(model.graph.node):
        if node.op_type == "Constant":
            continue
        other = model.graph.node.add()
        other.CopyFrom(node)
        made = {o for n in model.graph.node for o in n.output}
        for k, name in enumerate(other.input):
            if f"{name}_twin" in made:
                other.input[k] = f"{name}_twin"
        for k, name in enumerate(other.output):
            other.output[k] = f"{name}_twin"
    for output in list(model.graph.output):
        model.graph.output.append(onnx.ValueInfoProto(name=f"{output.name}_twin"))
    return True


CHANGES: tuple[Change, ...] = (
    whole_attribute, fraction_attribute, dropped_attribute, whole_constant, fraction_constant, uniform_constant,
    larger_constant, reshaped_constant, input_size, input_rank, intermediate_output, same_operand, swapped_operands,
    swapped_results, other_operator, dropped_operand, captured, named_dims, twice,
)  # fmt: skip


def feeds_for(model: ModelProto, given: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Inputs of the sizes that the model now declares."""
    found: dict[str, np.ndarray] = {}
    for value in model.graph.input:
        before = given[value.name]
        dims = value.type.tensor_type.shape.dim
        shape = tuple(
            d.dim_value if d.HasField("dim_value") else (before.shape[k] if k < before.ndim else 1)
            for k, d in enumerate(dims)
        )
        if shape == before.shape:
            found[value.name] = before
        elif before.dtype == np.bool_:
            found[value.name] = np.asarray(rng.random(shape) < 0.5)
        else:
            found[value.name] = (np.asarray(rng.uniform(0.3, 1.5, shape)) * 4).astype(before.dtype)
    return found
