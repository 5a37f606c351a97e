# pyright: basic
"""A network's first convolution, of three channels, in several forms: what each takes on this GPU, kernel by kernel.

    python benchmarks/stems.py

7 × 7, stride 2, on sixteen images of 224 × 224 in float16, with channels last and a CUDA graph. Kernels are recorded by
torch's profiler, without the graph. The transpose of the result is part of every form: the network has none there.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.kernels import recorded, table
from superopt.runtime.deployment import Deployment
from superopt.runtime.session import Session

IMAGES, PIXELS, CHANNELS, OUT, HALF = 16, 224, 3, 64, np.float16
LAYOUT = (("fuse_conv_bias", "1"), ("prefer_nhwc", "1"))
STRIDED = {"kernel_shape": [7, 7], "pads": [3, 3, 3, 3], "strides": [2, 2]}
FOLDED = {"kernel_shape": [4, 4], "pads": [2, 2, 1, 1]}
RUNS = 40


def folded(filters: np.ndarray) -> np.ndarray:
    """8 × 8 over pixels as 4 × 4 over blocks of 2 × 2 of them."""
    out, channels, height, width = filters.shape
    blocks = filters.reshape(out, channels, height // 2, 2, width // 2, 2).transpose(0, 3, 5, 1, 2, 4)
    return np.ascontiguousarray(blocks.reshape(out, 4 * channels, height // 2, width // 2))


def forms() -> dict[str, bytes]:
    random = np.random.default_rng(0)
    seven = (random.standard_normal((OUT, CHANNELS, 7, 7)) * 0.05).astype(HALF)
    four = folded(np.pad(seven, ((0, 0), (0, 0), (1, 0), (1, 0))))
    half, depth = (four / 2).astype(HALF), helper.make_node("SpaceToDepth", ["x"], ["d"], blocksize=2)
    zeros = np.zeros((IMAGES, 4, PIXELS // 2, PIXELS // 2), HALF)
    none = np.zeros((OUT, 4, 4, 4), HALF)
    return {
        "as it is": model([conv("x", STRIDED)], {"w": seven}),
        "2×2 pixels as channels": model([depth, conv("d", FOLDED)], {"w": four}),
        "and twice, halved": model(
            [depth, concat("d", "d"), conv("wide", FOLDED)], {"w": np.concatenate([half, half], 1)}
        ),
        "and four channels of zeros": model(
            [depth, concat("d", "z"), conv("wide", FOLDED)], {"w": np.concatenate([four, none], 1), "z": zeros}
        ),
    }


def conv(x: str, attributes: dict[str, Any]) -> onnx.NodeProto:
    return helper.make_node("Conv", [x, "w", "b"], ["y"], **attributes)


def concat(*parts: str) -> onnx.NodeProto:
    return helper.make_node("Concat", parts, ["wide"], axis=1)


def model(nodes: Sequence[onnx.NodeProto], weights: dict[str, np.ndarray]) -> bytes:
    given = [IMAGES, CHANNELS, PIXELS, PIXELS]
    made = [IMAGES, OUT, PIXELS // 2, PIXELS // 2]
    bias = np.random.default_rng(1).standard_normal(OUT).astype(HALF)
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT16, s) for n, s in (("x", given), ("y", made)))
    tensors = [numpy_helper.from_array(value, name) for name, value in {**weights, "b": bias}.items()]
    graph = helper.make_graph(list(nodes), "stem", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def timed(data: bytes, feeds: dict[str, np.ndarray]) -> tuple[float, np.ndarray]:
    """Microseconds of a run, and the answer."""
    with Session(data, Deployment("cuda", provider_options=(*LAYOUT, ("enable_cuda_graph", "1")))) as session:
        run, times = session.bind(feeds).run, list[float]()
        for _ in range(RUNS + 5):
            began = time.perf_counter()
            run()
            times.append(time.perf_counter() - began)
        return 1e6 * median(times[5:]), np.asarray(session.run(feeds)["y"], np.float32)


def main(arguments: Sequence[str] | None = None) -> int:
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args(arguments)
    images = np.random.default_rng(2).standard_normal((IMAGES, CHANNELS, PIXELS, PIXELS)).astype(HALF)
    feeds, expected = {"x": images}, None
    for name, data in forms().items():
        taken, answer = timed(data, feeds)
        expected = answer if expected is None else expected
        with Session(data, Deployment("cuda", provider_options=LAYOUT)) as session:
            kernels = recorded(session.bind(feeds).run)
        print(f"{name}: {taken:.0f} µs, off by {np.abs(answer - expected).max():.4f}")
        print(table("kernels", kernels, 8), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
