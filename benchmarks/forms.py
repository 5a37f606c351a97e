# pyright: basic
"""Forms of one and the same part of a network, timed on a GPU: which one would a rule have to lead to?

    python benchmarks/forms.py [--only REGEX]

Each is a model of a few operators, in float16 unless it says otherwise, run with a CUDA graph and everything on the
device. Microseconds of a run, the median of fifteen, and the largest difference from the results of the first form.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime as ort
from onnx import helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.form import MICROSOFT, Form, Part
from benchmarks.form_parts import PARTS
from superopt.runtime.library import errors
from superopt.runtime.target import cuda_state

ROUNDS, RUNS = 15, 10


def model_of(form: Form, x: np.ndarray) -> bytes:
    dtype = helper.np_dtype_to_tensor_dtype(x.dtype)
    read = {name for each in form.nodes for name in each.input}
    graph = helper.make_graph(
        form.nodes, "form",
        [helper.make_tensor_value_info("x", dtype, x.shape)],
        [helper.make_tensor_value_info("out", dtype, None)],
        [numpy_helper.from_array(value, name) for name, value in form.constants.items() if name in read],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def timed(model: bytes, x: np.ndarray, options: dict[str, str]) -> tuple[float, np.ndarray]:
    """Seconds of a run, and its result."""
    quiet = ort.SessionOptions()
    quiet.log_severity_level = 3
    plain = ort.InferenceSession(model, quiet, providers=[("CUDAExecutionProvider", options)])
    result = np.asarray(plain.run(None, {"x": x})[0])
    graphs = {**options, "enable_cuda_graph": "1"}
    session = ort.InferenceSession(model, quiet, providers=[("CUDAExecutionProvider", graphs)])
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(x, "cuda", 0))
    out = ort.OrtValue.ortvalue_from_shape_and_type(list(result.shape), x.dtype, "cuda", 0)
    binding.bind_ortvalue_output("out", out)
    for _ in range(5):
        session.run_with_iobinding(binding)
    rounds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for _ in range(RUNS):
            session.run_with_iobinding(binding)
        rounds.append((time.perf_counter() - started) / RUNS)
    return float(np.median(rounds)), out.numpy()


def compared(result: np.ndarray, first: np.ndarray) -> str:
    if result.shape != first.shape:
        return f"has the shape {result.shape}"
    return f"differs by {np.abs(result.astype(np.float32) - first.astype(np.float32)).max():.4f}"


def lines(part: Part) -> Iterator[str]:
    yield part.name
    first: np.ndarray | None = None
    for form in part.forms:
        try:
            seconds, result = timed(model_of(form, part.x), part.x, form.options)
        except errors() as error:
            yield f"  {form.name:55s} does not run: {str(error)[:80]}"
            continue
        first = result if first is None else first
        yield f"  {form.name:55s} {1e6 * seconds:8.1f} us  {compared(result, first)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="REGEX", help="parts whose name matches")
    given = parser.parse_args()
    if not (cuda := cuda_state()).works:
        print(f"CUDA is not usable here: {cuda.reason}", file=sys.stderr)
        return 2
    print(f"onnxruntime {ort.__version__}, float16, CUDA graphs")
    for build in PARTS:
        part = build(np.random.default_rng(0))
        if re.search(given.only, part.name):
            print("\n".join(lines(part)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
