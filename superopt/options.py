"""The options of `optimize`, defined once: the command line, the library, the service and the docs read this table."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from superopt.errors import BadOption

Target = Literal["auto", "cpu", "cuda"]
Accept = Literal["faster", "not-slower"]
Allow = Literal["contrib", "standard"]
Deploy = Literal["search", "fixed"]
MOST_THREADS = 1024
MOST_POINTS = 8
"""Combinations of sizes that one run measures."""

Sizes = tuple[tuple[int, float], ...]
"""Sizes of one dim, each with its weight."""


def option(default: Any, help: str, metavar: str = "") -> Any:
    """A field with its help text; every surface shows the same words."""
    metadata = {"help": help, "metavar": metavar}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Options:
    target: Target = option("auto", "device to measure on: cpu, cuda, or auto = cuda where it works")
    budget: float = option(
        60.0,
        "seconds for timing result and original, three times as many while a small gain is still open; searching and "
        "timing regions take as long",
        "SECONDS",
    )
    search_time: float = option(
        0.0, "seconds for searching, which needs cores and no device; 0 = as many as for timing", "SECONDS"
    )
    accept: Accept = option(
        "faster", "return the rewritten model when it is measurably faster, or already when it is not slower"
    )
    alpha: float = option(
        1.05, "how much worse than the best a candidate may be predicted and still be followed, as a factor", "A"
    )
    allow: Allow = option(
        "contrib", "operators of the result: onnxruntime's own (com.microsoft) too, or standard ONNX alone"
    )
    portable: bool = option(
        True, "where the result has operators of onnxruntime's own, find out what standard ONNX alone would have given"
    )
    options: Deploy = option(
        "search", "search for the session options that suit the result best, or keep those given here"
    )
    rules: tuple[Path, ...] = option((), "a file or folder of proved rules to use besides those that ship", "FILE")
    partial: bool = option(
        True, "try partially equivalent mutants: programs that are wrong in a part, which is mended and proved"
    )
    mine: float = option(
        0.0,
        "first recognize parts of the model by what they compute, in so many seconds; each new rule is proved",
        "SECONDS",
    )
    keep_rules: Path | None = option(None, "with --mine: write the rules that were found here, for --rules", "FILE")
    opset: int = option(0, "opset that the result may be raised to; 0 = the model's own", "N")
    candidates: int = option(400, "graphs that the search may look at for each region", "N")
    seed: int = option(0, "seed of every random choice", "N")
    shape: Mapping[str, tuple[int, ...]] = option(
        {}, "concrete shape of an input for checking and measuring; the returned model stays dynamic", "NAME=D0,D1,…"
    )
    dim: Mapping[str, Sizes] = option(
        {},
        "concrete sizes of a symbolic dim for checking and measuring; several are weighed together, and none may get "
        "slower by more than 2 %",
        "NAME=SIZE[:WEIGHT],…",
    )
    inputs: Path | None = option(
        None, "your own input arrays by input name (.npz), for checking and measuring", "DATA.npz"
    )
    threads: int = option(0, "CPU threads of the measured sessions; 0 = all cores", "N")
    costs: Path | None = option(
        None,
        "file of measured costs; what it holds is used instead of the clock, what it lacks is added unless it is an "
        "exported one; with --target cuda where there is no GPU, the result is predicted from it",
        "FILE",
    )
    device: str = option(
        "",
        "a device that the cost file tells of, by a part of its name: the result is predicted for it from what was "
        "recorded there, nothing is timed, and the report says so",
        "NAME",
    )
    growth: int = option(
        -1,
        "bytes that combined weights may add; -1 = 1 MiB, or 1 % by folding and as much again by rules",
        "BYTES",
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
        for name in ("search_time", "mine"):
            if not 0 <= getattr(self, name) < math.inf:
                raise BadOption(f"--{name.replace('_', '-')}: expected seconds, 0 or more, found {getattr(self, name)}")
        if self.keep_rules is not None and not self.mine:
            raise BadOption("--keep-rules: nothing is mined without --mine SECONDS")
        for name in ("threads", "memory_limit", "seed", "opset", "candidates"):
            if getattr(self, name) < 0:
                raise BadOption(f"--{name.replace('_', '-')}: expected 0 or more, found {getattr(self, name)}")
        if self.threads > MOST_THREADS:
            raise BadOption(f"--threads: expected at most {MOST_THREADS}, found {self.threads}")
        if not 1.0 <= self.alpha <= 10.0:
            raise BadOption(f"--alpha: expected a factor from 1 to 10, found {self.alpha}")
        _one_of("allow", self.allow, get_args(Allow))
        _one_of("options", self.options, get_args(Deploy))
        if self.device and self.costs is None:
            raise BadOption(f"--device {self.device}: names a device of a cost file; give the file with --costs")
        if self.growth < -1:
            raise BadOption(f"--growth: expected -1 or more, found {self.growth}")
        for name, dims in self.shape.items():
            if any(d < 0 for d in dims):
                raise BadOption(f"--shape {name}: sizes are 0 or more, found {list(dims)}")
        for name, sizes in self.dim.items():
            _refuse_sizes(name, sizes)
        points = math.prod(len(sizes) for sizes in self.dim.values())
        if points > MOST_POINTS:
            raise BadOption(f"--dim: {points} combinations of sizes, at most {MOST_POINTS} are measured")
        if points > 1 and self.inputs is not None:
            raise BadOption(
                "--dim: several sizes cannot be measured with --inputs, whose arrays have sizes of their own"
            )

    @classmethod
    def of(cls, **given: Any) -> Options:
        """Options by name, as the library takes them; an unknown name is an error that lists the known ones."""
        known = {f.name for f in dataclasses.fields(cls)}
        for name in given:
            if name not in known:
                raise BadOption(f"unknown option {name!r}; the options are {', '.join(sorted(known))}")
        if "dim" in given:
            given["dim"] = {name: sizes_of(name, value) for name, value in given["dim"].items()}
        return cls(**given)

    def as_json(self) -> dict[str, object]:
        return {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}


def from_json(data: Mapping[str, Any]) -> Options:
    """The inverse of `Options.as_json`."""
    values = dict(data)
    for name in ("inputs", "costs", "keep_rules"):
        values[name] = None if values.get(name) is None else Path(values[name])
    values["rules"] = tuple(Path(p) for p in values["rules"])
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


def parse_dim(text: str) -> tuple[str, Sizes]:
    """`batch=8`; `seq=64,128`; `seq=64:3,128:1` where the first counts three times as much."""
    name, equals, listed = text.rpartition("=")
    sizes: list[tuple[int, float]] = []
    for part in listed.split(","):
        size, colon, weight = part.partition(":")
        try:
            sizes.append((int(size), float(weight) if colon else 1.0))
        except ValueError:
            equals = ""
    if not equals or not name or any(size < 0 for size, _ in sizes):
        raise BadOption(f"--dim: expected NAME=SIZE or NAME=SIZE:WEIGHT,…, found {text!r}")
    return name, tuple(sizes)


def sizes_of(name: str, value: Any) -> Sizes:
    """What a caller of the library may give: a size, a list of sizes, a mapping of sizes to weights."""
    listed: Any = value.items() if isinstance(value, Mapping) else (value,) if isinstance(value, int) else value
    try:
        pairs = [(entry, 1.0) if isinstance(entry, int) else tuple(entry) for entry in listed]
        return tuple((operator.index(size), float(weight)) for size, weight in pairs)
    except (TypeError, ValueError):
        raise BadOption(f"--dim {name}: expected a size, sizes, or sizes with weights, found {value!r}") from None


def _refuse_sizes(name: str, sizes: Sizes) -> None:
    if not sizes or len({size for size, _ in sizes}) < len(sizes):
        raise BadOption(f"--dim {name}: expected different sizes, found {[size for size, _ in sizes]}")
    for size, weight in sizes:
        if size < 0:
            raise BadOption(f"--dim {name}: expected 0 or more, found {size}")
        if not math.isfinite(weight) or weight <= 0:
            raise BadOption(f"--dim {name}: expected a weight above 0 for {size}, found {weight}")


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise BadOption(f"--{name}: expected {' or '.join(allowed)}, found {value!r}")


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    return value
