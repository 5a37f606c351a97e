"""Attention: softmax of scaled products of queries and keys, times values, by heads; masked, causal, soft-capped."""

from collections.abc import Iterator, Mapping
from typing import Any

from specs._attention import attend, causal, merge_heads, split_heads, spread, unknown_scores
from superopt.ops.draws import pick, size
from superopt.ops.element import Element
from superopt.ops.formula import Illegal, Tensor, covered, require
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator
from superopt.ops.symbols import Symbols


def draw(rng: Any) -> Draw:
    key_heads, batch = size(rng, 1, 2), size(rng, 1, 2)
    heads = key_heads * size(rng, 1, 3)
    queries, keys, width, value_width = size(rng, 1, 4), size(rng, 1, 4), size(rng, 1, 4), size(rng, 1, 4)
    arguments: dict[str, Any] = {}
    if rng.random() < 0.5:
        shapes = [
            (batch, queries, heads * width),
            (batch, keys, key_heads * width),
            (batch, keys, key_heads * value_width),
        ]
        arguments |= {"q_num_heads": heads, "kv_num_heads": key_heads}
    else:
        shapes = [
            (batch, heads, queries, width),
            (batch, key_heads, keys, width),
            (batch, key_heads, keys, value_width),
        ]
    for name, value in (("is_causal", 1), ("scale", 0.4), ("softcap", 1.5)):
        if rng.random() < 0.4:
            arguments[name] = value
    if rng.random() < 0.4:
        return Draw(tuple(shapes), arguments)
    leading = pick(rng, (), (1,), (heads,), (1, 1), (batch, 1), (1, heads), (batch, heads))
    shapes.append((*leading, queries, keys))
    if rng.random() < 0.5:
        return Draw(tuple(shapes), arguments)
    booleans = (None, None, None, lambda rng, shape: rng.random(shape) < 0.6)
    return Draw(tuple(shapes), arguments, values=booleans, types={"attn_mask": "bool"})


def unknown(symbols: Symbols, ranks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    heads: dict[str, Any] = {}
    if ranks[0] == 3:
        heads = {name: symbols.positive(name) for name in ("q_num_heads", "kv_num_heads")}
    for softcap in ({}, {"softcap": symbols.real("softcap")}):
        yield from unknown_scores(symbols, "is_causal", {**heads, **softcap})


@operator("Attention", since=23, draw=draw, unknown=unknown)
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    nonpad_kv_seqlen: Tensor | None = None,
    *,
    is_causal: int = 0,
    kv_num_heads: Index | None = None,
    q_num_heads: Index | None = None,
    qk_matmul_output_mode: int = 0,
    scale: float | Element | None = None,
    softcap: float | Element = 0.0,
    softmax_precision: int | None = None,
    outputs: int = 1,
    types: Mapping[str, str],
) -> Tensor:
    """`softmax_precision` changes rounding alone, `qk_matmul_output_mode` an output that is not covered."""
    covered(past_key is None and past_value is None and nonpad_kv_seqlen is None, "a cache of keys and values")
    covered(outputs == 1, "the cache or the scores as outputs")
    covered(not isinstance(scale, int | float) or scale > 0, "a scale that is not positive")
    require(q.rank == k.rank == v.rank, "queries, keys and values differ in rank")
    require(q.rank in (3, 4), "queries have three or four axes")
    packed = q.rank == 3
    if packed:
        if q_num_heads is None or kv_num_heads is None:
            raise Illegal("three axes need the numbers of heads")
        q, k, v = split_heads(q, q_num_heads), split_heads(k, kv_num_heads), split_heads(v, kv_num_heads)
    mask = None if attn_mask is None else spread(attn_mask, (*q.shape[:3], k.shape[2]))
    truth = types.get("attn_mask") == "bool"
    result = attend(
        q,
        k,
        v,
        scale=scale,
        softcap=softcap,
        biases=() if mask is None or truth else (mask,),
        shown=mask if truth else None,
        visible=causal if is_causal else None,
    )
    return merge_heads(result) if packed else result
