# pyright: basic, reportMissingImports=false
"""What networks written by hand in torch (handwritten.py, handwritten_attention.py) are made of."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import torch
from torch import Tensor, nn

LENGTH, WIDTH, HEADS, INNER = 22, 48, 4, 80
Network = tuple[nn.Module, tuple[Tensor, ...]]
_BUILDERS: list[Callable[[str], Network]] = []


def network(build: Callable[[str], Network]) -> Callable[[str], Network]:
    _BUILDERS.append(build)
    return build


def networks_of(*modules: ModuleType) -> dict[str, Callable[[str], Network]]:
    """Those that the modules define, by name, in their order."""
    names = [module.__name__ for module in modules]
    return {build.__name__: build for build in _BUILDERS if build.__module__ in names}


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
