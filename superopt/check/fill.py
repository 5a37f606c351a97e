"""Values for one input: a style of numbers inside a domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from superopt.check.domains import Domain
from superopt.ir.tensor import Array, numpy_dtype
from superopt.ir.types import DType

Reals: TypeAlias = Literal["normal", "unit", "zeros", "ones", "large", "tiny", "mixed", "nan", "inf"]
Wholes: TypeAlias = Literal["random", "low", "high"]
Flags: TypeAlias = Literal["ones", "random", "prefix", "rows", "zeros"]

WORDS = ("a", "the", "quick", "brown", "fox", "Zürich", "42", "")
_LARGE = {DType.FLOAT16: 64.0}  # its squares must still fit
_LARGE_ELSEWHERE = 1e3
_SPRINKLED = 0.2


@dataclass(frozen=True)
class Style:
    """How one input set is drawn: its floats, its integers, its masks."""

    text: str
    choices: str = ""
    """The text's second half, for models that have integers or masks."""
    reals: Reals = "normal"
    wholes: Wholes = "random"
    flags: Flags = "ones"


def fill(domain: Domain, dtype: DType, shape: tuple[int, ...], style: Style, turn: int, seed: list[int]) -> Array:
    """`turn` picks among the constants a scalar is compared with, so that each branch gets its turn."""
    rng = np.random.default_rng(seed)
    if domain.form == "text":
        return _text(domain, shape, style, rng)
    if domain.form == "reshape":
        return _target(shape, turn).astype(numpy_dtype(dtype))
    if domain.form == "steps":
        drawn = rng.choice(np.array(domain.picks, np.float64), shape)
        return np.asarray(drawn if style.wholes == "random" else np.ones(shape)).astype(numpy_dtype(dtype))
    if domain.form == "flag":
        return _flags(shape, style.flags, rng).astype(numpy_dtype(dtype))
    if domain.form == "real":
        complex_ = dtype in (DType.COMPLEX64, DType.COMPLEX128)
        drawn = _reals(domain, dtype, shape, style, rng)
        if complex_:
            drawn = drawn + 1j * _reals(domain, dtype, shape, style, rng)
        return np.asarray(drawn).astype(numpy_dtype(dtype))
    if domain.form == "parts":
        return _parts(int(domain.high), shape).astype(numpy_dtype(dtype))
    return _wholes(domain, shape, style, turn, rng).astype(numpy_dtype(dtype))


def _reals(domain: Domain, dtype: DType, shape: tuple[int, ...], style: Style, rng: np.random.Generator) -> Array:
    normal = rng.standard_normal(shape)
    match style.reals:
        case "zeros":
            drawn = np.zeros(shape)
        case "ones":
            drawn = np.ones(shape)
        case "unit":
            drawn = rng.random(shape)
        case "large":
            drawn = normal * _LARGE.get(dtype, _LARGE_ELSEWHERE)
        case "tiny":
            drawn = normal * 1e-6
        case "mixed":
            drawn = np.sign(normal) * 10.0 ** rng.uniform(-3, 1, shape) * (rng.random(shape) > _SPRINKLED)
        case "nan":
            drawn = np.where(rng.random(shape) < _SPRINKLED, np.nan, normal)
        case "inf":
            drawn = np.where(rng.random(shape) < _SPRINKLED, np.copysign(np.inf, normal), normal)
        case "normal":
            drawn = normal
    if np.isfinite(domain.high):
        return np.clip(np.abs(drawn), domain.low, domain.high)
    return np.abs(drawn) + domain.low if np.isfinite(domain.low) else drawn


def _wholes(domain: Domain, shape: tuple[int, ...], style: Style, turn: int, rng: np.random.Generator) -> Array:
    low, high = int(domain.low), int(domain.high)
    picks = np.array([p for p in domain.picks if not isinstance(p, str)], np.int64)
    if domain.form == "distinct":
        # i + j + … along the axes: no two equal on any line, as long as the range is wide enough
        steps = sum(np.ogrid[tuple(slice(n) for n in shape)]) if shape else 0
        return low + (np.asarray(steps) + int(rng.integers(high - low + 1))) % (high - low + 1)
    if domain.only_picks:
        one = np.full(shape, picks[turn % len(picks)])
        return one if one.size < 2 or style.wholes != "random" else rng.choice(picks, shape)
    if style.wholes != "random":
        return np.full(shape, low if style.wholes == "low" else high)
    start = max(low, 0) if domain.counts_back and turn % 2 == 0 else low
    drawn = np.asarray(rng.integers(start, high, shape, endpoint=True))
    if domain.form == "length":
        drawn.reshape(-1)[:1] = high
    elif picks.size:
        drawn = np.where(rng.random(shape) < _SPRINKLED, rng.choice(picks, shape), drawn)
    return drawn


def _flags(shape: tuple[int, ...], flags: Flags, rng: np.random.Generator) -> Array:
    if flags in ("ones", "zeros"):
        return np.full(shape, int(flags == "ones"))
    if flags in ("random", "rows") or not shape:
        drawn = np.asarray(rng.integers(0, 1, shape, endpoint=True))
        return drawn * (np.arange(shape[-2])[:, None] % 3 > 0) if flags == "rows" and len(shape) > 1 else drawn
    lengths = rng.integers(1, max(shape[-1], 1), (*shape[:-1], 1), endpoint=True)
    return (np.arange(shape[-1]) < lengths).astype(np.int64)


def _target(shape: tuple[int, ...], turn: int) -> Array:
    """A shape that any tensor can take: all in one axis."""
    target = np.ones(shape, np.int64)
    if target.size:
        target[0 if turn % 2 == 0 else -1] = -1
    return target


def _parts(whole: int, shape: tuple[int, ...]) -> Array:
    parts = np.full(shape, whole // max(np.prod(shape), 1), np.int64)
    parts.reshape(-1)[-1:] += whole - parts.sum()
    return parts


def _text(domain: Domain, shape: tuple[int, ...], style: Style, rng: np.random.Generator) -> Array:
    words = [str(p) for p in domain.picks] or list(WORDS)
    if style.wholes != "random":
        return np.full(shape, words[0 if style.wholes == "low" else -1], object)
    return np.asarray(rng.choice(np.array(words, object), shape), object)
