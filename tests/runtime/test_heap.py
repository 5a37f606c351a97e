import ctypes
import platform
import subprocess
import sys

import pytest

from superopt.runtime import heap

pytestmark = pytest.mark.unit

# Freed blocks stay with the process because a later one pins the heap's end.
HOARD = """
import ctypes, sys
from superopt.cost.memory import resident_bytes
from superopt.runtime.heap import give_back_free_memory
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
blocks = [libc.malloc(100_000) for _ in range(1000)]
for block in blocks:
    libc.memset(block, 1, 100_000)
pin = libc.malloc(100_000)
for block in blocks:
    libc.free(block)
before = resident_bytes()
give_back_free_memory()
sys.exit(0 if before - resident_bytes() > 50_000_000 else 1)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_free_memory_goes_back_to_the_system():
    assert subprocess.run([sys.executable, "-c", HOARD], check=False).returncode == 0


def test_other_c_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch):
    for library in (None, ctypes.CDLL):  # neither has malloc_trim or mallopt
        monkeypatch.setattr(heap, "_libc", lambda library=library: library)
        heap.give_back_free_memory()
        heap.map_large_blocks()
