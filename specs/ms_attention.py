"""com.microsoft Attention: one projection to queries, keys and values, then attention of the sequence to itself."""

from collections.abc import Iterator, Sequence
from typing import Any

from specs._attention import attend, causal, draw_mask, filtered, merge_heads, split_heads, spread, unknown_scores
from superopt.ops.draws import pick, size
from superopt.ops.element import Element, select, sum_over
from superopt.ops.formula import Illegal, Tensor, covered, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator
from superopt.ops.symbols import Symbols


def draw(rng: Any) -> Draw:
    batch, length, width, heads = size(rng, 1, 2), size(rng, 1, 4), size(rng, 1, 4), size(rng, 1, 3)
    hidden = value_hidden = heads * size(rng, 1, 3)
    arguments: dict[str, Any] = {"num_heads": heads}
    if rng.random() < 0.4:
        value_hidden = heads * size(rng, 1, hidden // heads)
        arguments["qkv_hidden_sizes"] = [hidden, hidden, value_hidden]
    if rng.random() < 0.4:
        arguments["unidirectional"] = 1
    if rng.random() < 0.4:
        arguments["scale"] = pick(rng, 0.0, 0.3, -0.6)
    packed = 2 * hidden + value_hidden
    mask = pick(rng, None, (batch, length), (batch, length, length))
    bias = pick(rng, None, (pick(rng, 1, batch), pick(rng, 1, heads), length, length))
    drawn = None
    if mask is not None:
        drawn, further = draw_mask(rng)
        arguments |= further
    shapes = ((batch, length, width), (width, packed), (packed,), mask, None, bias)
    outputs = pick(rng, 1, 2) if value_hidden == hidden else 1
    return Draw(shapes, arguments, outputs, (None, None, None, drawn, None, None))


def unknown(symbols: Symbols, ranks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    common = {"num_heads": symbols.positive("num_heads"), "mask_filter_value": symbols.real("mask_filter_value")}
    hidden, value_hidden = symbols.positive("hidden"), symbols.positive("value_hidden")
    for sizes in ({}, {"qkv_hidden_sizes": [hidden, hidden, value_hidden]}):
        yield from unknown_scores(symbols, "unidirectional", {**common, **sizes})


@operator("Attention", domain="com.microsoft", since=1, draw=draw, unknown=unknown)
def ms_attention(
    x: Tensor,
    weights: Tensor,
    bias: Tensor | None = None,
    mask_index: Tensor | None = None,
    past: Tensor | None = None,
    attention_bias: Tensor | None = None,
    past_sequence_length: Tensor | None = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float | Element = -10000.0,
    num_heads: Index,
    past_present_share_buffer: int = 0,
    qkv_hidden_sizes: Sequence[Index] | None = None,
    rotary_embedding_dim: Index = 0,
    scale: float | Element = 0.0,
    unidirectional: int = 0,
    outputs: int = 1,
) -> tuple[Tensor, ...]:
    """A scale of 0 stands for the default. onnxruntime's kernel for the CPU crashes where the bias is missing."""
    covered(past is None and past_sequence_length is None, "a cache of keys and values")
    covered(not past_present_share_buffer, "a cache of keys and values")
    covered(not do_rotary, "rotary embedding")
    covered(bias is not None, "no bias")
    require(x.rank == 3, "(batch, positions, width) has three axes")
    require(weights.rank == 2, "weights have two axes")
    batch, length, width = x.shape
    packed = weights.shape[1]
    require(weights.shape[0] == width, "inner dimensions differ")
    if bias is None or bias.rank != 1:
        raise Illegal("a bias has one axis")
    require(bias.shape[0] == packed, "one bias for each column of the weights")
    if qkv_hidden_sizes is None:
        require(packed % 3 == 0, "queries, keys and values do not divide the weights")
        qkv_hidden_sizes = (packed // 3,) * 3
    require(len(qkv_hidden_sizes) == 3, "qkv_hidden_sizes are three")
    hidden, key_hidden, value_hidden = qkv_hidden_sizes
    require(hidden == key_hidden, "queries and keys differ in width")
    covered(value_hidden <= hidden, "values wider than keys, where onnxruntime's kernel for CUDA errs")
    require(hidden + key_hidden + value_hidden == packed, "qkv_hidden_sizes differ from the weights")

    def projected(first: Index, count: Index) -> Tensor:
        def at(b: Index, s: Index, j: Index) -> Element:
            return sum_over(width, lambda i: x[b, s, i] * weights[i, first + j]) + bias[first + j]

        return split_heads(tensor((batch, length, count), at), num_heads)

    q, k, v = projected(0, hidden), projected(hidden, hidden), projected(2 * hidden, value_hidden)
    scores = (batch, num_heads, length, length)
    biases: list[Tensor] = []
    if mask_index is not None:
        biases.append(filtered(mask_index, mask_filter_value, scores))
    if attention_bias is not None:
        biases.append(spread(attention_bias, scores))
    result = attend(
        q,
        k,
        v,
        scale=None if isinstance(scale, int | float) and scale == 0 else scale,
        biases=biases,
        visible=causal if unidirectional else None,
    )
    if outputs == 1:
        return (merge_heads(result),)
    covered(outputs == 2, "more than a result and the keys and values")
    require(hidden == value_hidden, "keys and values differ in width")
    return merge_heads(result), tensor((2, *k.shape), lambda which, *i: select(which == 0, k[i], v[i]))
