"""Random programs for the families: convolutions with any stride, padding, dilation and group, odd and even sizes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import specs
from superopt.partial import families
from superopt.partial.families import Family
from superopt.partial.program import Original, parse_original

REGISTRY = specs.load()

Rng = np.random.Generator


def number(rng: Rng, low: int, high: int) -> int:
    return int(rng.integers(low, high + 1))


def _attributes(rng: Rng, rank: int, kernel: list[int], *, plain: bool = False) -> str:
    """Strides, dilations and pads, which stay smaller than what a window spans."""
    strides = [1] * rank if plain else [number(rng, 1, 3) if rng.random() < 0.4 else 1 for _ in range(rank)]
    dilations = [number(rng, 1, 2) if rng.random() < 0.3 else 1 for _ in range(rank)]
    spans = [(k - 1) * d for k, d in zip(kernel, dilations, strict=True)]
    if plain or rng.random() < 0.5:
        before = [n // 2 for n in spans]
        after = [n - b for n, b in zip(spans, before, strict=True)]
    else:
        before, after = ([number(rng, 0, min(n, 3)) for n in spans] for _ in range(2))
    return f"pads={before + after}, strides={strides}, dilations={dilations}"


def _image(rng: Rng, rank: int, kernel: list[int], low: int = 4, high: int = 13) -> list[int]:
    """Large enough for any window at dilation 2."""
    return [max(number(rng, low, high), 2 * (k - 1) + 1) for k in kernel[:rank]]


def _dims(parts: list[object]) -> str:
    return f"[{', '.join(map(str, parts))}]"


def convolution(rng: Rng) -> Original:
    """One convolution of kernels from 1 to 7."""
    rank = 1 if rng.random() < 0.2 else 2
    group = number(rng, 2, 3) if rng.random() < 0.25 else 1
    kernel = [number(rng, 1, 7) if rng.random() < 0.3 else number(rng, 1, 4) for _ in range(rank)]
    many = "" if group == 1 else f"{group}*"
    given = f"x: {_dims(['n', f'{many}c', *_image(rng, rank, kernel)])} k: {_dims([f'{many}o', 'c', *kernel])}"
    bias = rng.random() < 0.5
    attributes = _attributes(rng, rank, kernel) + ("" if group == 1 else f", group={group}")
    call = f"y = Conv(x, k, {'b, ' if bias else ''}{attributes})"
    sizes = {"n": number(rng, 1, 3), "c": 2 * number(rng, 1, 2), "o": number(rng, 1, 3)}
    return parse_original(given + (f" b: [{many}o]" if bias else ""), call, sizes)


def dilated(rng: Rng) -> Original:
    """One convolution with steps of one and a dilation."""
    kernel = [number(rng, 2, 4) for _ in range(2)]
    dilations = [number(rng, 2, 3), number(rng, 1, 3)]
    pads = [number(rng, 0, 3) for _ in range(4)]
    image = [max(number(rng, 5, 12), (k - 1) * d + 1) for k, d in zip(kernel, dilations, strict=True)]
    given = f"x: {_dims(['n', 'c', *image])} k: {_dims(['o', 'c', *kernel])}"
    call = f"y = Conv(x, k, pads={pads}, dilations={dilations})"
    return parse_original(given, call, {"n": number(rng, 1, 2), "c": 2, "o": 2})


def grouped(rng: Rng) -> Original:
    groups, kernel = number(rng, 2, 4), [number(rng, 1, 3) for _ in range(2)]
    c, o = number(rng, 1, 2), number(rng, 1, 2)
    image = _image(rng, 2, kernel, 4, 7)
    given = f"x: {_dims(['n', groups * c, *image])} k: {_dims([groups * o, c, *kernel])}"
    call = f"y = Conv(x, k, {_attributes(rng, 2, kernel)}, group={groups})"
    return parse_original(given, call, {"n": number(rng, 1, 2)})


def pyramid(rng: Rng) -> Original:
    """One convolution of two or three images."""
    kernel = [number(rng, 1, 4) for _ in range(2)]
    attributes, count = _attributes(rng, 2, kernel), number(rng, 2, 3)
    given = [f"x{k}: {_dims(['n', 'c', *_image(rng, 2, kernel, 4, 12)])}" for k in range(count)]
    steps = [f"y{k} = Conv(x{k}, k, b, {attributes})" for k in range(count)]
    text = f"{' '.join(given)} k: {_dims(['o', 'c', *kernel])} b: [o]"
    return parse_original(text, "\n".join(steps), {"n": number(rng, 1, 2), "c": 2, "o": 2})


def head(rng: Rng) -> Original:
    """Two layers and a function between them, on two images."""
    kernels = [[number(rng, 1, 3) for _ in range(2)] for _ in range(2)]
    attributes = [_attributes(rng, 2, kernel, plain=True) for kernel in kernels]
    function = ("Relu", "Sigmoid", "LeakyRelu")[number(rng, 0, 1) if rng.random() < 0.8 else 2]
    given, steps = list[str](), list[str]()
    for k in range(2):
        given.append(f"x{k}: {_dims(['n', 'c', *_image(rng, 2, [3, 3], 5, 9)])}")
        steps.append(f"a{k} = Conv(x{k}, k, b, {attributes[0]})")
        steps.append(f"f{k} = {function}(a{k})")
        steps.append(f"y{k} = Conv(f{k}, q, d, {attributes[1]})")
    weights = f"k: {_dims(['o', 'c', *kernels[0]])} b: [o] q: {_dims(['p', 'o', *kernels[1]])} d: [p]"
    return parse_original(f"{' '.join(given)} {weights}", "\n".join(steps), {"n": 1, "c": 2, "o": 2, "p": 2})


def branches(rng: Rng) -> Original:
    """Convolutions of one input, or of inputs of their own, whose kernels differ and whose results do not in size."""
    count, apart = number(rng, 2, 3), rng.random() < 0.4
    kernels = [[2 * number(rng, 0, 3) + 1 for _ in range(2)] for _ in range(count)]
    image = [number(rng, 7, 11) for _ in range(2)]
    stride, bias = number(rng, 1, 2), rng.random() < 0.5
    inputs = [f"x{k}" if apart else "x0" for k in range(count)]
    given = [f"{x}: {_dims(['n', 'c', *image])}" for x in dict.fromkeys(inputs)]
    steps = list[str]()
    for k, kernel in enumerate(kernels):
        pads = [n // 2 for n in kernel] * 2
        given.append(f"k{k}: {_dims([f'o{k}', 'c', *kernel])}" + (f" b{k}: [o{k}]" if bias else ""))
        operands = f"{inputs[k]}, k{k}" + (f", b{k}" if bias else "")
        steps.append(f"y{k} = Conv({operands}, pads={pads}, strides={[stride] * 2})")
    sizes = {"n": 1, "c": number(rng, 1, 2), **{f"o{k}": number(rng, 1, 3) for k in range(count)}}
    return parse_original(" ".join(given), "\n".join(steps), sizes)


def spread(rng: Rng) -> Original:
    """One transposed convolution."""
    kernel, strides = [number(rng, 1, 5) for _ in range(2)], [number(rng, 1, 3) for _ in range(2)]
    extra = [number(rng, 0, s - 1) for s in strides]
    pads = [number(rng, 0, min(k - 1, 2)) for k in kernel] * 2
    image = [number(rng, 3, 6) for _ in range(2)]
    bias = rng.random() < 0.5
    given = f"x: {_dims(['n', 'c', *image])} k: {_dims(['c', 'o', *kernel])}" + (" b: [o]" if bias else "")
    attributes = f"pads={pads}, strides={strides}, output_padding={extra}"
    call = f"y = ConvTranspose(x, k, {'b, ' if bias else ''}{attributes})"
    return parse_original(given, call, {"n": number(rng, 1, 2), "c": 2, "o": 2})


def matrices(rng: Rng) -> Original:
    sizes = {name: number(rng, 1, 6) for name in ("n", "m", "k", "l", "p", "q")}
    sizes["m"] *= 4
    return (
        lambda: parse_original("a: [n, m, k] b: [k, p]", "y = MatMul(a, b)", sizes),
        lambda: parse_original("a: [m, k] b: [k, p]", "y = MatMul(a, b)", sizes),
        lambda: parse_original("a: [m, k] c: [n, k] b: [k, p]", "y = MatMul(a, b)\nz = MatMul(c, b)", sizes),
        lambda: parse_original("a: [m, k] b: [k, p] c: [n, l] d: [l, q]", "y = MatMul(a, b)\nz = MatMul(c, d)", sizes),
    )[number(rng, 0, 3)]()


def linear(rng: Rng) -> Original:
    """One operator that is linear in two operands, of few axes."""
    which = number(rng, 0, 2)
    if which == 0:
        sizes = {"n": 2 * number(rng, 1, 2), "m": number(rng, 1, 4), "i": number(rng, 1, 4), "p": number(rng, 1, 4)}
        return parse_original("x: [n, m, i] k: [i, p]", "y = MatMul(x, k)", sizes)
    kernel, stride, sizes = number(rng, 1, 4), number(rng, 1, 2), {"n": number(rng, 1, 2), "c": 2, "o": 2}
    pads, image = [number(rng, 0, kernel - 1) for _ in range(2)], number(rng, 6, 16)
    if which == 1:
        return parse_original(
            f"x: [n, c, {image}] k: [c, o, {kernel}] b: [o]",
            f"y = ConvTranspose(x, k, b, strides=[{stride}], pads={pads})",
            sizes,
        )
    dilation = number(rng, 1, 2)
    image = max(image, (kernel - 1) * dilation + 1)
    attributes = f"strides=[{stride}], pads={pads}, dilations=[{dilation}]"
    return parse_original(f"x: [n, c, {image}] k: [o, c, {kernel}]", f"y = Conv(x, k, {attributes})", sizes)


DRAWN: dict[str, tuple[Family, Callable[[Rng], Original]]] = {
    "canvas": (families.canvases, pyramid),
    "head": (families.canvases, head),
    "tiles": (families.tiles, convolution),
    "stacked": (families.stacked, convolution),
    "dilation": (families.undilated, dilated),
    "rounded": (families.rounded, convolution),
    "groups": (families.regrouped, grouped),
    "merged": (families.merged, branches),
    "shifted": (families.shifted, convolution),
    "transposed": (families.transposed, spread),
    "products": (families.products, matrices),
    "channels": (families.folded, convolution),
    "enumerated": (families.enumerated, linear),
}
"""Families with the programs they are tried on."""
