"""`superopt serve` with stand-in workers, which does not wait before it starts again what was killed."""

from __future__ import annotations

import sys
from pathlib import Path

from server import supervise
from server.settings import read_settings

if __name__ == "__main__":
    supervise.LONGEST_PAUSE = supervise.FIRST_PAUSE
    command = [sys.executable, "-P", str(Path(__file__).with_name("stand_in_worker.py"))]
    supervise.Supervisor(read_settings(), command).run()
