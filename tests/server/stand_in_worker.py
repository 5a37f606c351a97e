"""A worker whose jobs are done by the stand-in: `python stand_in_worker.py PLACE PARENT`."""

from __future__ import annotations

import signal
import sys

from server.children import end_with_parent
from server.devices import places
from server.logs import set_up_logs
from server.settings import read_settings
from server.worker import Worker
from tests.server.shop import OFFERED, STAND_IN

if __name__ == "__main__":
    name, parent = sys.argv[1:]
    end_with_parent(int(parent))
    settings = read_settings()
    set_up_logs(settings.log_level)
    worker = Worker(settings, next(place for place in places(settings) if place.name == name), STAND_IN)
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    worker.run(OFFERED)
