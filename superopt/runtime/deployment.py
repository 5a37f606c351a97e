"""How a model is run. A measured time belongs to a model *and* its deployment."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

from superopt.errors import BadOption
from superopt.runtime.cores import usable_cores

Target: TypeAlias = Literal["cpu", "cuda"]
Level: TypeAlias = Literal["all", "extended", "basic", "disable"]
Pairs: TypeAlias = "tuple[tuple[str, str], ...]"

PROVIDERS: dict[Target, str] = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
LEVELS: dict[Level, str] = {
    "all": "ORT_ENABLE_ALL",
    "extended": "ORT_ENABLE_EXTENDED",
    "basic": "ORT_ENABLE_BASIC",
    "disable": "ORT_DISABLE_ALL",
}
QUIET: Pairs = (("session.inter_op.allow_spinning", "0"), ("session.intra_op.allow_spinning", "0"))
"""Of every session: threads that wait for work do not burn the time of others."""


_DETERMINISTIC = "use_deterministic_compute"


@dataclass(frozen=True)
class Deployment:
    """Everything of a session that is not the model; order of options does not matter, they are kept sorted."""

    target: Target = "cpu"
    threads: int = field(default_factory=usable_cores)
    level: Level = "all"
    tf32: bool = True  # onnxruntime's own default; of no effect on the CPU
    deterministic: bool = True
    """Every run to the last bit as the one before. onnxruntime's default is not: threads add up as they come."""
    provider_options: Pairs = ()
    config: Pairs = ()
    free_dims: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        if self.target not in get_args(Target):
            raise BadOption(f"target: expected cpu or cuda, found {self.target!r}")
        if self.level not in get_args(Level):
            raise BadOption(f"level: expected one of {', '.join(get_args(Level))}, found {self.level!r}")
        if self.threads < 1:
            raise BadOption(f"threads: expected at least 1, found {self.threads}")
        if self.target == "cpu" and not self.deterministic:
            raise BadOption("sums in any order are for the target cuda, found them for cpu")
        if self.target == "cpu" and self.provider_options:
            names = ", ".join(name for name, _ in self.provider_options)
            raise BadOption(f"provider options are for the target cuda, found {names} for cpu")
        for what in ("provider_options", "config", "free_dims"):
            object.__setattr__(self, what, _sorted(what, getattr(self, what)))

    @property
    def provider_settings(self) -> dict[str, str]:
        """What the CUDA provider is told."""
        return {"use_tf32": str(int(self.tf32)), **dict(self.provider_options)}

    @property
    def without_tf32(self) -> Deployment:
        """The same, computing as the model is written: what results are compared with."""
        options = tuple((name, value) for name, value in self.provider_options if name != "use_tf32")
        return replace(self, tf32=False, provider_options=options)

    @property
    def device_id(self) -> int:
        return int(self.provider_settings.get("device_id", "0"))

    @property
    def captures_cuda_graph(self) -> bool:
        return self.target == "cuda" and self.provider_settings.get("enable_cuda_graph") == "1"

    @property
    def tries_kernels(self) -> bool:
        """Whether a first run may choose kernels by timing them, which wants the device to itself."""
        by_rule = self.provider_settings.get("cudnn_conv_algo_search") in ("HEURISTIC", "DEFAULT")
        return self.target == "cuda" and (not by_rule or ("ep.cuda.enable_gemm_auto_tune", "1") in self.config)

    @property
    def text(self) -> str:
        """One canonical line: equal for deployments that behave alike."""
        words = [self.target, f"threads={self.threads}", f"level={self.level}"]
        if self.target == "cuda":
            words += [f"{name}={value}" for name, value in sorted(self.provider_settings.items())]
        words += [] if self.deterministic else [f"{_DETERMINISTIC}=0"]
        words += [f"{name}={value}" for name, value in self.config]
        words += [f"dim:{name}={size}" for name, size in self.free_dims]
        return " ".join(words)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


def parse_deployment(text: str) -> Deployment:
    """The inverse of `Deployment.text`. Keys of a session's configuration have a dot, options of a provider none."""
    target, *words = text.split(" ")
    pairs = [(name, value) for name, equals, value in (word.partition("=") for word in words) if equals]
    given = dict(pairs)
    threads, level = given.pop("threads", ""), given.pop("level", "")
    try:
        found = Deployment(
            target if target == "cuda" else "cpu",
            threads=int(threads),
            level=next(known for known in get_args(Level) if known == level),
            tf32=given.pop("use_tf32", "1") == "1",
            deterministic=given.pop(_DETERMINISTIC, "1") == "1",
            provider_options=tuple((k, v) for k, v in given.items() if "." not in k and not k.startswith("dim:")),
            config=tuple((k, v) for k, v in given.items() if "." in k and not k.startswith("dim:")),
            free_dims=tuple((k.removeprefix("dim:"), int(v)) for k, v in given.items() if k.startswith("dim:")),
        )
    except (ValueError, StopIteration, BadOption):
        raise BadOption(f"expected a deployment, found {text[:200]!r}") from None
    if found.text != text:
        raise BadOption(f"expected a deployment, found {text[:200]!r}")
    return found


def _sorted(what: str, pairs: Iterable[tuple[str, object]]) -> tuple[tuple[str, object], ...]:
    ordered = tuple(sorted(pairs, key=lambda pair: pair[0]))
    for (name, _), (following, _) in itertools.pairwise(ordered):
        if name == following:
            raise BadOption(f"{what}: {name} is given twice")
    return ordered
