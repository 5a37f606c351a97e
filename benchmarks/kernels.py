# pyright: basic
"""Kernel by kernel: what a network spends its time on, ours beside torch.compile's.

    python benchmarks/kernels.py benchmarks/.cache/gpu/resnet50-fp16-b16 … [--under prefer_nhwc=1,fuse_conv_bias=1 …]

The folders are those that gpu.py works in. Of each: superopt's result with its options (the original where that came
back), or the original under the CUDA provider's options given, and torch.compile in the modes named. Kernels are
recorded by torch's profiler, without CUDA graphs, so gaps between launches are not in the sums; long names are cut
short, and those that are then alike added up.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import torch  # pyright: ignore[reportMissingImports]  # before onnxruntime: both bring CUDA's libraries

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.gpu_models import Files, read_arrays
from benchmarks.gpu_worker import deployment_of, module_of, tensor_of
from superopt.errors import SuperoptError
from superopt.report import Report
from superopt.runtime.session import Session

RUNS = 5
MODES = ("default", "max-autotune-no-cudagraphs")
WIDTH = 96
Launched: TypeAlias = "list[tuple[str, float]]"
Recorded: TypeAlias = "tuple[str, Launched]"
"""Whose kernels, and they."""


def recorded(run: Callable[[], None]) -> Launched:
    """All kernels of some runs, in order, with the microseconds of each."""
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(RUNS):
            run()
        torch.cuda.synchronize()
    launched = [event for event in profile.events() if str(event.device_type).endswith("CUDA")]
    launched.sort(key=lambda event: event.time_range.start)
    return [(shortened(event.name), float(event.device_time)) for event in launched]


def summed(launched: Launched) -> dict[str, tuple[float, float]]:
    """Microseconds and launches in one run, by kernel."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for name, time in launched:
        found = sums[name]
        found[0] += time / RUNS
        found[1] += 1 / RUNS
    return {name: (time, count) for name, (time, count) in sums.items()}


def last_run(launched: Launched) -> str:
    """One line for each kernel, in the order in which they ran."""
    count = len(launched) // RUNS
    return "\n".join(f"{i:4d} {time:8.1f}  {name}" for i, (name, time) in enumerate(launched[-count:]))


def shortened(name: str) -> str:
    """Without what says nothing, and no longer than fits."""
    name = re.sub(r"^void ", "", name)
    name = re.sub(r"onnxruntime::(contrib::)?cuda::", "", name)
    name = re.sub(r"\((anonymous namespace|[A-Z]\w*)\)::?", "", name)
    return name[:WIDTH]


def table(title: str, launched: Launched, top: int) -> str:
    kernels = summed(launched)
    total = sum(time for time, _ in kernels.values())
    lines = [f"{title}: {total:.0f} µs in {sum(c for _, c in kernels.values()):.0f} kernels"]
    ranked = sorted(kernels.items(), key=lambda item: -item[1][0])
    lines += [f"  {time:8.1f} µs {count:5.1f} ×  {name}" for name, (time, count) in ranked[:top]]
    return "\n".join(lines)


def ours(folder: Path) -> Recorded:
    report = Report.model_validate_json((folder / "superopt.json").read_text())
    changed = report.returned == "optimized"
    options = dict(report.deployment.options) if report.deployment else {}
    options.pop("cuda.enable_cuda_graph", None)
    model = folder / ("superopt.onnx" if changed else "model.onnx")
    return ("superopt" if changed else "the original"), run_by_us(folder, model, options)


def original(folder: Path, under: str) -> Recorded:
    options = dict(each.split("=", 1) for each in under.split(",") if each)
    named = {f"cuda.{name}": value for name, value in options.items()}
    return f"the original under {under or 'no options'}", run_by_us(folder, folder / "model.onnx", named)


def run_by_us(folder: Path, model: Path, options: Mapping[str, str]) -> Launched:
    with Session(model, deployment_of(options, "cuda")) as session:
        binding = session.bind(read_arrays(folder / "inputs.npz"))
        return recorded(binding.run)


def compiled(folder: Path, place: list[Any], mode: str) -> Launched:
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    inputs = [tensor_of(array).to("cuda") for array in read_arrays(folder / "inputs.npz").values()]
    function = torch.compile(module_of(Files(folder), place, "cuda"), mode=mode)

    def run() -> None:
        function(*inputs)

    with torch.no_grad():
        return recorded(run)


def runs(folder: Path, place: list[Any], under: Sequence[str], modes: Sequence[str]) -> list[Callable[[], Recorded]]:
    """What is to be looked at."""
    mine = [partial(original, folder, options) for options in under] or [partial(ours, folder)]
    return [*mine, *(partial(by_torch, folder, place, mode) for mode in modes)]


def by_torch(folder: Path, place: list[Any], mode: str) -> Recorded:
    return f"torch.compile, {mode}", compiled(folder, place, mode)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--under", action="append", metavar="NAME=VALUE,…", help="the original, with these options")
    parser.add_argument("--top", type=int, default=14, metavar="N", help="kernels to show")
    parser.add_argument("--in-order", type=Path, metavar="FOLDER", help="write all kernels of a run there, in order")
    parser.add_argument(
        "--mode", action="append", choices=MODES, metavar="NAME", help=f"of torch.compile: {', '.join(MODES)}"
    )
    parser.add_argument("--no-torch", action="store_true", help="ours alone")
    given = parser.parse_args()
    modes = [] if given.no_torch else given.mode or MODES[:1]
    for folder in given.folders:
        name, dtype, batch = folder.name.rsplit("-", 2)
        print(f"# {name} {dtype} {batch}")
        try:
            found: list[Recorded] = []
            for run in runs(folder, [name, dtype, int(batch[1:])], given.under or (), modes):
                found.append(run())
                print(table(*found[-1], given.top), flush=True)
            if given.in_order:
                told = "\n\n".join(f"{title}\n{last_run(launched)}" for title, launched in found)
                (given.in_order / f"kernels-{folder.name}.txt").write_text(told + "\n")
        except (RuntimeError, OSError, ValueError, SuperoptError) as error:  # one network is not worth the others
            print(f"{type(error).__name__}: {str(error)[:300]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
