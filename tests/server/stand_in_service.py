"""`superopt serve` with stand-in workers, which does not wait before it starts again what was killed."""

from __future__ import annotations

import sys
from pathlib import Path

from server import supervise
from server.settings import read_settings

if __name__ == "__main__":
    supervise.LONGEST_PAUSE = supervise.FIRST_PAUSE
    here = Path(__file__).parent
    worker, dispatch = ([sys.executable, "-P", str(here / f"stand_in_{name}.py")] for name in ("worker", "dispatch"))
    supervise.Supervisor(read_settings(), worker, dispatch).run()
