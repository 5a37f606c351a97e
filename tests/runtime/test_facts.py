import stat
from pathlib import Path

import pytest

from superopt.errors import CannotRun
from superopt.runtime import facts
from superopt.runtime.deployment import Deployment
from superopt.runtime.facts import DeviceFacts, cpu_name, device_facts, gpu_facts, gpu_memory, runtime_facts
from superopt.runtime.library import onnxruntime
from superopt.runtime.probe import relu_model
from superopt.runtime.session import Session


@pytest.mark.ort
def test_the_newest_opset_and_ir_open_and_the_next_ones_do_not():
    found = runtime_facts()
    assert found.version == onnxruntime().__version__
    here = Deployment(threads=1)
    Session(relu_model(found.max_opset, found.max_ir_version), here).close()
    with pytest.raises(CannotRun, match="opset"):
        Session(relu_model(found.max_opset + 1, found.max_ir_version), here)
    with pytest.raises(CannotRun, match="IR version"):
        Session(relu_model(found.max_opset, found.max_ir_version + 1), here)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        ("processor : 0\nmodel name\t: Big Core 9000\n\nprocessor : 1\nmodel name : Other\n", "Big Core 9000 ("),
        ("processor : 0\nCPU implementer : 0x41\nCPU part : 0xd0c\n", "Neoverse-N1 ("),
        ("processor : 0\nCPU implementer : 0x61\nCPU part : 0x022\n", "0x61:0x022 ("),
    ],
)
def test_cpu_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpuinfo: str, name: str):
    (tmp_path / "cpuinfo").write_text(cpuinfo)
    monkeypatch.setattr(facts, "_CPUINFO", tmp_path / "cpuinfo")
    assert name in cpu_name()
    assert device_facts("cpu") == DeviceFacts("cpu", cpu_name(), "")


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in that names the device it is asked for."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text(
        '#!/bin/sh\ncase "$2" in *memory*) echo "143771 MiB";; *) echo "NVIDIA ${1#--id=}, SXM, 580.1";; esac\n'
    )
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    gpu_facts.cache_clear()
    gpu_memory.cache_clear()
    return tool


@pytest.mark.unit
@pytest.mark.usefixtures("nvidia_smi")
@pytest.mark.parametrize(("visible", "name"), [("", "NVIDIA 1, SXM"), ("7,5", "NVIDIA 5, SXM")])
def test_gpu_name_and_driver(monkeypatch: pytest.MonkeyPatch, visible: str, name: str):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert device_facts("cuda", 1) == DeviceFacts("cuda", name, "580.1")


@pytest.mark.unit
def test_a_gpu_without_its_tool_is_unknown(nvidia_smi: Path, monkeypatch: pytest.MonkeyPatch):
    nvidia_smi.unlink()
    monkeypatch.setenv("PATH", str(nvidia_smi.parent))
    assert device_facts("cuda", 3) == DeviceFacts("cuda", "CUDA device 3", "unknown")
    assert gpu_memory(3) == 0


@pytest.mark.unit
@pytest.mark.usefixtures("nvidia_smi")
def test_gpu_memory():
    assert gpu_memory(0) == 143771 << 20
