"""com.microsoft MultiHeadAttention: attention of queries to keys and values, each with a bias, in several layouts."""

from collections.abc import Iterator
from typing import Any

from specs._attention import attend, causal, draw_mask, filtered, merge_heads, split_heads, spread, unknown_scores
from superopt.ops.draws import pick, size
from superopt.ops.element import Element
from superopt.ops.formula import Illegal, Tensor, covered, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator
from superopt.ops.symbols import Symbols


def draw(rng: Any) -> Draw:
    """The packed layouts have kernels for CUDA alone, and are not drawn."""
    batch, heads = size(rng, 1, 2), size(rng, 1, 3)
    queries, keys, width = (size(rng, 1, 4) for _ in range(3))
    arguments: dict[str, Any] = {"num_heads": heads}
    if rng.random() < 0.4:
        queries = keys
        arguments["unidirectional"] = 1
    if rng.random() < 0.4:
        arguments["scale"] = pick(rng, 0.0, 0.3, -0.6)
    key = pick(rng, (batch, keys, heads * width), (batch, keys, heads * width), (batch, heads, keys, width))
    bias = pick(rng, None, (3 * heads * width,))
    mask = pick(rng, None, (batch, keys), (batch, queries, keys))
    added = pick(rng, None, (pick(rng, 1, batch), pick(rng, 1, heads), queries, keys))
    drawn = None
    if mask is not None:
        drawn, further = draw_mask(rng)
        arguments |= further
    shapes = ((batch, queries, heads * width), key, key, bias, mask, added)
    outputs = pick(rng, 1, 3) if len(key) == 3 else 1
    return Draw(shapes, arguments, outputs, (None, None, None, None, drawn, None))


def unknown(symbols: Symbols, ranks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    common = {"num_heads": symbols.positive("num_heads"), "mask_filter_value": symbols.real("mask_filter_value")}
    yield from unknown_scores(symbols, "unidirectional", common)


@operator("MultiHeadAttention", domain="com.microsoft", since=1, draw=draw, unknown=unknown)
def ms_multi_head_attention(
    query: Tensor,
    key: Tensor | None = None,
    value: Tensor | None = None,
    bias: Tensor | None = None,
    key_padding_mask: Tensor | None = None,
    attention_bias: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    past_sequence_length: Tensor | None = None,
    cache_indirection: Tensor | None = None,
    *,
    mask_filter_value: float | Element = -10000.0,
    num_heads: Index,
    scale: float | Element = 0.0,
    unidirectional: int = 0,
    outputs: int = 1,
) -> tuple[Tensor, ...]:
    """A scale of 0 stands for the default."""
    covered(past_key is None and past_value is None, "a cache of keys and values")
    covered(past_sequence_length is None and cache_indirection is None, "a cache of keys and values")
    q, k, v = in_heads(query, key, value, bias, num_heads)
    queries, keys = q.shape[2], k.shape[2]
    covered(v.shape[3] == q.shape[3], "values of another width than keys, where onnxruntime's kernel for CUDA errs")
    if unidirectional:
        covered(queries == keys, "a causal mask over another number of keys, where onnxruntime's kernels differ")
    scores = (*q.shape[:3], keys)
    biases: list[Tensor] = []
    if key_padding_mask is not None:
        biases.append(filtered(key_padding_mask, mask_filter_value, scores))
    if attention_bias is not None:
        require(attention_bias.rank == 4, "attention_bias has four axes")
        biases.append(spread(attention_bias, scores))
    result = attend(
        q,
        k,
        v,
        scale=None if isinstance(scale, int | float) and scale == 0 else scale,
        biases=biases,
        visible=causal if unidirectional else None,
    )
    covered(outputs in (1, 3), "the scores as an output")
    return (merge_heads(result), k, v)[:outputs]


def in_heads(
    query: Tensor, key: Tensor | None, value: Tensor | None, bias: Tensor | None, heads: Index
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values as (batch, heads, positions, width), their biases added."""
    if query.rank == 5:
        require(key is None and value is None, "packed queries come with their keys and values")
        covered(bias is None, "a bias to a packed operand")
        return unpacked(query, 0, 3, heads), unpacked(query, 1, 3, heads), unpacked(query, 2, 3, heads)
    require(query.rank == 3, "queries have three axes, or five with their keys and values")
    if key is None:
        raise Illegal("keys are missing")
    hidden = query.shape[2]
    if key.rank == 5:
        require(value is None, "packed keys come with their values")
        covered(bias is None, "a bias to a packed operand")
        return split_heads(query, heads), unpacked(key, 0, 2, heads), unpacked(key, 1, 2, heads)
    if value is None:
        raise Illegal("values are missing")
    q = split_heads(with_bias(query, bias, 0), heads)
    if key.rank == 4:
        require(value.rank == 4, "keys and values differ in rank")
        require(key.shape[1] == heads, "keys have another number of heads")
        if bias is not None:
            require(bias.shape[0] == 3 * hidden, "one bias for each number of queries, keys and values")
        return q, key, value
    require(key.rank == value.rank == 3, "keys and values have three to five axes")
    require(key.shape[2] == hidden, "queries and keys differ in width")
    if bias is not None:
        require(bias.shape[0] == 2 * hidden + value.shape[2], "one bias for each number of queries, keys and values")
    k = split_heads(with_bias(key, bias, hidden), heads)
    return q, k, split_heads(with_bias(value, bias, 2 * hidden), heads)


def unpacked(x: Tensor, which: int, count: int, heads: Index) -> Tensor:
    """One of the operands packed as (batch, positions, heads, count, width)."""
    batch, length, n, packed, width = x.shape
    require(n == heads, "another number of heads is packed")
    require(packed == count, "another number of operands is packed")
    return tensor((batch, heads, length, width), lambda b, n, s, h: x[b, s, n, which, h])


def with_bias(x: Tensor, bias: Tensor | None, first: Index) -> Tensor:
    if bias is None:
        return x
    require(bias.rank == 1, "a bias has one axis")
    return tensor(x.shape, lambda b, s, j: x[b, s, j] + bias[first + j])
