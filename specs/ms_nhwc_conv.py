"""com.microsoft NhwcConv: Conv of images [N, H, W, C] with filters [M, kH, kW, C/group]."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from specs import conv as _conv
from specs.conv import conv
from specs.transpose import transpose
from superopt.ops.formula import Tensor, covered
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    while True:
        drawn = _conv.draw(rng)
        x, w, *bias = drawn.shapes
        if x is not None and w is not None and len(x) == 4:
            return replace(drawn, shapes=((x[0], *x[2:], x[1]), (w[0], *w[2:], w[1]), *bias))


@operator("NhwcConv", domain="com.microsoft", since=1, elements="any", runs_on="cuda", draw=draw, unknown=_conv.unknown)
def nhwc_conv(
    x: Tensor,
    w: Tensor,
    b: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[Index] | None = None,
    group: Index = 1,
    kernel_shape: Sequence[Index] | None = None,
    pads: Sequence[Index] | None = None,
    strides: Sequence[Index] | None = None,
) -> Tensor:
    covered(x.rank == 4, "images with other than two spatial axes")
    covered(w.rank == 4, "filters with other than two spatial axes")
    result = conv(
        transpose(x, perm=(0, 3, 1, 2)), transpose(w, perm=(0, 3, 1, 2)), b, auto_pad=auto_pad, dilations=dilations,
        group=group, kernel_shape=kernel_shape, pads=pads, strides=strides,
    )  # fmt: skip
    return transpose(result, perm=(0, 2, 3, 1))
