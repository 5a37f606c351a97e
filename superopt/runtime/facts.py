"""Where numbers were taken: versions, device, driver."""

from __future__ import annotations

import functools
import os
import platform
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from superopt.errors import CannotRun
from superopt.runtime.cores import usable_cores
from superopt.runtime.deployment import Deployment, Target
from superopt.runtime.library import onnxruntime
from superopt.runtime.probe import relu_model
from superopt.runtime.session import Session

_CPUINFO = Path("/proc/cpuinfo")
_ARM = "0x41"
_ARM_CORES = {
    "0xd08": "Cortex-A72",
    "0xd0c": "Neoverse-N1",
    "0xd40": "Neoverse-V1",
    "0xd49": "Neoverse-N2",
    "0xd4f": "Neoverse-V2",
    "0xd84": "Neoverse-V3",
}
# What every onnxruntime we accept (1.23 and later) reads, for one that words its refusal differently.
_LEAST_OPSET, _LEAST_IR = 23, 11
_TOO_NEW = 1_000_000


@dataclass(frozen=True)
class RuntimeFacts:
    version: str
    max_opset: int
    max_ir_version: int


@dataclass(frozen=True)
class DeviceFacts:
    target: Target
    name: str
    driver: str  # empty for a CPU


@functools.cache
def runtime_facts() -> RuntimeFacts:
    """Asks onnxruntime itself: it names its limits when it refuses a model from the future."""
    refused_opset = _refusal(relu_model(opset=_TOO_NEW, ir_version=_LEAST_IR))
    refused_ir = _refusal(relu_model(opset=_LEAST_OPSET, ir_version=_TOO_NEW))
    return RuntimeFacts(
        onnxruntime().__version__,
        _number(r"till opset (\d+)", refused_opset, _LEAST_OPSET),
        _number(r"max supported IR version: (\d+)", refused_ir, _LEAST_IR),
    )


def device_facts(target: Target, device_id: int = 0) -> DeviceFacts:
    if target == "cpu":
        return DeviceFacts("cpu", cpu_name(), "")
    return gpu_facts(device_id)


def cpu_name() -> str:
    try:
        fields = _fields(_CPUINFO.read_text())
    except OSError:
        fields = {}
    return f"{_model_name(fields)} ({usable_cores()} cores)"


@functools.cache
def gpu_facts(device_id: int) -> DeviceFacts:
    """As the driver's own tool names it."""
    told = _asked_driver(device_id, "name,driver_version")
    name, comma, driver = told.rpartition(",")
    if not comma:
        return DeviceFacts("cuda", f"CUDA device {_number_of(device_id)}", "unknown")
    return DeviceFacts("cuda", name.strip(), driver.strip())


@functools.cache
def gpu_memory(device_id: int) -> int:
    """Bytes that the device has; 0 where the driver's tool does not say."""
    return _number(r"^(\d+) MiB", _asked_driver(device_id, "memory.total"), 0) << 20


def _asked_driver(device_id: int, what: str) -> str:
    """The line that nvidia-smi answers with, empty where it is not there or refuses."""
    query = ["nvidia-smi", f"--id={_number_of(device_id)}", f"--query-gpu={what}", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout
        return answer.strip().splitlines()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        return ""


def _number_of(device_id: int) -> str:
    """`CUDA_VISIBLE_DEVICES` renumbers what CUDA sees, not what the tool does."""
    visible = [d.strip() for d in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if d.strip()]
    return visible[device_id] if device_id < len(visible) else str(device_id)


def _refusal(model: bytes) -> str:
    try:
        Session(model, Deployment("cpu", threads=1)).close()
    except CannotRun as error:
        return str(error.__cause__)
    return ""


def _number(pattern: str, text: str, default: int) -> int:
    match = re.search(pattern, text)
    return int(match.group(1)) if match else default


def _fields(cpuinfo: str) -> dict[str, str]:
    """The first processor's lines."""
    pairs = (line.split(":", 1) for line in cpuinfo.split("\n\n")[0].splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, value in pairs}


def _model_name(fields: dict[str, str]) -> str:
    if "model name" in fields:
        return fields["model name"]
    implementer, part = fields.get("CPU implementer"), fields.get("CPU part")
    if implementer is None or part is None:
        return platform.processor() or platform.machine()
    known = _ARM_CORES.get(part) if implementer == _ARM else None
    return f"{platform.machine()} {known or f'{implementer}:{part}'}"
