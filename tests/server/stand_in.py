"""Takes the place of `server.runner`: answers as it is told, quickly, and never the same twice.

The model ends with JSON that says what to do, or it is an ordinary run. An answer holds random bytes, so that two
runs of one job could be told apart.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from server.children import end_with_parent
from server.protocol import Delivery, Refusal, Work
from server.records import GRAPHS
from superopt.engine.job import Stage
from superopt.report import CheckReport, Environment, Interval, ModelFacts, Report, TimingReport


def report(model: bytes) -> dict[str, Any]:
    facts = ModelFacts(
        path="upload/model.onnx", sha256="0" * 64, file_bytes=len(model), ir_version=7, opsets={"": 13}, nodes=3,
        operators={"Relu": 3}, parameters=0,
    )  # fmt: skip
    made = Report(
        verdict=f"1.25× faster, as {Path.cwd()}/out/model.onnx shows", returned="optimized", before=facts, after=facts,
        rewrites=[], candidate_nodes=2, options={}, peak_memory_bytes=0, seconds=1.0,
        check=CheckReport(status="equal", reason="", runs=1, inputs=[], outputs=[]),
        timing=TimingReport(
            status="faster", reason="", before=None, after=None, speedup=1.25,
            speedup_interval=Interval(low=1.2, high=1.3), shapes={}, frozen=False,
        ),
        environment=Environment(
            superopt="0", python="3", onnx="1", onnxruntime="1", target="cpu", device="stand-in", driver="", threads=1,
            platform="p",
        ),
    )  # fmt: skip
    return made.model_dump(mode="json")


def say(event: Stage | Delivery | Refusal) -> None:
    print(event.model_dump_json(), flush=True)


def main() -> None:
    end_with_parent(int(sys.argv[1]))
    work = Work.model_validate_json(sys.stdin.readline())
    model = work.model.read_bytes()
    begin = model.find(b'{"')
    told = json.loads(model[begin:]) if begin >= 0 else {}
    if "pid" in told:
        Path(told["pid"]).write_text(f"{os.getpid()}")
    if "child" in told:
        child = subprocess.Popen(["sleep", "600"], start_new_session=True)
        Path(told["child"]).write_text(f"{child.pid}")
    if "environment" in told:
        Path(told["environment"]).write_text(json.dumps(dict(os.environ)))
    if told.get("deaf"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    say(Stage(stage="loading"))
    for stage in told.get("stages", ()):
        say(Stage(**stage))
    time.sleep(told.get("sleep", 0.05))
    if "die" in told:
        sys.exit(f"last words: {told['die']}")
    if "refuse" in told:
        say(Refusal(error=told["refuse"], message=f"{work.model.resolve()}: is empty"))
        return
    say(Stage(stage="timing", detail="explore"))
    answer = work.model.read_bytes() + os.urandom(16)
    work.out.write_bytes(answer)
    names = told.get("data", [])
    for name in names:
        (work.out.parent / name).write_bytes(b"data " + name.encode())
    if "graphs" in told:
        Path(GRAPHS).write_text(json.dumps(told["graphs"]))
    say(Delivery(report=report(model) | told.get("report", {}), data_files=names, stopped=told.get("stopped")))


if __name__ == "__main__":
    main()
