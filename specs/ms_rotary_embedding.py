"""com.microsoft RotaryEmbedding: pairs of each head's numbers turned by the row of a cache for their position."""

from collections.abc import Iterator
from typing import Any

from specs._attention import merge_heads, split_heads
from specs._rotary import Angle, rotated
from specs._table import entries, look_up, table_shape
from superopt.ops.draws import pick, size
from superopt.ops.element import Element
from superopt.ops.formula import Illegal, Static, Tensor, covered, require
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator
from superopt.ops.symbols import Symbols


def draw(rng: Any) -> Draw:
    batch, heads, length, half = size(rng, 1, 2), size(rng, 1, 3), size(rng, 1, 4), size(rng, 1, 3)
    width, known = 2 * half, size(rng, length, 6)
    arguments: dict[str, Any] = {"interleaved": 1} if rng.random() < 0.5 else {}
    if rng.random() < 0.4:
        width += 2 * size(rng, 1, 2)
        arguments |= {"rotary_embedding_dim": 2 * half, "num_heads": heads}
    x = pick(rng, (batch, heads, length, width), (batch, length, heads * width))
    any_order = rng.integers(0, known, (batch, length)).tolist()
    arguments["position_ids"] = pick(rng, any_order, [int(rng.integers(0, known - length + 1))])
    return Draw((x, (known, half), (known, half)), arguments)


def unknown(symbols: Symbols, ranks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    first = {"position_ids": [symbols.natural("position")]}
    part = {"rotary_embedding_dim": symbols.positive("rotary_embedding_dim"), "num_heads": symbols.positive("heads")}
    for turned in ({}, part):
        for interleaved in (0, 1):
            yield {**first, **turned, "interleaved": interleaved}


@operator("RotaryEmbedding", domain="com.microsoft", since=1, draw=draw, unknown=unknown)
def ms_rotary_embedding(
    x: Tensor,
    position_ids: Static = None,
    cos_cache: Tensor | None = None,
    sin_cache: Tensor | None = None,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: Index = 0,
    rotary_embedding_dim: Index = 0,
    scale: float | Element = 1.0,
) -> Tensor:
    """One position is that of the first row; a rotary_embedding_dim of 0 turns the whole head."""
    covered(not is_packed_batching, "sequences packed into one")
    covered(not isinstance(scale, Element) and scale == 1, "a scale")
    if cos_cache is None or sin_cache is None or position_ids is None:
        raise Illegal("positions or caches are missing")
    for cache in (cos_cache, sin_cache):
        require(cache.rank == 2, "a cache has two axes")
        require(cache.shape[1] == cos_cache.shape[1], "the caches differ in width")
    require(x.rank in (3, 4), "the input has three or four axes")
    turned, packed = 2 * cos_cache.shape[1], x.rank == 3
    whole = isinstance(rotary_embedding_dim, int) and rotary_embedding_dim == 0
    if not whole:
        require(rotary_embedding_dim == turned, "a cache has another width than half of what is turned")
        require(num_heads >= 1, "the number of heads is missing")
    if packed:
        if whole:
            require(x.shape[2] % turned == 0, "the caches do not divide the width")
        x = split_heads(x, x.shape[2] // turned if whole else num_heads)
    elif whole:
        require(x.shape[3] == turned, "a cache has another width than half of a head")
    else:
        require(x.shape[1] == num_heads, "another number of heads")
    angles = [_angle(cache, position_ids, x.shape[0], x.shape[2]) for cache in (cos_cache, sin_cache)]
    result = rotated(x, turned, *angles, interleaved=bool(interleaved))
    return merge_heads(result) if packed else result


def _angle(cache: Tensor, positions: Static, batch: Index, length: Index) -> Angle:
    """A cache as a function of sequence, position and pair."""
    sizes, rows = table_shape(positions), entries(positions)
    require(length <= cache.shape[0], "a cache is shorter than the sequence")
    for row in rows:
        require(row >= 0, "a position before the cache")
    if len(sizes) == 1:
        require(len(rows) == 1, "one position, or one for each number of each sequence")
        require(rows[0] + length <= cache.shape[0], "a position beyond the cache")
        return lambda _, s, pair: cache[rows[0] + s, pair]
    require(len(sizes) == 2, "one position, or one for each number of each sequence")
    require(batch == sizes[0], "position_ids differ in batch")
    require(length == sizes[1], "position_ids differ in length")
    for row in rows:
        require(row < cache.shape[0], "a position beyond the cache")
    return lambda b, s, pair: look_up(sizes, rows, (b, s), lambda row: cache[row, pair])
