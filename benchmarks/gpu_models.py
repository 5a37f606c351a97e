# pyright: basic
"""The networks of gpu.py as files: the model, the inputs it is timed on, and what the CPU answers to them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx

from benchmarks import built, handmade, subjects
from benchmarks.built_variants import as_float16, float_inputs, nasrnn, with_batch
from benchmarks.gpu_cells import Place
from benchmarks.subjects import Subject
from superopt.check import Request, make_feeds
from superopt.ir.onnx import load
from superopt.runtime.deployment import Deployment
from superopt.runtime.session import Session

BUILT = {**built.MODELS, "nasrnn": nasrnn}
# What onnxruntime.transformers.optimizer is told; it is not run on others.
TRANSFORMERS: dict[str, dict[str, str | int]] = {
    **subjects.BUILT_TRANSFORMERS,
    "bert_base": {"model_type": "bert", "num_heads": 12, "hidden_size": 768},
    "bert_base_masked": {"model_type": "bert", "num_heads": 12, "hidden_size": 768},
    "distilbert": {"model_type": "bert", "num_heads": 12, "hidden_size": 768},
    "gpt2": {"model_type": "gpt2", "num_heads": 12, "hidden_size": 768},
    "swin_t": {"model_type": "swin"},
    "t5_small_encoder": {"model_type": "t5", "num_heads": 8, "hidden_size": 512},
    "vit_b_16": {"model_type": "vit", "num_heads": 12, "hidden_size": 768},
    "whisper_tiny_encoder": {"model_type": "bart", "num_heads": 6, "hidden_size": 384},
}


@dataclass(frozen=True)
class Files:
    """Of one network at one type and batch size."""

    folder: Path
    shapes: Mapping[str, list[int]] = field(default_factory=dict)
    values: Mapping[str, int] = field(default_factory=dict)

    @property
    def model(self) -> Path:
        return self.folder / "model.onnx"

    @property
    def hand(self) -> Path:
        """The same merged by hand, where somebody did that."""
        return self.folder / "hand.onnx"

    @property
    def inputs(self) -> Path:
        return self.folder / "inputs.npz"

    @property
    def reference(self) -> Path:
        """Written last: where it is, everything is."""
        return self.folder / "reference.npz"

    def subject(self, name: str) -> Subject:
        transformer = TRANSFORMERS.get(name, {})
        return Subject(name, self.model, dict(self.shapes), dict(self.values), "built", transformer)


def real_models() -> dict[str, Subject]:
    """Those of models.toml that are here."""
    return {subject.name: subject for subject in subjects.fetched()}


def files_of(work: Path, place: Place) -> Files:
    """Where they are, made or not."""
    name, dtype, batch = place
    folder = work / f"{name}-{dtype}-b{batch}"
    if name in BUILT or name not in _named():
        return Files(folder)
    source = _named()[name]
    return Files(folder, source.shapes, source.values)


def _named() -> dict[str, Any]:
    return {source.name: source for source in subjects.fetch.read_catalogue()}


def make(files: Files, place: Place, device: str) -> None:
    """Everything that the methods need of this network."""
    name, dtype, batch = place
    if dtype == "bf16" and (name in BUILT or name in _named()):
        raise ValueError(f"{name} is there in float32 and float16 alone")
    files.folder.mkdir(parents=True, exist_ok=True)
    if name in BUILT:
        model = _built(BUILT[name], dtype, batch)
        onnx.save(model, files.model)
        if name in handmade.MODELS:
            onnx.save(_built(handmade.MODELS[name], dtype, batch), files.hand)
        feeds: Mapping[str, Any] = float_inputs(model)
    elif name in _named():
        feeds = _taken(files, name)
    else:
        feeds = _exported(files, place, device)
    np.savez(files.inputs, **feeds)
    if dtype == "bf16":
        answers = _in_float32(place, device)
    else:
        with Session(files.model, Deployment("cpu")) as session:
            answers = session.run(feeds)
    told = {f"{i}": np.asarray(a) for i, a in enumerate(answers.values())}
    np.savez(files.reference, **told)  # pyright: ignore[reportArgumentType]


def _built(build: Callable[[], onnx.ModelProto], dtype: str, batch: int) -> onnx.ModelProto:
    model = with_batch(build(), batch)
    return as_float16(model) if dtype == "fp16" else model


def _taken(files: Files, name: str) -> Mapping[str, Any]:
    source = real_models()[name]
    files.model.unlink(missing_ok=True)
    files.model.symlink_to(source.path.resolve())
    if source.values:
        subjects.write_inputs(source, files.inputs)
        return dict(np.load(files.inputs))
    with Session(files.model, Deployment("cpu")) as session:
        return make_feeds(load(files.model), session, Request(shapes={n: tuple(s) for n, s in source.shapes.items()}))


def _exported(files: Files, place: Place, device: str) -> Mapping[str, Any]:
    from benchmarks import torch_networks  # needs torch

    name, dtype, batch = place
    network = torch_networks.build(name, batch, dtype, device, "eager")
    exporter = torch_networks.export(network, files.model)
    (files.folder / "about.json").write_text(json.dumps({"exporter": exporter}) + "\n")
    return {n: _array(tensor.cpu()) for n, tensor in network.inputs.items()}


def _array(tensor: Any) -> np.ndarray:
    if str(tensor.dtype) == "torch.bfloat16":  # which numpy has, but not by way of torch
        return tensor.float().numpy().astype(ml_dtypes.bfloat16)
    return tensor.numpy()


def _in_float32(place: Place, device: str) -> Mapping[str, Any]:
    """What the CPU answers, of a network of a type that it does not know."""
    name, _, batch = place
    with tempfile.TemporaryDirectory() as folder:
        files = Files(Path(folder))
        feeds = _exported(files, (name, "fp32", batch), device)
        with Session(files.model, Deployment("cpu")) as session:
            return session.run(feeds)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as found:
        return {name: _as_saved(array) for name, array in found.items()}


def _as_saved(array: np.ndarray) -> np.ndarray:
    """numpy saves bfloat16 as two bytes of anything."""
    return array.view(ml_dtypes.bfloat16) if array.dtype == np.dtype("V2") else array
