"""RotaryEmbedding: pairs of each head's numbers turned by an angle that depends on the position."""

from collections.abc import Iterator
from typing import Any

from specs._attention import merge_heads, split_heads
from specs._rotary import Angle, rotated
from specs._table import entries, look_up, table_shape
from superopt.ops.draws import pick, size
from superopt.ops.formula import Illegal, Static, Tensor, require
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator
from superopt.ops.symbols import Symbols


def draw(rng: Any) -> Draw:
    batch, heads, length, half = size(rng, 1, 2), size(rng, 1, 3), size(rng, 1, 4), size(rng, 1, 3)
    width = 2 * half
    arguments: dict[str, Any] = {"interleaved": 1} if rng.random() < 0.5 else {}
    if rng.random() < 0.4:
        width += 2 * size(rng, 1, 2)
        arguments["rotary_embedding_dim"] = 2 * half
    x = (batch, heads, length, width)
    if rng.random() < 0.5:
        x = (batch, length, heads * width)
        arguments["num_heads"] = heads
    if rng.random() < 0.5:
        return Draw((x, (batch, length, half), (batch, length, half)), arguments)
    known = size(rng, length, 6)
    any_order = rng.integers(0, known, (batch, length)).tolist()
    arguments["position_ids"] = pick(rng, any_order, [list(range(length)) for _ in range(batch)])
    return Draw((x, (known, half), (known, half)), arguments)


def unknown(symbols: Symbols, ranks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    heads = {"num_heads": symbols.positive("num_heads")} if ranks[0] == 3 else {}
    for turned in ({}, {"rotary_embedding_dim": symbols.positive("rotary_embedding_dim")}):
        for interleaved in (0, 1):
            yield {**heads, **turned, "interleaved": interleaved}


def angle(cache: Tensor, positions: Static, batch: Index, length: Index) -> Angle:
    """A cache as a function of sequence, position and pair: by `positions` a row of a table, without them its own."""
    if positions is None:
        require(cache.rank == 3, "without position_ids a cache has three axes")
        require(cache.shape[0] == batch, "a cache differs in batch")
        require(cache.shape[1] == length, "a cache differs in length")
        return lambda b, s, pair: cache[b, s, pair]
    require(cache.rank == 2, "with position_ids a cache has two axes")
    sizes, rows = table_shape(positions), entries(positions)
    require(len(sizes) == 2, "position_ids has two axes")
    require(batch == sizes[0], "position_ids differ in batch")
    require(length == sizes[1], "position_ids differ in length")
    for row in rows:
        require(row >= 0, "a position before the cache")
        require(row < cache.shape[0], "a position beyond the cache")
    return lambda b, s, pair: look_up(sizes, rows, (b, s), lambda row: cache[row, pair])


@operator("RotaryEmbedding", since=23, elements="any", draw=draw, unknown=unknown)
def rotary_embedding(
    x: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    position_ids: Static = None,
    *,
    interleaved: int = 0,
    num_heads: Index | None = None,
    rotary_embedding_dim: Index = 0,
) -> Tensor:
    """A rotary_embedding_dim of 0 turns the whole head."""
    require(x.rank in (3, 4), "the input has three or four axes")
    packed = x.rank == 3
    if packed:
        if num_heads is None:
            raise Illegal("three axes need the number of heads")
        x = split_heads(x, num_heads)
    batch, _, length, width = x.shape
    turned = width if isinstance(rotary_embedding_dim, int) and rotary_embedding_dim == 0 else rotary_embedding_dim
    for cache in (cos_cache, sin_cache):
        require(2 * cache.shape[-1] == turned, "a cache has another width than half of what is turned")
    cos, sin = (angle(cache, position_ids, batch, length) for cache in (cos_cache, sin_cache))
    result = rotated(x, turned, cos, sin, interleaved=bool(interleaved))
    return merge_heads(result) if packed else result
