"""Where models are tried out: `python -m superopt.runtime.opener FD PARENT`. It ends when nobody asks any more."""

from __future__ import annotations

import os
import sys
import threading
import time
from multiprocessing.connection import Connection

from superopt.errors import CannotRun
from superopt.runtime.session import Session

POLL_SECONDS = 0.2


def serve(line: Connection) -> None:
    """Opens what comes, runs it and closes it again; what onnxruntime merely refuses the asker will hear itself."""
    while True:
        try:
            opening, feeds = line.recv()
        except EOFError:
            return
        try:
            with Session(opening.model, opening.deployment, opening.folder, weights=opening.weights) as session:
                if feeds is not None:
                    session.run(feeds)
        except (CannotRun, MemoryError):
            pass
        line.send(None)


def end_with(parent: int) -> None:
    """A model may take long to run, and nobody may wait for it any more."""
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=end_with, args=[int(sys.argv[2])], daemon=True).start()
    serve(Connection(int(sys.argv[1])))
