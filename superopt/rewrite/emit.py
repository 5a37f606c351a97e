"""The right side of a rule as nodes of the model: written for its opset, in its element type, and read back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from superopt.ir.graph import Attribute, Node, Value, make_node
from superopt.ir.onnx.schema import accepts, attribute_names, input_counts, real_attributes
from superopt.ir.onnx.tensors import CODES, DTYPES
from superopt.ir.types import DType, TensorType
from superopt.ops.condition import deciding
from superopt.ops.evaluate import sized
from superopt.ops.formula import Illegal, NotCovered, Tensor, constant
from superopt.ops.index import Index, Poly, same
from superopt.ops.registry import Operator, Registry
from superopt.ops.series import Series
from superopt.ops.table import table
from superopt.rewrite.alike import alike
from superopt.rewrite.bind import is_default
from superopt.rewrite.conflict import Conflict
from superopt.rewrite.constants import Constants
from superopt.rewrite.emptiness import refuse_empty
from superopt.rewrite.expression import evaluate
from superopt.rewrite.found import Match
from superopt.rewrite.hidden import between, refuse_hidden
from superopt.rewrite.kernels import runs_on_cuda
from superopt.rewrite.numerals import held, held_all, number_of, rounded, rounds_to
from superopt.rewrite.program import find
from superopt.rewrite.reading import NARROW_FLOATS, Reader, Reading, Undetermined, strictly
from superopt.rewrite.rule import Call, Operand, Step
from superopt.rewrite.rule import Number as Numeral
from superopt.rewrite.sizes import Sizes, dtype_of
from superopt.rewrite.spelling import widened


@dataclass(frozen=True)
class Vocabulary:
    """Operators that a result may use."""

    contrib: bool = True
    """onnxruntime's own operators too, not only those that ONNX defines at the model's opset."""
    cuda: bool = False
    """Operators that only the CUDA provider runs."""
    for_cuda: bool = False
    """Nothing that it does not run."""
    never_empty: frozenset[str] | None = None
    """Names of sizes that are never 0; None where none may be."""

    def refuse(self, operator: Operator, opset: int, dtype: DType, arguments: Mapping[str, Any]) -> None:
        standard = not operator.domain and attribute_names(operator.name, "", opset) is not None
        if not standard and not self.contrib:
            raise Conflict(f"{operator.kind} is no standard operator of opset {opset}, and only those are allowed")
        if operator.runs_on == "cuda" and not self.cuda:
            raise Conflict(f"{operator.kind} runs on CUDA only")
        if self.for_cuda and not runs_on_cuda(operator.kind, dtype, arguments):
            raise Conflict(f"{operator.kind} does not run on CUDA, or not with this type and these attributes")


@dataclass(frozen=True)
class Made:
    """A value of the right side, and what the rule's program says it is."""

    value: Value
    tensor: Tensor
    is_step: bool = False
    """Whether a step computed it."""

    def operand(self, number: int) -> Tensor:
        """What an operator that reads it is read back with: of a step's result the shape alone, or what is checked for
        the last of many steps would grow with each that came before."""
        return sized(self.tensor.shape, f"⟨operand {number}⟩") if self.is_step else self.tensor


@dataclass
class Emitter:
    registry: Registry
    reader: Reader
    constants: Constants
    sizes: Sizes
    vocabulary: Vocabulary
    _agreed: set[tuple[object, ...]] = field(default_factory=set[tuple[object, ...]])

    def emit(self, match: Match) -> dict[str, Value]:
        """The values that take the place of the results; raises `Conflict` where this model cannot have them."""
        try:
            with deciding(strictly):
                return self._emit(match)
        except (Illegal, NotCovered, Undetermined, ZeroDivisionError) as error:
            raise Conflict(str(error) or type(error).__name__) from None

    def side(self, steps: Iterable[Step], match: Match) -> dict[str, Value]:
        """The values of either side of a rule, at sizes and on inputs that need not have been matched in a graph."""
        try:
            with deciding(strictly):
                return {name: made.value for name, made in self._made(steps, match, {}).items()}
        except (Illegal, NotCovered, Undetermined, ZeroDivisionError) as error:
            raise Conflict(str(error) or type(error).__name__) from None

    def _made(self, steps: Iterable[Step], match: Match, results: Mapping[str, Value]) -> dict[str, Made]:
        made = {name: Made(self._input(match, name), match.tensors[name]) for name in match.inputs}
        for step in steps:
            self._step(step, match, made, results)
        return made

    def _emit(self, match: Match) -> dict[str, Value]:
        results = match.results
        made = self._made(match.pattern.rule.right, match, results)
        found: dict[str, Value] = {}
        for name, old in results.items():
            new = made[name]
            shape = self.sizes.shape(old)
            assert shape is not None
            for a, b in zip(new.tensor.shape, shape, strict=True):
                if isinstance(a, int) and isinstance(b, int) and a != b:
                    raise Conflict(f"{name} would change its shape")
            if dtype_of(new.value) is not dtype_of(old):
                raise Conflict(f"{name} would change its element type")
            found[name] = new.value
        refuse_hidden(match.nodes, between(found.values(), match.inputs.values()), self.constants)
        return found

    def _input(self, match: Match, name: str) -> Value:
        value, seen = match.inputs[name], match.coerced.get(name)
        if seen is None:
            return value
        return self._node(
            find(_RESHAPE, self.registry), [Made(value, match.tensors[name])], {"shape": list(seen)}, match, (seen,)
        )[0]

    def _step(self, step: Step, match: Match, made: dict[str, Made], results: Mapping[str, Value]) -> None:
        if isinstance(step.value, str):
            made[step.targets[0]] = made[step.value]
            return
        old = tuple(results.get(target) for target in step.targets)
        found = self._call(step.value, match, made, len(step.targets), old)
        made.update(zip(step.targets, found, strict=True))

    def _operands(self, call: Call, match: Match, made: Mapping[str, Made]) -> list[Made | None]:
        """Numbers last: they have the type of what they meet, which is a wider one behind a cast to it."""
        tensors = [self._tensor(o, match, made) for o in call.operands]
        dtype = _meeting([t for t in tensors if t is not None], match.dtype)
        numbers = [o is not None and t is None for o, t in zip(call.operands, tensors, strict=True)]
        pairs = zip(call.operands, tensors, numbers, strict=True)
        return [self._number(o, match, dtype) if is_number else t for o, t, is_number in pairs]

    def _tensor(self, operand: Operand, match: Match, made: Mapping[str, Made]) -> Made | None:
        if isinstance(operand, Call):
            return self._call(operand, match, made, 1, (None,))[0]
        return made.get(operand) if isinstance(operand, str) else None

    def _number(self, operand: Operand, match: Match, dtype: DType) -> Made:
        assert isinstance(operand, str | Numeral)
        number = match.names[operand] if isinstance(operand, str) else evaluate(operand.expression, match.names)
        if isinstance(number, list):
            return Made(self.constants.table(held_all(number, dtype), dtype), table(number))
        return Made(self.constants.number(held(number, dtype), dtype), constant(number))

    def _call(
        self, call: Call, match: Match, made: Mapping[str, Made], outputs: int, old: tuple[Value | None, ...]
    ) -> list[Made]:
        operator = find(call, self.registry)
        operands = self._operands(call, match, made)
        arguments = {name: evaluate(value, match.names) for name, value in call.arguments}
        if call.bundle is not None:
            known = {p.name for p in operator.parameters}
            bundle = match.names[call.bundle]
            arguments = {**{k: v for k, v in bundle.items() if k in known}, **arguments}
        tensors = operator.apply([None if o is None else o.tensor for o in operands], arguments, outputs)
        if len(tensors) < outputs:
            raise Conflict(f"{operator.kind} has {len(tensors)} results, {outputs} are wanted")
        shapes = tuple(t.shape for t in tensors[:outputs])
        values = self._node(operator, operands, arguments, match, shapes, old)
        return [Made(v, t, is_step=True) for v, t in zip(values, tensors, strict=False)]

    def _node(
        self,
        operator: Operator,
        operands: list[Made | None],
        arguments: Mapping[str, Any],
        match: Match,
        shapes: tuple[tuple[Index, ...], ...],
        old: tuple[Value | None, ...] = (None,),
    ) -> tuple[Value, ...]:
        opset = self.reader.opset
        own = self.reader.version(operator.name, operator.domain)
        if own is None:
            raise Conflict(f"{operator.kind} is not defined at opset {opset}")
        own_type = _meeting([o for o in operands if o is not None], match.dtype)
        self.vocabulary.refuse(own, opset, own_type, arguments)
        spelled = _with_type(operator, arguments, match.dtype)
        inputs, attributes = self._written(own, operator, operands, spelled, own_type, tuple(match.inputs.values()))
        for k, value in enumerate(inputs):
            held = None if value is None else dtype_of(value)
            if held is not None and not accepts(own.name, own.domain, opset, k, held):
                raise Conflict(f"{operator.kind} takes no elements of type {held} at opset {opset}")
        dtype = _result_type(operator, operands, spelled, own_type)
        types = tuple(self._result(dtype, shape, value) for shape, value in zip(shapes, old, strict=True))
        node = make_node(operator.name, inputs, attributes, types, domain=operator.domain)
        if self.vocabulary.never_empty is not None:
            refuse_empty(node, self.sizes, self.vocabulary.never_empty)
        self._read_back(node, operator, operands, arguments)
        return node.outputs

    def _result(self, dtype: DType, shape: tuple[Index, ...], old: Value | None) -> TensorType:
        """What the formula says; where the value that is replaced was known better, that."""
        known = old.tensor_type if old is not None else None
        if known is None or known.shape is None or len(known.shape) != len(shape):
            return self.sizes.type(dtype, shape)
        pairs = zip(shape, known.shape, strict=True)
        return TensorType(dtype, tuple(self.sizes.dim(n) if isinstance(n, int) or d is None else d for n, d in pairs))

    def _written(
        self,
        own: Operator,
        newest: Operator,
        operands: list[Made | None],
        arguments: Mapping[str, Any],
        dtype: DType,
        around: Sequence[Value],
    ) -> tuple[list[Value | None], dict[str, Attribute]]:
        """Inputs and attributes as the model's opset wants them. `around`: values that have sizes asked for."""
        known = attribute_names(own.name, own.domain, self.reader.opset)
        attributes: dict[str, Attribute] = {}
        statics: dict[str, Value] = {}
        first = operands[0] if operands else None
        real = real_attributes(own.name, own.domain, self.reader.opset)
        arguments = widened(arguments, 0 if first is None else first.tensor.rank)
        for parameter in newest.parameters:
            value = arguments.get(parameter.name, parameter.default)
            if parameter.kind == "tensor" or value is None:
                continue
            is_attribute = parameter.kind == "attribute" if known is None else parameter.name in known
            if parameter.name == "value" and newest.name == "ConstantOfShape":
                attributes["value"] = self.constants.filled(held(value, dtype), dtype)
            elif is_attribute:
                if parameter.required or not _is_default(newest, parameter.name, value, operands):
                    is_real = isinstance(parameter.default, float) or parameter.name in real
                    attributes[parameter.name] = _attribute(value, is_real)
            elif parameter.kind == "static":
                told = self._at_run_time(value, first, around) if newest.name == "Expand" else None
                statics[parameter.name] = told or self._static(parameter.name, value, first)
            elif not _is_default(newest, parameter.name, value, operands):
                raise Conflict(f"{own.kind} has no attribute {parameter.name} at opset {self.reader.opset}")
        values = [None if o is None else o.value for o in operands]
        if any(p.variadic for p in own.parameters):
            return values, attributes
        if any(v is not None for v in values[len(own.tensors) :]):
            raise Conflict(f"{own.kind} has fewer operands at opset {self.reader.opset}")
        inputs: list[Value | None] = []
        waiting = iter(values)
        for parameter in own.parameters:
            if parameter.kind == "tensor":
                inputs.append(next(waiting, None))
            elif parameter.kind == "static" and parameter.name not in attributes:
                inputs.append(statics.get(parameter.name))
        while inputs and inputs[-1] is None:
            inputs.pop()
        least, most = input_counts(own.name, own.domain, self.reader.opset) or (0, len(inputs))
        if len(inputs) > most or len(inputs) < least or None in inputs[:least]:
            raise Conflict(f"{own.kind} takes {least} to {most} inputs at opset {self.reader.opset}")
        return inputs, attributes

    def _at_run_time(self, target: list[Index], first: Made | None, around: Sequence[Value]) -> Value | None:
        """The target of an Expand as a list that the run computes, where it has sizes that nothing else tells; those
        that stay are 1."""
        if first is None or all(isinstance(n, int) for n in target):
            return None
        own = (*(1 for _ in range(len(target) - first.tensor.rank)), *first.tensor.shape)
        left = [1 if same(n, m) else n for n, m in zip(target, own, strict=True)]
        return self.reader.stretcher.listed([self.sizes.dim(n) for n in left], first.value, around)

    def _static(self, name: str, value: Any, first: Made | None) -> Value:
        if isinstance(value, int):
            return self.constants.scalar_index(value)
        if isinstance(value, Series):
            listed = value.values()
            if listed is None:
                raise Conflict(f"{name} would be too long a list, or depend on a size that is known only at run time")
            return self.constants.list_of(listed)
        if name == "shape" and first is not None:
            value = _reshape_target(value, first.tensor.shape)
        if not all(isinstance(v, int) for v in value):
            raise Conflict(f"{name} would depend on a size that is known only at run time")
        return self.constants.scales(value) if name == "scales" else self.constants.list_of(value)

    def _read_back(
        self, node: Node, operator: Operator, operands: list[Made | None], arguments: Mapping[str, Any]
    ) -> None:
        """What was written must mean what the rule says; told once for each spelling at given sizes.

        A list by formula was written as its entries: too many of them to be read as a formula again."""
        if any(isinstance(value, Series) for value in arguments.values()):
            return
        reading = self.reader.read(node)
        if not isinstance(reading, Reading):
            raise Conflict(reading)
        shapes = tuple(None if o is None else str(o.tensor.shape) for o in operands)
        key = (operator, len(node.types), shapes, str(arguments), str(reading.arguments))
        if key in self._agreed:
            return
        tensors = [None if o is None else o.operand(k) for k, o in enumerate(operands)]
        while tensors and tensors[-1] is None:
            tensors.pop()
        meant = operator.apply(tensors, arguments, len(node.types))
        read = {name: _unrounded(value, arguments.get(name)) for name, value in reading.arguments.items()}
        kept = [None if value is None else tensor for value, tensor in zip(reading.operands, tensors, strict=False)]
        found = operator.apply(kept, read, len(node.types))
        if not all(alike(a, b) for a, b in zip(meant, found, strict=True)):
            raise Conflict(f"{operator.kind} cannot be written at opset {self.reader.opset} as the rule means it")
        self._agreed.add(key)


_RESHAPE = Call("", "Reshape", ())


def _is_default(operator: Operator, name: str, value: Any, operands: list[Made | None]) -> bool:
    ranks = tuple(o.tensor.rank for o in operands if o is not None)
    return is_default(operator, name, value, Reading(operator, (), {}, ranks))


def _attribute(value: Any, is_real: bool) -> Attribute:
    if isinstance(value, list):
        parts = [_attribute(v, is_real) for v in value]
        if not parts or any(isinstance(part, list | str) for part in parts):
            raise Conflict("an attribute would be an empty or nested list")
        mixed = any(isinstance(part, float) for part in parts)
        return tuple(float(p) if mixed else p for p in parts)  # pyright: ignore[reportArgumentType, reportReturnType]
    if isinstance(value, Poly):
        raise Conflict("an attribute would depend on a size that is known only at run time")
    if isinstance(value, str) or (isinstance(value, int) and not is_real):
        return value
    return rounded(number_of(value), "float32")  # as the file will hold it


def _unrounded(found: Any, meant: Any) -> Any:
    """A number read back from an attribute, which holds it as float32, as the number that was to be written."""
    if isinstance(found, list) and isinstance(meant, list) and len(found) == len(meant):
        return [_unrounded(a, b) for a, b in zip(found, meant, strict=True)]
    if not isinstance(found, Fraction) or meant is None or isinstance(meant, Poly | str | list):
        return found
    return meant if rounds_to(float(found), number_of(meant), "float32") else found


def _reshape_target(shape: list[Index], source: tuple[Index, ...]) -> list[Index]:
    """Sizes that only the run will tell, as 0 (copied) where they stay in place, and one of them as −1."""
    target = list(shape)
    for k, n in enumerate(shape):
        if isinstance(n, Poly) and k < len(source) and same(n, source[k]):
            target[k] = 0
    open_axes = [k for k, n in enumerate(target) if isinstance(n, Poly)]
    if len(open_axes) == 1:
        target[open_axes[0]] = -1
    return target


def _meeting(operands: Iterable[Made], dtype: DType) -> DType:
    """The type of elements that an operator computes with: the rule's, or a wider one that they were cast to."""
    if dtype not in NARROW_FLOATS:
        return dtype
    return DType.FLOAT32 if any(dtype_of(o.value) is DType.FLOAT32 for o in operands) else dtype


def _with_type(operator: Operator, arguments: Mapping[str, Any], dtype: DType) -> Mapping[str, Any]:
    """What a rule calls wider or narrower, by ONNX's number; where nothing is wider, its own type is."""
    if operator.name != "Cast" or not isinstance(arguments["to"], str):
        return arguments
    to = DType.FLOAT32 if arguments["to"] == "wider" and dtype in NARROW_FLOATS else dtype
    return {**arguments, "to": int(CODES[to])}


def _result_type(operator: Operator, operands: list[Made | None], arguments: Mapping[str, Any], dtype: DType) -> DType:
    if operator.name == "Cast":
        found = DTYPES.get(arguments["to"])
        if found is None:
            raise Conflict("a cast to a type that is not covered")
        return found
    if operator.name == "IsNaN":
        return DType.BOOL
    first = operands[0].value.tensor_type if operands and operands[0] is not None else None
    if first is not None and first.dtype is DType.BOOL and operator.name != "Where":
        return DType.BOOL
    return dtype
