"""A dispatcher whose jobs are done by the stand-in, on whatever node: `python stand_in_dispatch.py PARENT`."""

from __future__ import annotations

import signal
import sys

from server.children import end_with_parent
from server.dispatch import Dispatcher
from server.logs import set_up_logs
from server.settings import read_settings
from tests.server.shop import OFFERED, STAND_IN

if __name__ == "__main__":
    end_with_parent(int(sys.argv[1]))
    settings = read_settings()
    set_up_logs(settings.log_level)
    dispatcher = Dispatcher(settings, STAND_IN, OFFERED)
    signal.signal(signal.SIGTERM, lambda *_: dispatcher.stop())
    dispatcher.run()
