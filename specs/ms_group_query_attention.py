"""com.microsoft GroupQueryAttention: attention of a prompt to itself, where several heads of queries share keys."""

from typing import Any

import numpy as np

from specs._attention import attend, merge_heads, split_heads, spread
from specs._rotary import rotated
from superopt.ops.condition import Condition
from superopt.ops.draws import pick, size
from superopt.ops.element import Element, lift
from superopt.ops.formula import Illegal, Static, Tensor, covered, require, tensor
from superopt.ops.index import Index, Poly
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    batch, key_heads, length, width = size(rng, 1, 2), size(rng, 1, 2), size(rng, 1, 5), pick(rng, 8, 16)
    heads = key_heads * size(rng, 1, 3)
    arguments: dict[str, Any] = {
        "num_heads": heads,
        "kv_num_heads": key_heads,
        "seqlens_k": np.full(batch, length - 1, np.int32),
        "total_sequence_length": np.array(length, np.int32),
    }
    causal = rng.random() < 0.8
    if not causal:
        arguments["causal"] = 0
    elif rng.random() < 0.4:
        arguments["local_window_size"] = size(rng, 1, 4)
    for name, value in (("scale", 0.3), ("softcap", 1.5)):
        if rng.random() < 0.4:
            arguments[name] = value
    cache = None
    if rng.random() < 0.4:
        width = pick(rng, 16, 32)
        cache = (length + size(rng, 0, 2), 8)
        arguments |= {"do_rotary": 1, "rotary_interleaved": pick(rng, 0, 1)}
    added = pick(rng, None, (pick(rng, 1, batch), pick(rng, 1, heads), length, length))
    sink = (heads,) if rng.random() < 0.3 else None
    if sink is None and rng.random() < 0.3:
        arguments["smooth_softmax"] = 1
    query, key = (batch, length, heads * width), (batch, length, key_heads * width)
    operands = pick(rng, (query, key, key), ((batch, length, (heads + 2 * key_heads) * width), None, None))
    return Draw((*operands, None, None, cache, cache, None, added, sink), arguments, pick(rng, 1, 3))


@operator("GroupQueryAttention", domain="com.microsoft", since=1, draw=draw)
def ms_group_query_attention(
    query: Tensor,
    key: Tensor | None = None,
    value: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    seqlens_k: Static = None,
    total_sequence_length: Static = None,
    cos_cache: Tensor | None = None,
    sin_cache: Tensor | None = None,
    position_ids: Tensor | None = None,
    attention_bias: Tensor | None = None,
    head_sink: Tensor | None = None,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
    q_norm_weight: Tensor | None = None,
    k_norm_weight: Tensor | None = None,
    *,
    causal: int = 1,
    do_rotary: int = 0,
    k_quant_type: str = "NONE",
    kv_cache_bit_width: int = 0,
    kv_num_heads: Index,
    local_window_size: Index = -1,
    num_heads: Index,
    qk_norm_epsilon: float | Element = 1e-6,
    qk_output: int = 0,
    rotary_interleaved: int = 0,
    scale: float | Element = 0.0,
    sliding_window_cache: int = 0,
    smooth_softmax: int = 0,
    softcap: float | Element = 0.0,
    v_quant_type: str = "NONE",
    outputs: int = 1,
) -> tuple[Tensor, ...]:
    """Only a whole prompt: no cache, and every sequence as long as the queries. A scale of 0 stands for the default."""
    covered(past_key is None and past_value is None and not sliding_window_cache, "a cache of keys and values")
    covered(k_quant_type == v_quant_type == "NONE" and k_scale is None and v_scale is None, "a quantized cache")
    covered(q_norm_weight is None and k_norm_weight is None, "normalized queries and keys")
    covered(position_ids is None, "positions given one by one")
    covered(outputs in (1, 3) and not qk_output, "the scores as an output")
    q, k, v = in_heads(query, key, value, num_heads, kv_num_heads)
    batch, _, length, width = q.shape
    require(k.shape[2] == length, "queries and keys differ in number")
    require(k.shape[3] == v.shape[3], "keys and values differ in width")
    covered(width % 8 == 0, "heads of a width that onnxruntime refuses")
    whole_prompt(seqlens_k, total_sequence_length, batch, length)
    if do_rotary:
        covered(width % 16 == 0, "turned heads of a width that onnxruntime refuses")
        q, k = (turned(x, cos_cache, sin_cache, bool(rotary_interleaved)) for x in (q, k))
    covered(head_sink is None or not smooth_softmax, "head_sink and smooth_softmax together")
    if head_sink is not None:
        require(head_sink.rank == 1, "one sink for each head")
        require(head_sink.shape[0] == num_heads, "one sink for each head")

    def sink(head: Index) -> Element:
        return lift(0) if head_sink is None else head_sink[head]

    windowed = not (isinstance(local_window_size, int) and local_window_size == -1)
    require(not windowed or local_window_size >= 1, "a window of less than one key")
    require(bool(causal) or not windowed, "a window needs a causal mask")

    def visible(position: Index, other: Index) -> Condition | bool:
        seen = other <= position
        return seen & (other > position - local_window_size) if windowed else seen

    result = attend(
        q,
        k,
        v,
        scale=None if isinstance(scale, int | float) and scale == 0 else scale,
        softcap=softcap,
        biases=() if attention_bias is None else (spread(attention_bias, (batch, num_heads, length, length)),),
        visible=visible if causal else None,
        sink=sink if smooth_softmax or head_sink is not None else None,
    )
    return (merge_heads(result), k, v)[:outputs]


def in_heads(
    query: Tensor, key: Tensor | None, value: Tensor | None, heads: Index, key_heads: Index
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values as (batch, heads, positions, width); all are in `query` where the others are missing."""
    require(query.rank == 3, "queries have three axes")
    if key is not None and value is not None:
        return split_heads(query, heads), split_heads(key, key_heads), split_heads(value, key_heads)
    require(key is None and value is None, "keys or values are missing")
    batch, length, packed = query.shape
    require(packed % (heads + 2 * key_heads) == 0, "the heads do not divide the width")
    width = packed // (heads + 2 * key_heads)

    def part(first: Index, count: Index) -> Tensor:
        return tensor((batch, count, length, width), lambda b, n, s, h: query[b, s, (first + n) * width + h])

    return part(0, heads), part(heads, key_heads), part(heads + key_heads, key_heads)


def whole_prompt(seqlens_k: Any, total: Any, batch: Index, length: Index) -> None:
    """Every sequence ends with the queries; the lengths are given less 1, as a list or as one number for all."""
    if seqlens_k is None or total is None:
        raise Illegal("the lengths of the sequences are missing")
    if not isinstance(seqlens_k, int | Poly):
        require(batch == len(seqlens_k), "one length for each sequence")
    for last in [seqlens_k] if isinstance(seqlens_k, int | Poly) else seqlens_k:
        covered(length - 1 == last, "a sequence shorter than the queries")
    covered(length == total, "a sequence longer than the queries")


def turned(x: Tensor, cos_cache: Tensor | None, sin_cache: Tensor | None, interleaved: bool) -> Tensor:
    """Rotated by the caches' row of each position."""
    if cos_cache is None or sin_cache is None:
        raise Illegal("rotary embedding needs its caches")
    for cache in (cos_cache, sin_cache):
        require(cache.rank == 2, "a cache has two axes")
        require(cache.shape[0] >= x.shape[2], "a cache is shorter than the prompt")
    require(cos_cache.shape[1] == sin_cache.shape[1], "the caches differ in width")
    covered(cos_cache.shape[1] % 8 == 0, "caches of a width that onnxruntime refuses")
    return rotated(
        x,
        2 * cos_cache.shape[1],
        lambda _, s, pair: cos_cache[s, pair],
        lambda _, s, pair: sin_cache[s, pair],
        interleaved=interleaved,
    )
