"""The options of `optimize`, defined once: the command line, the library, the service and the docs read this table."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from superopt.errors import BadOption

Target = Literal["auto", "cpu", "cuda"]
Accept = Literal["faster", "not-slower"]
MOST_THREADS = 1024


def option(default: Any, help: str, metavar: str = "") -> Any:
    """A field with its help text; every surface shows the same words."""
    metadata = {"help": help, "metavar": metavar}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Options:
    target: Target = option("auto", "device to measure on: cpu, cuda, or auto = cuda where it works")
    budget: float = option(60.0, "seconds for measuring, at most", "SECONDS")
    accept: Accept = option(
        "faster", "return the rewritten model when it is measurably faster, or already when it is not slower"
    )
    seed: int = option(0, "seed of every random choice", "N")
    shape: Mapping[str, tuple[int, ...]] = option(
        {}, "concrete shape of an input for checking and measuring; the returned model stays dynamic", "NAME=D0,D1,…"
    )
    dim: Mapping[str, int] = option({}, "concrete size of a symbolic dim for checking and measuring", "NAME=SIZE")
    inputs: Path | None = option(
        None, "your own input arrays by input name (.npz), for checking and measuring", "DATA.npz"
    )
    threads: int = option(0, "CPU threads of the measured sessions; 0 = all cores", "N")
    costs: Path | None = option(
        None, "file of measured costs; what it holds is used instead of the clock, what it lacks is added", "FILE"
    )
    growth: int = option(
        -1, "bytes that folded constants may add to the model; -1 = 1 MiB or 1 %, whichever is more", "BYTES"
    )
    time_limit: float = option(3600.0, "seconds for the whole job, after which the original is kept", "SECONDS")
    memory_limit: int = option(
        0, "MiB the job may hold in memory before it is stopped; 0 = nine tenths of what is free", "MIB"
    )

    def __post_init__(self) -> None:
        _one_of("target", self.target, get_args(Target))
        _one_of("accept", self.accept, get_args(Accept))
        for name in ("budget", "time_limit"):
            value = getattr(self, name)
            if not math.isfinite(value) or value <= 0:
                raise BadOption(f"--{name.replace('_', '-')}: expected seconds above 0, found {value}")
        for name in ("threads", "memory_limit", "seed"):
            if getattr(self, name) < 0:
                raise BadOption(f"--{name.replace('_', '-')}: expected 0 or more, found {getattr(self, name)}")
        if self.threads > MOST_THREADS:
            raise BadOption(f"--threads: expected at most {MOST_THREADS}, found {self.threads}")
        if self.growth < -1:
            raise BadOption(f"--growth: expected -1 or more, found {self.growth}")
        for name, dims in self.shape.items():
            if any(d < 0 for d in dims):
                raise BadOption(f"--shape {name}: sizes are 0 or more, found {list(dims)}")
        for name, size in self.dim.items():
            if size < 0:
                raise BadOption(f"--dim {name}: expected 0 or more, found {size}")

    @classmethod
    def of(cls, **given: Any) -> Options:
        """Options by name, as the library takes them; an unknown name is an error that lists the known ones."""
        known = {f.name for f in dataclasses.fields(cls)}
        for name in given:
            if name not in known:
                raise BadOption(f"unknown option {name!r}; the options are {', '.join(sorted(known))}")
        return cls(**given)

    def as_json(self) -> dict[str, object]:
        return {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}


def from_json(data: Mapping[str, Any]) -> Options:
    """The inverse of `Options.as_json`."""
    values = dict(data)
    for name in ("inputs", "costs"):
        values[name] = None if values.get(name) is None else Path(values[name])
    values["shape"] = {k: tuple(v) for k, v in values["shape"].items()}
    return Options.of(**values)


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """`x=1,3,224,224`; `x=` is a scalar."""
    name, equals, dims = text.rpartition("=")
    try:
        sizes = tuple(int(d) for d in dims.split(",")) if dims else ()
    except ValueError:
        equals = ""
        sizes = ()
    if not equals or not name:
        raise BadOption(f"--shape: expected NAME=D0,D1,…, found {text!r}")
    return name, sizes


def parse_dim(text: str) -> tuple[str, int]:
    """`batch=8`."""
    name, equals, size = text.rpartition("=")
    if not equals or not name or not size.isdigit():
        raise BadOption(f"--dim: expected NAME=SIZE, found {text!r}")
    return name, int(size)


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise BadOption(f"--{name}: expected {' or '.join(allowed)}, found {value!r}")


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(k): list(v) if isinstance(v, tuple) else v for k, v in value.items()}
    return value
