"""What it takes to open models on a GPU: to make a session, to run it for the first time, and three of them at once.

    python benchmarks/opening.py benchmarks/.cache/gpu/densenet121-fp16-b16 …

The folders are those that gpu.py works in. Kernels are chosen in the first run, which with convolutions is most of it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.gpu_models import Files, read_arrays
from superopt.errors import CannotRun
from superopt.runtime.deployment import Deployment, Pairs
from superopt.runtime.session import Session
from superopt.runtime.target import cuda_state
from superopt.runtime.values import Value

AT_ONCE = 3
GRAPH: Pairs = (("enable_cuda_graph", "1"),)
NHWC: Pairs = (*GRAPH, ("prefer_nhwc", "1"))
UNDER: dict[str, Pairs] = {
    "": (),
    "a CUDA graph": GRAPH,
    "and channels last": NHWC,
    "and kernels by heuristics": (*NHWC, ("cudnn_conv_algo_search", "HEURISTIC")),
}


def opened(model: Path, deployment: Deployment, feeds: Mapping[str, Value]) -> tuple[float, float]:
    """Seconds to make a session, and of its first runs."""
    started = time.perf_counter()
    session = Session(model, deployment)
    made = time.perf_counter()
    session.bind(feeds)
    return made - started, time.perf_counter() - made


def told(files: Files, options: Pairs) -> str:
    deployment, feeds = Deployment("cuda", provider_options=options), read_arrays(files.inputs)
    try:
        opened(files.model, deployment, feeds)
        made, ran = opened(files.model, deployment, feeds)
        started = time.perf_counter()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda _: opened(files.model, deployment, feeds), range(AT_ONCE)))
        together = f"{time.perf_counter() - started:8.2f} s for {AT_ONCE} at once"
    except CannotRun as error:
        return f"cannot be run: {error}"
    return f"{made:8.2f} s to make, {ran:8.2f} s for the first run, {together}"


def main(arguments: Sequence[str] | None = None) -> int:
    folders = [Path(word) for word in (sys.argv[1:] if arguments is None else arguments)]
    if missing := [str(folder) for folder in folders if not Files(folder).reference.exists()]:
        print(f"{', '.join(missing)}: no folder that gpu.py made a network in", file=sys.stderr)
        return 2
    if not (cuda := cuda_state()).works:
        print(f"CUDA is not usable here: {cuda.reason}", file=sys.stderr)
        return 2
    for folder in folders:
        print(folder.name)
        for title, options in UNDER.items():
            print(f"  {title or 'default session':26} {told(Files(folder), options)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
