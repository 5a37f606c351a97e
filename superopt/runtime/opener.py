"""Where models are tried out: `python -m superopt.runtime.opener FD`. It ends when nobody asks any more."""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection

from superopt.errors import CannotRun
from superopt.runtime.session import Session


def serve(line: Connection) -> None:
    """Opens what comes, or runs it, and answers; what onnxruntime merely refuses the asker will hear itself."""
    session: Session | None = None
    while True:
        try:
            opening, feeds = line.recv()
        except EOFError:
            return
        try:
            if opening is not None:
                if session is not None:
                    session.close()
                session = None
                session = Session(opening.model, opening.deployment, opening.folder, weights=opening.weights)
            elif session is not None:
                session.run(feeds)
        except CannotRun:
            pass
        line.send(None)


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
