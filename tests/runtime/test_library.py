import os
import subprocess
import sys

import pytest

from superopt.runtime.library import captured_stderr, errors, onnxruntime

MODULES = ("session", "target", "evaluate", "facts", "binding")


@pytest.mark.unit
def test_importing_the_package_does_not_load_onnxruntime():
    imports = "; ".join(f"import superopt.runtime.{name}" for name in MODULES)
    code = f"import sys; {imports}; import superopt.cost.measure; sys.exit('onnxruntime' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.unit
def test_native_writes_to_stderr_are_captured(capfd: pytest.CaptureFixture[str]):
    with captured_stderr() as lines:
        os.write(2, b"noise\n")
    os.write(2, b"kept\n")
    assert lines == ["noise"]
    assert capfd.readouterr().err == "kept\n"


@pytest.mark.unit
def test_stderr_comes_back_after_an_error(capfd: pytest.CaptureFixture[str]):
    with pytest.raises(KeyError), captured_stderr():
        raise KeyError
    os.write(2, b"kept\n")
    assert capfd.readouterr().err == "kept\n"


@pytest.mark.ort
def test_every_exception_of_onnxruntime_is_known():
    state = onnxruntime().capi.onnxruntime_pybind11_state
    for kind in (state.Fail, state.InvalidArgument, state.NoSuchFile, state.InvalidProtobuf, state.EPFail):
        assert issubclass(kind, errors())
    assert not issubclass(KeyboardInterrupt, errors())
