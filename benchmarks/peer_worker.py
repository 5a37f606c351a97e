# pyright: basic
"""Runs one peer on one model, in the peers' own environment: started by peers.py, imports nothing of superopt.

    python benchmarks/peer_worker.py PEER IN.onnx OUT.onnx [OPTIONS as JSON]

Every peer runs with its defaults, as its own documentation says.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pkgutil import extend_path
from typing import Any

import onnx


def onnxsim(source: str, target: str, options: dict[str, Any]) -> None:
    simplified, _ = import_module("onnxsim").simplify(onnx.load(source))
    onnx.save(simplified, target)


def onnxslim(source: str, target: str, options: dict[str, Any]) -> None:
    onnx.save(import_module("onnxslim").slim(onnx.load(source)), target)


def onnxoptimizer(source: str, target: str, options: dict[str, Any]) -> None:
    onnx.save(import_module("onnxoptimizer").optimize(onnx.load(source)), target)


def onnxscript(source: str, target: str, options: dict[str, Any]) -> None:
    onnx.save(import_module("onnxscript.optimizer").optimize(onnx.load(source)), target)


def transformers(source: str, target: str, options: dict[str, Any]) -> None:
    """Also where this part of onnxruntime lies apart from the rest."""
    package = import_module("onnxruntime")
    package.__path__ = extend_path(package.__path__, "onnxruntime")
    import_module("onnxruntime.transformers.optimizer").optimize_model(source, **options).save_model_to_file(target)


if __name__ == "__main__":
    known = {peer.__name__: peer for peer in (onnxsim, onnxslim, onnxoptimizer, onnxscript, transformers)}
    name, source, target, *told = sys.argv[1:]
    known[name](source, target, json.loads(told[0]) if told else {})
