# pyright: basic, reportMissingImports=false
"""Small networks written by hand in torch, each block in several of the ways in which people write it.

They are exported by spellings.py, whose flavours are `eager` and `sdpa`: here the first spells attention out, the
second calls torch's own function; where there is no attention the second spells the same in other words. Where a batch
is one with another axis, there are two sequences: of one alone nobody could tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LENGTH, WIDTH, HEADS, INNER = 22, 48, 4, 80
Network = tuple[nn.Module, tuple[Tensor, ...]]
HANDWRITTEN: dict[str, Callable[[str], Network]] = {}


def network(build: Callable[[str], Network]) -> Callable[[str], Network]:
    HANDWRITTEN[build.__name__] = build
    return build


def sequence(length: int = LENGTH, batch: int = 1) -> Tensor:
    return torch.randn(batch, length, WIDTH)


class Of(nn.Module):
    """A function and the modules it uses."""

    def __init__(self, function: Callable[..., Tensor], **modules: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.parts = nn.ModuleDict(modules)

    def forward(self, *values: Tensor) -> Tensor:
        return self.function(self.parts, *values)


def linears(*names: str, inner: int = WIDTH, bias: bool = True) -> dict[str, nn.Module]:
    return {name: nn.Linear(WIDTH, inner, bias=bias) for name in names}


class Held(nn.Module):
    """Numbers that are no weights."""

    def __init__(self, numbers: Tensor) -> None:
        super().__init__()
        self.register_buffer("numbers", numbers)

    def forward(self) -> Tensor:
        return self.numbers


def split(x: Tensor, heads: int = HEADS) -> Tensor:
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def merge(x: Tensor) -> Tensor:
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


# activations


def gelu_of_erf(x: Tensor) -> Tensor:
    return x * 0.5 * (1.0 + torch.erf(x * 0.7071067811865476))


def gelu_divided(x: Tensor) -> Tensor:
    return 0.5 * x * (1.0 + torch.erf(x / math.sqrt(2.0)))


def gelu_of_tanh(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu_of_products(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(x * 0.7978845608 * (1 + 0.044715 * x * x)))


def quick_gelu(x: Tensor) -> Tensor:
    return x * torch.sigmoid(1.702 * x)


def silu_of_exp(x: Tensor) -> Tensor:
    return x / (1 + torch.exp(-x))


def mish(x: Tensor) -> Tensor:
    return x * torch.tanh(F.softplus(x))


def hard_swish(x: Tensor) -> Tensor:
    return x * F.relu6(x + 3) / 6


@network
def gelus(flavour: str) -> Network:
    first = [gelu_of_erf, gelu_of_tanh, quick_gelu, mish]
    second = [gelu_divided, gelu_of_products, silu_of_exp, hard_swish]
    used = first if flavour == "eager" else second

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        for k, bend in enumerate(used):
            x = m[f"l{k}"](bend(x))
        return x

    return Of(run, **linears("l0", "l1", "l2", "l3")), (sequence(),)


@network
def gates(flavour: str) -> Network:
    """GEGLU and SwiGLU; one product cut in two, or two products."""

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        a, b = m["both"](x).chunk(2, dim=-1)
        x = m["down"](a * (F.gelu(b) if flavour == "eager" else gelu_of_erf(b)))
        bent = F.silu(m["gate"](x)) if flavour == "eager" else m["gate"](x) * torch.sigmoid(m["gate"](x))
        x = m["last"](bent * m["up"](x))
        return F.glu(m["both"](x), dim=-1)

    return Of(
        run, both=nn.Linear(WIDTH, 2 * INNER), down=nn.Linear(INNER, WIDTH), **linears("gate", "up", inner=INNER),
        last=nn.Linear(INNER, WIDTH),
    ), (sequence(),)  # fmt: skip


# normalizations


class Scaled(nn.Module):
    def __init__(self, function: Callable[[Tensor, Tensor, Tensor], Tensor], *shape: int) -> None:
        super().__init__()
        self.function = function
        self.weight, self.bias = nn.Parameter(torch.rand(shape) + 0.5), nn.Parameter(torch.randn(shape))

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, self.weight, self.bias)


def scaled(x: Tensor, w: Tensor, _: Tensor) -> Tensor:
    return x * w


def rms_of_rsqrt(x: Tensor, w: Tensor, _: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def rms_divided(x: Tensor, w: Tensor, _: Tensor) -> Tensor:
    return w * (x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6))


def rms_of_power(x: Tensor, w: Tensor, _: Tensor) -> Tensor:
    return w * (x * torch.pow(torch.mean(x**2, dim=-1, keepdim=True) + 1e-5, -0.5))


def rms_plus_one(x: Tensor, w: Tensor, _: Tensor) -> Tensor:
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)) * (1.0 + w)


def layer_of_moments(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    mean = x.mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt((x * x).mean(-1, keepdim=True) - mean * mean + 1e-5) * w + b


def layer_of_variance(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return w * (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5) + b


def layer_of_rsqrt(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + 1e-5) * w + b


@network
def rms_norms(flavour: str) -> Network:
    used = [rms_of_rsqrt, rms_divided] if flavour == "eager" else [rms_of_power, rms_plus_one]

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        return m["l1"](m["n1"](x + m["l0"](m["n0"](x))))

    return Of(run, **linears("l0", "l1"), n0=Scaled(used[0], WIDTH), n1=Scaled(used[1], WIDTH)), (sequence(),)


@network
def layer_norms(flavour: str) -> Network:
    used = [layer_of_rsqrt, layer_of_moments] if flavour == "eager" else [layer_of_variance, layer_of_variance]

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        return m["l1"](m["n1"](x + m["l0"](m["n0"](x))))

    return Of(run, **linears("l0", "l1"), n0=Scaled(used[0], WIDTH), n1=Scaled(used[1], WIDTH)), (sequence(),)


def grouped(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    n, c, h, k = x.shape
    g = x.view(n, 4, -1)
    g = (g - g.mean(-1, keepdim=True)) / torch.sqrt(g.var(-1, keepdim=True, unbiased=False) + 1e-5)
    return g.view(n, c, h, k) * w.view(1, c, 1, 1) + b.view(1, c, 1, 1)


def each_alone(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    mean = x.mean((2, 3), keepdim=True)
    variance = (x - mean).pow(2).mean((2, 3), keepdim=True)
    return (x - mean) * torch.rsqrt(variance + 1e-5) * w[:, None, None] + b[:, None, None]


def channels_first(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    mean = x.mean(1, keepdim=True)
    variance = (x - mean).pow(2).mean(1, keepdim=True)
    return w[:, None, None] * ((x - mean) / torch.sqrt(variance + 1e-6)) + b[:, None, None]


@network
def image_norms(flavour: str) -> Network:
    """GroupNorm, InstanceNorm and a norm over channels."""
    if flavour == "eager":
        norms = {"g": Scaled(grouped, 12), "i": Scaled(each_alone, 12), "c": Scaled(channels_first, 12)}
    else:
        norms = {"g": nn.GroupNorm(4, 12), "i": nn.InstanceNorm2d(12, affine=True), "c": Scaled(channels_first, 12)}

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        x = F.relu(m["g"](m["c0"](x)))
        return m["c"](m["c2"](F.relu(m["i"](m["c1"](x)))))

    convolutions = {"c0": nn.Conv2d(3, 12, 3), "c1": nn.Conv2d(12, 12, 3), "c2": nn.Conv2d(12, 12, 1)}
    return Of(run, **convolutions, **norms), (torch.randn(1, 3, 18, 14),)


def shuffled(x: Tensor, groups: int = 3) -> Tensor:
    n, c, h, w = x.shape
    return x.view(n, groups, c // groups, h, w).transpose(1, 2).reshape(n, c, h, w)


@network
def image_blocks(flavour: str) -> Network:
    """ConvNeXt's block with LayerScale, squeeze-excite, channel shuffle."""

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        x = m["stem"](x)
        y = m["norm"](m["deep"](x).permute(0, 2, 3, 1))
        bent = F.gelu(m["up"](y)) if flavour == "eager" else gelu_of_erf(m["up"](y))
        x = x + m["scale"](m["down"](bent)).permute(0, 3, 1, 2)
        gate = x.mean((2, 3), keepdim=True) if flavour == "eager" else F.adaptive_avg_pool2d(x, 1)
        gate = F.hardsigmoid(m["widen"](F.silu(m["reduce"](gate))))
        return shuffled(x * gate)

    return Of(
        run, stem=nn.Conv2d(3, 12, 3), deep=nn.Conv2d(12, 12, 7, padding=3, groups=12), norm=nn.LayerNorm(12, 1e-6),
        up=nn.Linear(12, 32), down=nn.Linear(32, 12), reduce=nn.Conv2d(12, 4, 1), widen=nn.Conv2d(4, 12, 1),
        scale=Scaled(scaled, 12),
    ), (torch.randn(1, 3, 18, 14),)  # fmt: skip


# attentions


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
