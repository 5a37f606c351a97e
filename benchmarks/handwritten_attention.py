# pyright: basic, reportMissingImports=false
"""Attentions written by hand in torch, in several of the ways in which people write them."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from handwriting import HEADS, LENGTH, WIDTH, Held, Network, Of, linears, network, sequence
from handwritten import Scaled, rms_of_rsqrt, scaled
from torch import Tensor, nn


def split(x: Tensor, heads: int = HEADS) -> Tensor:
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def merge(x: Tensor) -> Tensor:
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


def attend(q: Tensor, k: Tensor, v: Tensor, flavour: str, bias: Tensor | None = None) -> Tensor:
    if flavour == "sdpa":
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return F.softmax(scores if bias is None else scores + bias, dim=-1) @ v


@network
def cross_attention(flavour: str) -> Network:
    """Keys of another sequence, some of them hidden, post-norm."""

    def run(m: nn.ModuleDict, x: Tensor, memory: Tensor, hidden: Tensor) -> Tensor:
        bias = torch.zeros(hidden.shape, dtype=x.dtype).masked_fill(hidden, float("-inf"))[:, None, None, :]
        a = attend(split(m["q"](x)), split(m["k"](memory)), split(m["v"](memory)), flavour, bias)
        return m["norm"](x + m["o"](merge(a)))

    hidden = torch.arange(LENGTH + 5)[None] >= LENGTH
    return Of(run, **linears("q", "k", "v", "o"), norm=nn.LayerNorm(WIDTH)), (sequence(), sequence(LENGTH + 5), hidden)


@network
def hidden_scores(flavour: str) -> Network:
    """Scores that are hidden are set, not added to: as the annotated transformer has it."""

    def run(m: nn.ModuleDict, x: Tensor, seen: Tensor) -> Tensor:
        q, k, v = split(m["q"](x)), split(m["k"](x)), split(m["v"](x))
        if flavour == "sdpa":
            a = F.scaled_dot_product_attention(q, k, v, attn_mask=seen[:, None])
        else:
            scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).masked_fill(~seen[:, None], float("-inf"))
            a = scores.softmax(-1) @ v
        return x + m["o"](merge(a))

    seen = torch.ones(1, LENGTH, LENGTH, dtype=torch.bool).tril()
    return Of(run, **linears("q", "k", "v", "o")), (sequence(), seen)


@network
def alibi(flavour: str) -> Network:
    """A bias that grows with the distance, other in each head; pre-norm."""
    place = torch.arange(LENGTH)
    slopes = torch.tensor([2.0 ** (-2 * (k + 1)) for k in range(HEADS)])
    bias = -slopes[:, None, None] * (place[:, None] - place[None]).abs()

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        q, k, v = m["qkv"](m["norm"](x)).chunk(3, dim=-1)
        return x + m["o"](merge(attend(split(q), split(k), split(v), flavour, m["bias"]())))

    return Of(run, qkv=nn.Linear(WIDTH, 3 * WIDTH), norm=nn.LayerNorm(WIDTH), bias=Held(bias), **linears("o")), (
        sequence(),
    )


@network
def multi_query(flavour: str) -> Network:
    """All heads of the queries read one head of keys and values."""
    size = WIDTH // HEADS

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        q, k, v = split(m["q"](x)), split(m["k"](x), 1), split(m["v"](x), 1)
        if flavour == "sdpa":
            k, v = k.expand(-1, HEADS, -1, -1), v.expand(-1, HEADS, -1, -1)
        return x + m["o"](merge(attend(q, k, v, flavour)))

    return Of(run, **linears("q", "o"), k=nn.Linear(WIDTH, size), v=nn.Linear(WIDTH, size)), (sequence(),)


class Table(nn.Module):
    """A bias for each head and each distance."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(2 * LENGTH - 1, HEADS))
        place = torch.arange(LENGTH)
        self.register_buffer("which", place[:, None] - place[None] + LENGTH - 1)

    def forward(self) -> Tensor:
        return self.table[self.which.view(-1)].view(LENGTH, LENGTH, -1).permute(2, 0, 1).contiguous().unsqueeze(0)


@network
def relative(flavour: str) -> Network:
    """BEiT's: a bias by distance; queries and values have biases, keys none; LayerScale."""

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        y = m["norm"](x)
        q, k, v = split(m["q"](y)), split(m["k"](y)), split(m["v"](y))
        if flavour == "sdpa":
            a = attend(q, k, v, flavour, m["table"]())
        else:
            a = ((q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1) + m["table"]()).softmax(-1) @ v
        return x + m["scale"](m["o"](merge(a)))

    return Of(
        run, **linears("q", "v", "o"), k=nn.Linear(WIDTH, WIDTH, bias=False), norm=nn.LayerNorm(WIDTH), table=Table(),
        scale=Scaled(scaled, WIDTH),
    ), (sequence(),)  # fmt: skip


@network
def einsums(flavour: str) -> Network:
    """Heads are never moved; with the second flavour neither is the batch."""

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        q, k, v = (m[name](x).view(1, LENGTH, HEADS, -1) for name in "qkv")
        if flavour == "eager":
            scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
            a = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v)
        else:
            scores = torch.einsum("qhd,khd->hqk", q[0] * q.shape[-1] ** -0.5, k[0])
            a = torch.einsum("hqk,khd->qhd", scores.softmax(-1), v[0])
        return x + m["o"](a.reshape(1, LENGTH, WIDTH))

    return Of(run, **linears("q", "k", "v", "o")), (sequence(),)


@network
def merged_batch(flavour: str) -> Network:
    """Batch and heads are one axis, scores by bmm, as fairseq has it; the second flavour counts the sequence first."""

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        size = WIDTH // HEADS
        y = x if flavour == "eager" else x.transpose(0, 1)
        n = y.shape[1]
        batch, length = (y.shape[0], n) if flavour == "eager" else (n, y.shape[0])
        q, k, v = m["q"](y) * size**-0.5, m["k"](y), m["v"](y)
        if flavour == "eager":
            q, k, v = (split(t).reshape(batch * HEADS, length, size) for t in (q, k, v))
        else:
            q, k, v = (t.contiguous().view(length, batch * HEADS, size).transpose(0, 1) for t in (q, k, v))
        a = torch.bmm(F.softmax(torch.bmm(q, k.transpose(1, 2)), dim=-1), v)
        if flavour == "eager":
            a = merge(a.view(batch, HEADS, length, size))
        else:
            a = a.transpose(0, 1).contiguous().view(length, batch, WIDTH).transpose(0, 1)
        return x + m["o"](a)

    return Of(run, **linears("q", "k", "v", "o")), (sequence(batch=2),)


def turned_pairs(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack((even * cosines - odd * sines, even * sines + odd * cosines), dim=-1).flatten(-2)


def turned_halves(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cosines - b * sines, b * cosines + a * sines), dim=-1)


@network
def rotations(flavour: str) -> Network:
    """Queries and keys turned by pairs (GPT-J) or by halves in one line each, normalized before; causal."""
    size = WIDTH // HEADS
    angles = torch.arange(LENGTH)[:, None] / 10_000 ** (torch.arange(0, size, 2) / size)
    turned = turned_pairs if flavour == "eager" else turned_halves
    bias = torch.full((LENGTH, LENGTH), float("-inf")).triu(1)

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        q, k, v = m["norm"](split(m["q"](x))), m["norm"](split(m["k"](x))), split(m["v"](x))
        q, k = (turned(t, m["cosines"](), m["sines"]()) for t in (q, k))
        return x + m["o"](merge(attend(q, k, v, flavour, m["bias"]())))

    held = {"cosines": Held(angles.cos()), "sines": Held(angles.sin()), "bias": Held(bias)}
    return Of(run, **linears("q", "k", "v", "o"), norm=Scaled(rms_of_rsqrt, size), **held), (sequence(),)


@network
def torch_attention(flavour: str) -> Network:
    """torch's module between two sequences, the sequence first; with the second flavour some keys are hidden."""
    torch.backends.mha.set_fastpath_enabled(False)

    def run(m: nn.ModuleDict, x: Tensor, memory: Tensor, *hidden: Tensor) -> Tensor:
        given = {"key_padding_mask": hidden[0]} if hidden else {}
        return x + m["attention"](x, memory, memory, need_weights=False, **given)[0]

    x, memory = torch.randn(LENGTH, 2, WIDTH), torch.randn(LENGTH + 5, 2, WIDTH)
    hidden = (torch.arange(LENGTH + 5).expand(2, -1) >= LENGTH,) if flavour == "sdpa" else ()
    return Of(run, attention=nn.MultiheadAttention(WIDTH, HEADS)), (x, memory, *hidden)
