# pyright: basic
"""How superopt behaves at scale: a graph of 10,000 nodes, `superopt --help`, and memory for a model of 1 GB.

    python benchmarks/scale.py [--save] [--bytes N]

Memory is what the kernel counted as resident at most (VmHWM), pages of mapped weight files included.
"""

from __future__ import annotations

import argparse
import contextlib
import platform
import subprocess
import sys
import tempfile
import threading
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from superopt.ir.onnx import load, stage
from superopt.runtime.cores import usable_cores
from superopt.version import __version__

RESULT = Path(__file__).parent / "results" / "scale.txt"
NODES = 10_000
WIDTH = 4096
SUPEROPT = [sys.executable, "-m", "superopt"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Time and memory at scale.")
    parser.add_argument("--save", action="store_true", help=f"write the numbers to {RESULT}")
    parser.add_argument("--bytes", type=int, default=1 << 30, help="size of the model with external data")
    given = parser.parse_args()
    machine = f"{platform.machine()}, {usable_cores()} cores"
    versions = f"superopt {__version__}, onnx {version('onnx')}, onnxruntime {version('onnxruntime-gpu')}"
    lines = [f"{machine}, Python {platform.python_version()}, {versions}"]
    with tempfile.TemporaryDirectory(prefix="superopt-scale-") as name:
        folder = Path(name)
        for show in (lambda: round_trip(folder), help_time, lambda: memory(folder, given.bytes)):
            lines += (found := show())
            print(*found, sep="\n", flush=True)
    if given.save:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text("\n".join(lines) + "\n")


def round_trip(folder: Path) -> list[str]:
    path = folder / "chain.onnx"
    path.write_bytes(_chain().SerializeToString())
    seconds: list[float] = []
    for i in range(3):
        start = time.perf_counter()
        model = load(path)
        stage(model, model.graph, folder / f"again{i}", "chain.onnx", "chain.onnx.data")
        seconds.append(time.perf_counter() - start)
    return [f"import + export of {NODES} nodes: {median(seconds):.2f} s (median of 3; the bound is 5 s)"]


def help_time() -> list[str]:
    seconds: list[float] = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([*SUPEROPT, "--help"], check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - start)
    return [f"superopt --help: {median(seconds):.2f} s (median of 5; the bound is 0.5 s)"]


def memory(folder: Path, size: int) -> list[str]:
    path = _large(folder / "large", size)
    total = sum(p.stat().st_size for p in path.parent.iterdir())
    out = folder / "out" / "large.onnx"
    out.parent.mkdir()
    start = time.perf_counter()
    command = [*SUPEROPT, "optimize", path, "-o", out, "--target", "cpu", "--accept", "not-slower", "--budget", "20"]
    with subprocess.Popen([*map(str, command)], stderr=subprocess.PIPE, text=True) as parent:
        peaks: dict[str, int] = {}
        watcher = threading.Thread(target=_follow, args=(parent, peaks))
        watcher.start()
        _, said = parent.communicate()
        watcher.join()
    if parent.returncode:
        sys.exit(said)
    seconds, mib = time.perf_counter() - start, 1 << 20
    bound = total * 1.5 + 300 * mib
    written = sum(p.stat().st_size for p in out.parent.iterdir())
    return [
        f"optimize a model of {total / mib:.0f} MiB with external data: {said.strip().splitlines()[-1]}",
        f"  {seconds:.0f} s, result {written / mib:.0f} MiB",
        f"  peak memory of the working process: {peaks['worker'] / mib:.0f} MiB (the bound is {bound / mib:.0f} MiB)",
        f"  peak memory of the parent: {peaks['parent'] / mib:.0f} MiB",
    ]


def _follow(parent: subprocess.Popen[str], peaks: dict[str, int]) -> None:
    while parent.poll() is None:
        peaks["parent"] = max(peaks.get("parent", 0), _peak(parent.pid))
        for child in _children(parent.pid):
            peaks["worker"] = max(peaks.get("worker", 0), _peak(child))
        time.sleep(0.02)


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _peak(pid: int) -> int:
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    return 0


def _chain() -> onnx.ModelProto:
    """Adds and Relus in a row, with shortcuts, and a constant at every tenth node."""
    nodes, constants = [helper.make_node("Relu", ["x"], ["v0"])], []
    for i in range(1, NODES):
        if i % 10 == 0:
            constants.append(numpy_helper.from_array(np.full((8,), i, np.float32), f"w{i}"))
            nodes.append(helper.make_node("Add", [f"v{i - 1}", f"w{i}"], [f"v{i}"], name=f"n{i}"))
        elif i % 3 == 0:
            nodes.append(helper.make_node("Add", [f"v{i - 1}", f"v{i - 3}"], [f"v{i}"], name=f"n{i}"))
        else:
            nodes.append(helper.make_node("Relu", [f"v{i - 1}"], [f"v{i}"], name=f"n{i}"))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])
    y = helper.make_tensor_value_info(f"v{NODES - 1}", TensorProto.FLOAT, ["batch", 8])
    return _model(helper.make_graph(nodes, "chain", [x], [y], constants))


def _large(folder: Path, size: int) -> Path:
    """MatMuls of 4096 × 4096 in a row; each weight is reached through an Identity, each sum has a zero to drop."""
    folder.mkdir()
    count = max(1, size // (WIDTH * WIDTH * 4))
    rng = np.random.default_rng(0)
    nodes, constants, at = [], [numpy_helper.from_array(np.zeros(WIDTH, np.float32), "zero")], "x"
    with open(folder / "large.onnx.data", "wb") as data:
        for i in range(count):
            weight = rng.standard_normal((WIDTH, WIDTH), np.float32) / np.float32(64)
            tensor = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=weight.shape)
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in (("location", "large.onnx.data"), ("offset", data.tell()), ("length", weight.nbytes)):
                tensor.external_data.add(key=key, value=str(value))
            data.write(weight.tobytes())
            constants.append(tensor)
            nodes += [
                helper.make_node("Identity", [f"w{i}"], [f"i{i}"]),
                helper.make_node("MatMul", [at, f"i{i}"], [f"m{i}"]),
                helper.make_node("Add", [f"m{i}", "zero"], [f"a{i}"]),
                helper.make_node("Relu", [f"a{i}"], [f"r{i}"]),
            ]
            at = f"r{i}"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", WIDTH])
    y = helper.make_tensor_value_info(at, TensorProto.FLOAT, ["batch", WIDTH])
    path = folder / "large.onnx"
    path.write_bytes(_model(helper.make_graph(nodes, "large", [x], [y], constants)).SerializeToString())
    return path


def _model(graph: onnx.GraphProto) -> onnx.ModelProto:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


if __name__ == "__main__":
    main()
