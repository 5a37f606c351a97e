"""Input sets: which ones a model is run on, and their values."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from superopt.check.domains import Domain, domain_of
from superopt.check.fill import Style, fill
from superopt.check.sizes import Layout, Sizing
from superopt.check.uses import uses_of_inputs
from superopt.errors import CannotRun
from superopt.ir.onnx import Model
from superopt.ir.onnx.declared import declared_inputs
from superopt.ir.tensor import Array, is_numpy_shape
from superopt.ir.types import Dim, DType, OptionalType, SequenceType, TensorType, Type, format_type
from superopt.runtime.port import Port
from superopt.runtime.session import Session
from superopt.runtime.values import Value

FIRST = Style("normal values", "masks on")
MASKED = Style("normal values", "random masks", flags="random")
STYLES = (
    MASKED,
    Style("normal values", "masks of prefixes", flags="prefix"),
    Style("values in 0 to 1", reals="unit"),
    Style("zeros", "least integers, masks off", reals="zeros", wholes="low", flags="zeros"),
    Style("ones", "largest integers, masks on", reals="ones", wholes="high"),
    Style("large values", "masks with nothing in some rows", reals="large", flags="rows"),
    Style("tiny values", reals="tiny"),
    Style("mixed signs and magnitudes, some zeros", "masks of prefixes", reals="mixed", flags="prefix"),
)
MIXED = STYLES[-1]
ONLY_FLOATS = frozenset(("unit", "large", "tiny", "mixed"))
NONFINITE = (
    Style("normal values, some NaN", reals="nan"),
    Style("normal values, some infinite", reals="inf"),
)


@dataclass(frozen=True)
class Case:
    """One input set, by its recipe: values are made anew for each run."""

    style: Style
    layout: Layout
    sizing: Sizing
    number: int
    """Different numbers draw different values."""
    turn: int = 0
    """Which of the constants that a scalar is compared with it gets."""
    plain: int | None = None
    """Where set, every integer and flag has this value: for models that refuse what analysis suggests."""
    absent: bool = False
    """Optional inputs are left empty."""
    overridden: bool = False
    """Initializers that the caller may replace get other values."""
    given: Mapping[str, Array] = field(default_factory=dict[str, Array])
    """The user's own arrays."""
    note: str = ""

    @property
    def chooses_sizes(self) -> bool:
        """Whether some size is ours and not the user's."""
        pairs = zip(self.layout.variables, self.sizing, strict=True)
        return any(variable.given != size for variable, size in pairs)

    @property
    def text(self) -> str:
        """One line for the report."""
        parts = [self.note] if self.note else [self.style.text, self.style.choices, f"draw {self.number}"]
        return ", ".join(part for part in (*parts, self.layout.text(self.sizing)) if part)


@dataclass(frozen=True)
class _Input:
    name: str
    type: Type
    core: TensorType
    """The tensor inside an optional or a sequence."""


class Source:
    """Makes the values of any case for one model."""

    def __init__(self, model: Model, session: Session, seed: int) -> None:
        types = declared_inputs(model)
        self._symbols = dict(zip(model.graph.input_names, (p.type for p in model.graph.inputs), strict=True))
        self.seed = seed % (1 << 64)  # numpy takes no negative ones
        self.inputs = tuple(_input(port, types.get(port.name)) for port in session.inputs)
        self.overridable = tuple(p for p in session.overridable if _replaceable(p))
        self._uses = uses_of_inputs(model.graph)
        domains = {i: self._domain(i, tuple(0 for _ in i.core.shape or ()), {}) for i in self.inputs}
        self.has_floats = any(d.form == "real" for d in domains.values())
        self.has_choices = any(d.form != "real" for d in domains.values())
        scalars = [d for i, d in domains.items() if d.only_picks and _may_be_one(i.core.shape or ())]
        self.turns = min(4, max((len(d.picks) for d in scalars), default=1))
        """How many cases it takes until every constant that a scalar is compared with had its turn."""

    @property
    def declared(self) -> dict[str, tuple[Dim, ...] | None]:
        return {i.name: i.core.shape for i in self.inputs}

    @property
    def has_optional(self) -> bool:
        return any(isinstance(i.type, OptionalType) for i in self.inputs)

    def feeds(self, case: Case) -> dict[str, Value]:
        """Fresh arrays each time: a session may keep or write to what it is given."""
        if case.given:
            return {name: array.copy() for name, array in case.given.items()}
        shapes = case.layout.shapes(case.sizing)
        sizes = self._sizes(shapes)
        feeds: dict[str, Value] = {}
        for item in self.inputs:
            shape = shapes[item.name]
            feeds[item.name] = self._value(item, item.type, shape, self._domain(item, shape, sizes), case)
        if case.overridden:
            for port in self.overridable:
                shape = tuple(d for d in port.shape or () if isinstance(d, int))
                rng = np.random.default_rng(self._entropy(port.name, case, 0))
                feeds[port.name] = np.asarray(0.5 + rng.random(shape), DType(port.dtype).value)
        return feeds

    def _sizes(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        """Sizes by the graph's own symbols, by `input.axis` where there is none."""
        sizes: dict[str, int] = {}
        for name, shape in shapes.items():
            type_ = self._symbols.get(name)
            known = type_.shape if isinstance(type_, TensorType) else None
            for axis, (dim, size) in enumerate(zip(known or (None,) * len(shape), shape, strict=True)):
                if not isinstance(dim, int):
                    sizes[dim or f"{name}.{axis}"] = size
        return sizes

    def _value(
        self, item: _Input, type_: Type, shape: tuple[int, ...], domain: Domain, case: Case, at: int = 0
    ) -> Value:
        if isinstance(type_, OptionalType):
            return None if case.absent else self._value(item, type_.element, shape, domain, case)
        if isinstance(type_, SequenceType):
            return [self._value(item, type_.element, shape, domain, case, at=i) for i in range(2)]
        assert item.core.dtype is not None
        divides = any(use.kind == "divisor" for use in self._uses.get(item.name, ()))  # by 0: the process would die
        if case.plain is not None and domain.form not in ("real", "text", "reshape") and not divides:
            domain = Domain("whole", case.plain, case.plain)
        if not is_numpy_shape(shape):
            raise CannotRun(f"input {item.name}: no array can have the shape {list(shape)}")
        try:
            return fill(domain, item.core.dtype, shape, case.style, case.turn, self._entropy(item.name, case, at))
        except MemoryError:
            raise CannotRun(f"input {item.name}: an array of shape {list(shape)} does not fit in memory") from None

    def _domain(self, item: _Input, shape: tuple[int, ...], sizes: Mapping[str, int]) -> Domain:
        assert item.core.dtype is not None
        return domain_of(item.name, item.core.dtype, self._uses.get(item.name, ()), shape, sizes)

    def _entropy(self, name: str, case: Case, at: int) -> list[int]:
        return [self.seed, case.number, zlib.crc32(name.encode()), at]


def _input(port: Port, type_: Type) -> _Input:
    core = type_
    while isinstance(core, OptionalType | SequenceType):
        core = core.element
    if core is None and isinstance(port.dtype, DType):
        core = type_ = TensorType(port.dtype, port.shape)
    if not isinstance(core, TensorType):
        raise CannotRun(f"input {port.name}: superopt cannot make values of type {format_type(type_)}")
    if core.dtype is None and isinstance(port.dtype, DType):
        core = replace(core, dtype=port.dtype)
    if core.dtype is None:
        raise CannotRun(f"input {port.name}: its element type is not known")
    return _Input(port.name, type_, core)


def _may_be_one(shape: tuple[Dim, ...]) -> bool:
    return not any(isinstance(d, int) and d != 1 for d in shape)


def _replaceable(port: Port) -> bool:
    """Floats of a fixed shape: an integer may be a shape or an axis that no other value fits."""
    floats = (DType.FLOAT32, DType.FLOAT64, DType.FLOAT16)
    return port.dtype in floats and all(isinstance(d, int) for d in port.shape or ())
