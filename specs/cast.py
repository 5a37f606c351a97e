"""Cast: the elements in another type.

Between float16 or bfloat16 and float32 it is the identity: exactly so on the way to the wider type; on the way back but
for rounding to the type of the result, which proofs leave out of account for every operator. Rules write these two as
`to="wider"` and `to="narrower"`, whichever narrow type it is.

Of all others only this is said: it is a function of each element alone, one for each type. `cast_int32` cuts off a
fraction, `cast_bool` is 1 where x is not 0; none is the identity, so proofs take them for unknown functions, which may
be moved past whatever moves elements. A number that is known is known as a bool too: masks are written so. The
attributes saturate and round_mode matter to float8 types alone.
"""

from collections.abc import Mapping
from typing import Any

from superopt.ops.draws import pick, shape
from superopt.ops.element import Element, Number, call, lift
from superopt.ops.formula import Tensor, covered, elementwise
from superopt.ops.registry import Draw, Values, operator

TYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64", 16: "bfloat16",
}  # fmt: skip
"""By ONNX's number. Strings, complex numbers and the small types that saturate are not covered."""
NARROW, WIDE = ("float16", "bfloat16"), "float32"
WORDS = ("wider", "narrower")


def draw(rng: Any) -> Draw:
    to = pick(rng, *TYPES)
    unsigned = TYPES[to].startswith("uint")
    sources: tuple[Values, ...] = (
        lambda rng, shape: rng.uniform(0 if unsigned else -99, 99, shape),
        lambda rng, shape: rng.integers(-300, 300, shape),
        lambda rng, shape: rng.random(shape) < 0.5,
    )
    return Draw((shape(rng),), {"to": to}, values=pick(rng, *sources))


@operator("Cast", since=6, elements="any", draw=draw)
def cast(x: Tensor, *, to: int | str, saturate: int = 1, round_mode: str = "up", types: Mapping[str, str]) -> Tensor:
    if isinstance(to, str):
        covered(to in WORDS, f"a cast to {to!r}")
        return elementwise(lambda e: e, x)
    covered(to in TYPES, f"a cast to ONNX's type {to}")
    keeps = _keeps(types.get("x", ""), TYPES[to])
    return elementwise(lambda e: e if keeps else _cast(e, TYPES[to]), x)


def _keeps(before: str, after: str) -> bool:
    """Whether it is the identity, for what proofs are about."""
    return (before in NARROW and after == WIDE) or (before == WIDE and after in NARROW) or (before == after != "")


def _cast(e: Element, kind: str) -> Element:
    if kind == "bool" and isinstance(e, Number):
        return lift(int(e.value != 0))
    return call(f"cast_{kind}", e)
