import mmap
import os
import subprocess
import sys

import pytest

from superopt.cost.memory import peak_resident_bytes, resident_bytes, watch

pytestmark = pytest.mark.unit

MB = 1 << 20


def test_the_peak_stays_after_memory_is_freed():
    before = resident_bytes()
    assert before is not None
    with mmap.mmap(-1, 64 * MB) as block:
        block.write(os.urandom(64 * MB))
    assert peak_resident_bytes() >= before + 60 * MB


def test_another_process_is_watched_until_it_ends():
    code = "b = bytearray(b'x' * 80_000_000); del b; print('grown', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        looks = 0

        def running() -> bool:
            nonlocal looks
            looks += 1
            if looks == 1:
                assert child.stdout is not None
                child.stdout.readline()
            else:
                child.communicate(b"\n")
            return child.poll() is None

        assert watch(child.pid, running, every=0.001) > 80_000_000
    assert looks == 2
    assert resident_bytes(child.pid) is None


def test_a_process_that_is_not_there_has_no_size():
    assert resident_bytes(2**22 + 1) is None
