"""The process of one job: `python -m server.runner PARENT`, in the job's folder. Reads an order, tells in JSON lines.

It calls the same function as `superopt optimize`, which works in a child process of its own under limits on time and
memory. This process can be ended at any moment, and what it started ends with it.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from server.children import end_with_parent
from server.protocol import Delivery, Refusal, Work
from server.records import GRAPHS
from superopt.engine.deliver import deliver
from superopt.engine.job import Stage
from superopt.errors import SuperoptError
from superopt.options import from_json

Tell = Callable[[Stage | Delivery | Refusal], None]


def main() -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever is interrupted ends its own children
    end_with_parent(int(sys.argv[1]))
    tell = _private_stdout()
    work = Work.model_validate_json(sys.stdin.buffer.readline())
    resource.setrlimit(resource.RLIMIT_FSIZE, (work.file_bytes, work.file_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        delivered = deliver(work.model, work.out, from_json(work.options), tell, scene=Path(GRAPHS), turn=work.turn)
        data_files = [] if delivered.written is None else list(delivered.written.data_files)
        stopped = None if delivered.stopped is None else str(delivered.stopped)
        tell(Delivery(report=delivered.report.model_dump(mode="json"), data_files=data_files, stopped=stopped))
    except SuperoptError as error:
        tell(Refusal(error=type(error).__name__, message=str(error)))
    except KeyboardInterrupt:
        sys.exit(130)


def _private_stdout() -> Tell:
    """Keep the real stdout for events; whatever a library prints goes to stderr."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(event: Stage | Delivery | Refusal) -> None:
        channel.write(event.model_dump_json() + "\n")
        channel.flush()

    return tell


if __name__ == "__main__":
    main()
