"""`superopt serve`: a process for the API, and workers or a dispatcher; whichever dies is started again."""

from __future__ import annotations

import importlib.util
import logging
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from server.children import ROOT, python, stop
from server.database import open_database
from server.devices import places
from server.logs import set_up_logs
from server.settings import FILE, Settings
from superopt.errors import BadOption

BACKLOG = 2048
LOOK_SECONDS = 0.1
FIRST_PAUSE, LONGEST_PAUSE, STEADY_SECONDS = 0.2, 10.0, 30.0
"""Before a process is started again: longer each time, until one has lived for a while."""
STOP_SECONDS = 10.0
"""On top of the grace that a running job gets."""
WORKER, DISPATCH = python("server.worker"), python("server.dispatch")
log = logging.getLogger("superopt.serve")


@dataclass
class Post:
    """A process that has to be there."""

    name: str
    command: Sequence[str]
    inherited: tuple[int, ...] = ()
    child: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    pause: float = FIRST_PAUSE
    due: float = field(default_factory=time.monotonic)


class Supervisor:
    def __init__(self, settings: Settings, worker: Sequence[str] = WORKER, dispatch: Sequence[str] = DISPATCH) -> None:
        """`worker` starts a worker, given a place and our process id; `dispatch` a dispatcher, given the latter."""
        self._settings, self._worker, self._dispatch = settings, worker, dispatch
        self._over = threading.Event()

    def run(self) -> None:
        """Until asked to stop. Raises before anything is started where a setting makes no sense."""
        set_up_logs(self._settings.log_level)
        self._settings.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        posts = self._workers() if self._settings.role != "api" else []
        listening = self._listen() if self._settings.role != "worker" else None
        open_database(self._settings.database_url).close()  # migrated once, before several need it
        if listening is not None:
            descriptor = listening.fileno()
            posts.insert(0, Post("api", python("server.api", str(descriptor)), (descriptor,)))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self._over.set())
        try:
            while not self._over.wait(LOOK_SECONDS):
                for post in posts:
                    self._look_after(post)
        finally:
            self._stop(posts)

    def _workers(self) -> list[Post]:
        if self._settings.engine == "local":
            return [Post(f"worker {place.name}", [*self._worker, place.name]) for place in places(self._settings)]
        if importlib.util.find_spec("ray") is None:
            raise BadOption("--engine ray needs Ray: pip install 'superopt[ray]'")
        return [Post("dispatch", self._dispatch)]

    def _listen(self) -> socket.socket:
        """The socket is here, so that nobody is refused while the API is started again."""
        host, port = self._settings.host, self._settings.port
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
        except OSError as error:
            raise BadOption(f"--host {host} --port {port}: cannot listen: {error.strerror}") from None
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{listening.getsockname()[1]}"
        log.info("listening", extra={"url": url, "auth": "on" if self._settings.needs_token else "off"})
        return listening

    def _look_after(self, post: Post) -> None:
        now = time.monotonic()
        if post.child is not None and post.child.poll() is not None:
            lived = now - post.started
            post.pause = FIRST_PAUSE if lived > STEADY_SECONDS else min(LONGEST_PAUSE, 2 * post.pause)
            post.due = now + post.pause
            log.error("ended", extra={"post": post.name, "code": post.child.returncode, "again_in": post.pause})
            post.child = None
        if post.child is None and now >= post.due:
            post.started = now
            post.child = subprocess.Popen(
                [*post.command, str(os.getpid())], env=self._environment(), pass_fds=post.inherited,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            log.info("started", extra={"post": post.name, "pid": post.child.pid})

    def _environment(self) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != FILE}
        path = os.pathsep.join(filter(None, (str(ROOT), kept.get("PYTHONPATH"))))
        return {**kept, **self._settings.as_environment(), "PYTHONPATH": path}

    def _stop(self, posts: Sequence[Post]) -> None:
        log.info("stopping")
        running = [post.child for post in posts if post.child is not None]
        for child in running:
            if child.poll() is None:
                child.terminate()
        for child in running:
            stop(child, self._settings.grace + STOP_SECONDS)
