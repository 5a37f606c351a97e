"""What came of a job, in words for its owner."""

from __future__ import annotations

import json
from typing import Any

from server.protocol import Delivery
from server.records import MODEL
from superopt import errors

TITLES = {
    "BadModel": "The model cannot be read",
    "BadExternalData": "The external data does not fit the model",
    "BadOption": "An option makes no sense for this model",
    "CannotRun": "onnxruntime does not run the model",
    "LimitHit": "A limit was reached",
    "WorkerDied": "The working process died",
}


def problem_of(error: str, message: str) -> dict[str, Any]:
    """As a problem document. Whatever the model did to its process, it is the model that cannot be processed: 422."""
    known = error if hasattr(errors, error) else "SuperoptError"
    title = TITLES.get(known, "The model cannot be optimized")
    return {"type": "about:blank", "title": title, "status": 422, "detail": message[:2000], "error": known}


def summary_of(delivery: Delivery) -> tuple[str, dict[str, Any]]:
    """The report as text, and the few figures of it that a list of jobs shows."""
    report = delivery.report
    timing, before, after = report["timing"], report["before"], report["after"]
    for facts in (before, after):
        facts["path"] = MODEL
    optimized = report["returned"] == "optimized"
    latency = [None if timing[k] is None else timing[k]["median"] for k in ("before", "after")]
    summary = {
        "verdict": report["verdict"],
        "returned": report["returned"],
        "speedup": timing["speedup"] if optimized else 1.0,
        "speedup_interval": timing["speedup_interval"] if optimized else None,
        "nodes_before": before["nodes"],
        "nodes_after": after["nodes"],
        "bytes_before": before["file_bytes"],
        "bytes_after": after["file_bytes"],
        "seconds_before": latency[0],
        "seconds_after": latency[1] if optimized else latency[0],
        "rewrites": len(report["rewrites"]),
        "device": report["environment"]["device"],
        "stopped": delivery.stopped,
    }
    return json.dumps(report, indent=1), summary
