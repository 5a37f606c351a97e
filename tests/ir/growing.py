# pyright: basic
"""Random graphs that take shapes apart and put them together again."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Growing:
    """A graph that grows by operators which run at the sizes it is grown at."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.sizes = {name: rng.randint(1, 4) for name in "abcde"}
        self.feeds = self.drawn(self.sizes)
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}
        self.lists: dict[str, np.ndarray] = {}
        self.arrays: dict[str, np.ndarray] = dict(self.feeds)
        for value in ([-1], [1], [2], [0]):
            self.constant(np.array(value, np.int64))

    @staticmethod
    def drawn(sizes: dict[str, int]) -> dict[str, np.ndarray]:
        shapes = {"x": "abc", "y": "de", "z": "ab"}
        return {name: np.ones([sizes[letter] for letter in letters], np.float32) for name, letters in shapes.items()}

    def constant(self, array: np.ndarray) -> str:
        name = f"k{len(self.constants)}"
        self.constants[name] = self.lists[name] = array
        return name

    def add(self, op: str, inputs: list[str], result: np.ndarray, **attributes: Any) -> None:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        short = result.dtype in (np.int64, np.bool_) and result.ndim == 1 and result.size <= 6
        (self.lists if short else self.arrays)[name] = result

    def grow(self) -> None:
        step = self.rng.choice((self._shape, self._shape, self._element, self._join, self._combine, self._combine,
                                self._choose, self._reshape, self._reshape, self._expand, self._meet, self._flatten,
                                self._multiply, self._cut, self._count))  # fmt: skip
        try:
            step()
        except (ValueError, IndexError, ZeroDivisionError, OverflowError):
            return

    def one(self, of: dict[str, np.ndarray], fits: Callable[[np.ndarray], bool] = lambda _: True) -> str:
        return self.rng.choice([name for name, value in of.items() if fits(value)])

    def integers(self) -> str:
        return self.one(self.lists, lambda v: v.dtype == np.int64)

    def floats(self, rank: int = 1) -> str:
        return self.one(self.arrays, lambda v: v.dtype == np.float32 and v.ndim >= rank)

    def _shape(self) -> None:
        x = self.floats()
        self.add("Shape", [x], np.array(self.arrays[x].shape, np.int64))

    def _element(self) -> None:
        data = self.integers()
        index = self.rng.randrange(len(self.lists[data]))
        self.add("Gather", [data, self.constant(np.array([index], np.int64))], self.lists[data][[index]], axis=0)

    def _join(self) -> None:
        parts = [self.integers() for _ in range(self.rng.randint(2, 3))]
        self.add("Concat", parts, np.concatenate([self.lists[p] for p in parts]), axis=0)

    def _combine(self) -> None:
        op, a, b = self.rng.choice(("Mul", "Div", "Add", "Sub")), self.integers(), self.integers()
        left, right = self.lists[a], self.lists[b]
        if op == "Div":
            if not right.all():
                return
            result = np.trunc(left / right).astype(np.int64)
        else:
            result = {"Mul": np.multiply, "Add": np.add, "Sub": np.subtract}[op](left, right)
        if np.abs(result).max() < 1000:
            self.add(op, [a, b], result)

    def _choose(self) -> None:
        a, b = self.integers(), self.integers()
        same = self.lists[a] == self.lists[b]
        self.add("Equal", [a, b], np.asarray(same))
        condition = f"v{len(self.nodes) - 1}"
        self.add("Where", [condition, a, b], np.where(same, self.lists[a], self.lists[b]))

    def _reshape(self) -> None:
        x, target = self.floats(), self.integers()
        before, wanted = self.arrays[x], [int(n) for n in self.lists[target]]
        if min(wanted) < -1:
            return  # numpy takes any of these for -1
        shape_ = [before.shape[i] if n == 0 else n for i, n in enumerate(wanted)]
        self.add("Reshape", [x, target], before.reshape(shape_))

    def _expand(self) -> None:
        x, target = self.floats(), self.integers()
        wanted = [int(n) for n in self.lists[target]]
        if all(0 < n < 9 for n in wanted):
            whole = np.broadcast_shapes(self.arrays[x].shape, tuple(wanted))
            self.add("Expand", [x, target], np.broadcast_to(self.arrays[x], whole))

    def _meet(self) -> None:
        a, b = self.floats(), self.floats()
        self.add(self.rng.choice(("Add", "Mul")), [a, b], self.arrays[a] + self.arrays[b])

    def _flatten(self) -> None:
        x = self.floats()
        axis = self.rng.randint(0, self.arrays[x].ndim)
        front = int(np.prod(self.arrays[x].shape[:axis]))
        self.add("Flatten", [x], self.arrays[x].reshape(front, -1), axis=axis)

    def _multiply(self) -> None:
        a, b = self.floats(2), self.floats(2)
        self.add("MatMul", [a, b], np.matmul(self.arrays[a], self.arrays[b]))

    def _cut(self) -> None:
        x, end = self.floats(), self.one(self.lists, lambda v: v.dtype == np.int64 and len(v) == 1)
        axis = self.rng.randrange(self.arrays[x].ndim)
        kept = [slice(None)] * self.arrays[x].ndim
        kept[axis] = slice(0, int(self.lists[end][0]))
        zero, axes = self.constant(np.array([0], np.int64)), self.constant(np.array([axis], np.int64))
        if self.arrays[x][tuple(kept)].size:
            self.add("Slice", [x, zero, end, axes], self.arrays[x][tuple(kept)])

    def _count(self) -> None:
        end = self.one(self.lists, lambda v: v.dtype == np.int64 and len(v) == 1 and 0 < v[0] < 9)
        scalar = f"v{len(self.nodes)}"
        none = f"n{len(self.constants)}"
        self.constants[none] = np.array([0], np.int64)
        self.nodes.append(helper.make_node("Squeeze", [end, none], [scalar]))
        zero, one = f"s{len(self.constants)}", f"t{len(self.constants)}"
        self.constants |= {zero: np.array(0, np.int64), one: np.array(1, np.int64)}
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node("Range", [zero, scalar, one], [name]))
        self.nodes.append(helper.make_node("Cast", [name], [f"{name}f"], to=TensorProto.FLOAT))
        self.arrays[f"{name}f"] = np.arange(int(self.lists[end][0]), dtype=np.float32)

    def model(self, opset: int = 17) -> bytes:
        inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, list(d))
                  for n, d in (("x", "abc"), ("y", "de"), ("z", "ab"))]  # fmt: skip
        made = [name for node in self.nodes for name in node.output]
        outputs = [helper.make_value_info(name, helper.make_tensor_type_proto(self._type(name), None)) for name in made]
        constants = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        graph = helper.make_graph(self.nodes, "g", inputs, outputs, constants)
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        return proto.SerializeToString()

    def _type(self, name: str) -> int:
        value = self.lists.get(name, self.arrays.get(name))
        return TensorProto.INT64 if value is None else helper.np_dtype_to_tensor_dtype(value.dtype)
