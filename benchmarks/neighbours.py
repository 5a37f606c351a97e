# pyright: basic
"""How far a model's time moves while other processes open models on the same GPU.

    python benchmarks/neighbours.py FOLDER OPENED [--seconds N]

FOLDER and OPENED are folders of networks that gpu.py worked on. The first is run over and over with a CUDA graph, alone
and beside one and two processes that open the other one again and again, with the kernels of convolutions chosen by
trying them: what makes most noise. Microseconds of a run; four runs are a sample.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.gpu_models import Files, read_arrays
from superopt.runtime.deployment import Deployment
from superopt.runtime.session import Session

GRAPH = ("enable_cuda_graph", "1")
RUNS = 4
SETTLING = 3.0
"""Seconds until neighbours have begun."""


def measured(run: Callable[[], None], seconds: float) -> list[float]:
    found = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        started = time.perf_counter()
        for _ in range(RUNS):
            run()
        found.append((time.perf_counter() - started) / RUNS * 1e6)
    return found


def line(what: str, samples: list[float]) -> str:
    ranked = sorted(samples)
    low, high = ranked[len(ranked) // 20], ranked[-len(ranked) // 20 - 1]
    return f"{what:40} median {statistics.median(ranked):8.1f}  5 % {low:8.1f}  95 % {high:8.1f}  of {len(ranked)}"


def open_again_and_again(folder: Path, until: float) -> None:
    files, opened = Files(folder), 0
    inputs = read_arrays(files.inputs)
    while time.time() < until:
        with Session(files.model, Deployment("cuda", provider_options=(GRAPH, ("prefer_nhwc", "1")))) as session:
            session.bind(inputs)
        opened += 1
    print(f"   opened {folder.name} {opened} times", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("opened", type=Path)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.until is not None:
        open_again_and_again(given.opened, given.until)
        return 0
    files = Files(given.folder)
    with Session(files.model, Deployment("cuda", provider_options=(GRAPH,))) as session:
        run = session.bind(read_arrays(files.inputs)).run
        measured(run, 1.0)
        print(line(f"{given.folder.name} alone", measured(run, given.seconds)), flush=True)
        for count in (1, 2):
            until = time.time() + SETTLING + given.seconds + 2.0
            command = [sys.executable, __file__, given.folder, given.opened, "--until", str(until)]
            others = [subprocess.Popen(command) for _ in range(count)]
            time.sleep(SETTLING)
            print(line(f"beside {count} that open {given.opened.name}", measured(run, given.seconds)), flush=True)
            for other in others:
                other.wait()
        print(line(f"{given.folder.name} alone", measured(run, given.seconds)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
