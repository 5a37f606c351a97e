# pyright: basic, reportMissingImports=false
"""Small networks written by hand in torch: activations, norms and blocks of images, each in several of the ways in
which people write it; attentions are in handwritten_attention.py.

They are exported by spellings.py, whose flavours are `eager` and `sdpa`: here the first spells attention out, the
second calls torch's own function; where there is no attention the second spells the same in other words. Where a batch
is one with another axis, there are two sequences: of one alone nobody could tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from handwriting import INNER, WIDTH, Network, Of, linears, network, sequence
from torch import Tensor, nn

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
