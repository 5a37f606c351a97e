# pyright: basic
"""Which models a benchmark runs on, and what each is measured with."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import onnx

from benchmarks import built, fetch

EXPORTED = Path(__file__).with_name("exported.toml")

Group = Literal["real", "exported", "built"]

# What onnxruntime.transformers.optimizer is told of those that are built.
BUILT_TRANSFORMERS: dict[str, dict[str, str | int]] = {
    "lora-transformer": {"model_type": "bert", "num_heads": 8, "hidden_size": 512},
    "linear-attention": {"model_type": "bert", "num_heads": 4, "hidden_size": 256},
    "gelu-spelled": {"model_type": "bert"},
    "silu-spelled": {"model_type": "bert"},
}


@dataclass(frozen=True)
class Subject:
    """A model file and the sizes to measure it with."""

    name: str
    path: Path
    shapes: dict[str, list[int]] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)
    group: Group = "real"
    transformer: dict[str, str | int] = field(default_factory=dict)
    hand: Path | None = None  # the same network merged by hand


def fetched(cache: Path = fetch.CACHE) -> Iterator[Subject]:
    """The real models, as far as fetch.py has fetched them."""
    for source in fetch.read_catalogue():
        if fetch.is_cached(source, cache):
            yield Subject(source.name, cache / source.file, source.shapes, source.values)
        else:
            print(f"{source.name}: not fetched, left out (make models)", file=sys.stderr)


def exported(folders: Sequence[Path], catalogue: Path = EXPORTED) -> Iterator[Subject]:
    """The exported networks that the catalogue lists, as far as they are in one of the folders."""
    for entry in tomllib.loads(catalogue.read_text())["model"]:
        name = entry["name"]
        found = [path for folder in folders if (path := folder / f"{name}.onnx").is_file()]
        if found:
            transformer = entry.get("transformer", {})
            yield Subject(name, found[0], entry.get("shapes", {}), {}, "exported", transformer)
        else:
            print(f"{name}: not in a folder named with --models, left out", file=sys.stderr)


def in_folder(folder: Path) -> Iterator[Subject]:
    """Every model in a folder."""
    for path in sorted(folder.rglob("*.onnx")):
        yield Subject(str(path.relative_to(folder).with_suffix("")), path, group="exported")


def networks_built(folder: Path, pattern: str = "") -> Iterator[Subject]:
    """Those of built.py whose name matches, written to the folder: they are made in less time than they are trusted."""
    names = [name for name in built.MODELS if re.search(pattern, name)]
    built.write(folder, names)
    for name in names:
        hand = folder / f"{name}{built.HAND}"
        transformer = BUILT_TRANSFORMERS.get(name, {})
        yield Subject(name, folder / f"{name}.onnx", {}, {}, "built", transformer, hand if hand.exists() else None)


def arguments(subject: Subject, folder: Path) -> list[str]:
    """The sizes and inputs of a subject, as superopt's commands take them; the folder holds what must be a file."""
    words: list[str] = []
    for name, shape in subject.shapes.items():
        words += ["--shape", f"{name}={','.join(map(str, shape))}"]
    if subject.values:
        write_inputs(subject, folder / "inputs.npz")
        words += ["--inputs", str(folder / "inputs.npz")]
    return words


def write_inputs(subject: Subject, path: Path) -> None:
    """Inputs for a model that random numbers would send down a path nobody takes, such as a sample rate of 3."""
    model = onnx.load(subject.path, load_external_data=False)
    known = {t.name for t in model.graph.initializer}
    random = np.random.default_rng(0)
    inputs: dict[str, np.ndarray] = {}
    for described in model.graph.input:
        name, kind = described.name, described.type.tensor_type
        if name in known:
            continue
        shape = subject.shapes.get(name) or [d.dim_value or 1 for d in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        drawn = np.full(shape, subject.values[name]) if name in subject.values else random.standard_normal(shape)
        inputs[name] = np.asarray(drawn, dtype=dtype)
    np.savez(path, **inputs)  # pyright: ignore[reportArgumentType]
