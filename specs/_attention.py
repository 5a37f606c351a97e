"""Scaled dot-product attention over heads, as the operators that pack it in different ways share it.

Queries, keys and values are (batch, heads, positions, width) here. A key's weight is e^score, or 0 where it is hidden;
a result is the mean of the values by these weights: softmax, then a product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from superopt.ops.condition import Condition
from superopt.ops.draws import pick
from superopt.ops.element import Element, Operand, call, choose, lift, select, sum_over
from superopt.ops.formula import Tensor, broadcast, covered, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Values
from superopt.ops.symbols import Symbols


def split_heads(x: Tensor, heads: Index) -> Tensor:
    """(batch, positions, heads · width) as (batch, heads, positions, width)."""
    require(x.rank == 3, "(batch, positions, heads · width) has three axes")
    batch, length, hidden = x.shape
    require(heads >= 1, "at least one head")
    require(hidden % heads == 0, "the heads do not divide the width")
    width = hidden // heads
    return tensor((batch, heads, length, width), lambda b, n, s, h: x[b, s, n * width + h])


def merge_heads(x: Tensor) -> Tensor:
    """(batch, heads, positions, width) as (batch, positions, heads · width)."""
    batch, heads, length, width = x.shape
    return tensor((batch, length, heads * width), lambda b, s, j: x[b, j // width, s, j % width])


def causal(query: Index, key: Index) -> Condition | bool:
    """A query sees the keys up to its own position."""
    return key <= query


def spread(mask: Tensor, shape: Sequence[Index]) -> Tensor:
    """A mask at (batch, heads, queries, keys), where batch and heads may broadcast; onnxruntime takes no other."""
    require(2 <= mask.rank <= 4, "a mask has two to four axes")
    for n, full in zip(reversed(mask.shape), reversed(shape), strict=False):
        require((n == 1) | (n == full), "the mask does not broadcast to the scores")
    covered(mask.shape[-1] == shape[-1], "a mask shorter than the keys")
    covered(mask.shape[-2] == shape[-2], "a mask that broadcasts over the queries")
    return broadcast(mask, tuple(shape))


def filtered(mask: Tensor, filter_value: Operand, shape: Sequence[Index]) -> Tensor:
    """What onnxruntime's own operators add to scores: 0 where an integer mask is above 0, else the filter value."""
    batch, _, queries, keys = shape
    covered(mask.rank in (2, 3), "a mask given as lengths or positions, or for each head")
    require(mask.shape[0] == batch, "one mask for each sequence")
    require(mask.shape[-1] == keys, "the mask has another length than the keys")
    if mask.rank == 3:
        require(mask.shape[1] == queries, "the mask has another length than the queries")

    def at(b: Index, _: Index, s: Index, t: Index) -> Element:
        shown = mask[b, t] if mask.rank == 2 else mask[b, s, t]
        return choose(call("step", shown), 0, filter_value)

    return tensor(tuple(shape), at)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    scale: Operand | None = None,
    softcap: Operand = 0,
    biases: Sequence[Tensor] = (),
    shown: Tensor | None = None,
    visible: Callable[[Index, Index], Condition | bool] | None = None,
    sink: Callable[[Index], Element] | None = None,
) -> Tensor:
    """Attention of each query; several heads of queries may share one of keys and values.

    Scores are q·k times `scale` (1/√width where none is given), kept between ±`softcap` by tanh where that is not 0,
    plus `biases`. `visible` hides keys by position, `shown` by elements that are 0 or 1; a query that sees no key gets
    zeros. `sink` is the score of one more key, whose value is 0.
    """
    batch, heads, queries, width = q.shape
    _, key_heads, keys, value_width = v.shape
    require(k.shape[0] == batch, "queries and keys differ in batch")
    require(v.shape[0] == batch, "queries and values differ in batch")
    require(k.shape[1] == key_heads, "keys and values differ in heads")
    require(k.shape[2] == keys, "keys and values differ in number")
    require(k.shape[3] == width, "queries and keys differ in width")
    require(key_heads >= 1, "at least one head")
    require(heads % key_heads == 0, "the heads of keys do not divide those of queries")
    group = heads // key_heads
    factor = 1 / call("sqrt", width) if scale is None else lift(scale)
    capped = not (isinstance(softcap, int | float) and softcap == 0)

    def weight(b: Index, n: Index, s: Index, t: Index) -> Element:
        score = sum_over(width, lambda h: q[b, n, s, h] * k[b, n // group, t, h]) * factor
        if capped:
            score = softcap * call("tanh", score / softcap)
        for bias in biases:
            score = score + bias[b, n, s, t]
        found = call("exp", score)
        if shown is not None:
            found = choose(shown[b, n, s, t], found, 0)
        return found if visible is None else select(visible(s, t), found, 0)

    def at(b: Index, n: Index, s: Index, h: Index) -> Element:
        total = sum_over(keys, lambda t: weight(b, n, s, t))
        if sink is not None:
            total = total + call("exp", sink(n))
        mean = sum_over(keys, lambda t: weight(b, n, s, t) / total * v[b, n // group, t, h])
        return mean if shown is None else choose(call("step", total), mean, 0)

    return tensor((batch, heads, queries, value_width), at)


def unknown_scores(symbols: Symbols, switch: str, further: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Causal or not, by the attribute of that name, and any scale, the default one included."""
    scale = symbols.real("scale")
    for on in (0, 1):
        for given in ({}, {"scale": scale}):
            yield {**further, switch: on, **given}


def draw_mask(rng: Any) -> tuple[Values, dict[str, Any]]:
    """A mask with a filter value; under the default one each query sees a key, or float64 leaves nothing of a row."""
    if rng.random() < 0.5:
        return lambda rng, shape: rng.integers(0, 3, shape).astype("int32"), {"mask_filter_value": pick(rng, -3.0, 2.0)}

    def first_seen(rng: Any, shape: tuple[int, ...]) -> Any:
        mask = rng.integers(0, 2, shape).astype("int32")
        mask[..., 0] = 1
        return mask

    return first_seen, {}
