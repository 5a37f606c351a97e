"""A PostgreSQL server of the tests' own, in a folder that goes with it."""

from __future__ import annotations

import itertools
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import psycopg
import pytest

from server.children import end_with_parent

USER = "superopt"
START_SECONDS = 300.0
NOBODY = ("postgres", "nobody")
"""Who runs the server where we are root, which it refuses to be run by."""
WHERE = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql*/bin")


def programs() -> Path:
    """The folder of `initdb` and `postgres`: on the path, or where distributions put them. Without them: skipped."""
    found = shutil.which("initdb")
    if found is not None and shutil.which("postgres", path=Path(found).resolve().parent) is not None:
        return Path(found).resolve().parent
    folders = [Path(f) for pattern in WHERE for f in Path("/").glob(pattern[1:]) if (f / "initdb").exists()]
    if not folders:
        pytest.skip("PostgreSQL is not installed here (Debian: apt install postgresql)")
    return max(folders, key=lambda f: [int(number) for number in re.findall(r"\d+", str(f))])


class Postgres:
    """A server that listens on a socket in its folder, and nowhere else. It does not care about a loss of power."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._programs = folder, programs()
        self._names = itertools.count()
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            account = _account()
            self._as = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
            os.chown(folder, account.pw_uid, account.pw_gid)
        self._call("initdb", "-D", "data", "-U", USER, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")

    def __enter__(self) -> Self:
        settings = {
            "listen_addresses": "", "unix_socket_directories": str(self.folder), "fsync": "off",
            "full_page_writes": "off", "max_connections": "300", "deadlock_timeout": "200ms",
        }  # fmt: skip
        flags = [f for name, value in settings.items() for f in ("-c", f"{name}={value}")]
        us = os.getpid()
        with open(self.folder / "log", "wb") as log:
            self._process = subprocess.Popen(
                [str(self._programs / "postgres"), "-D", "data", *flags], cwd=self.folder, stdout=log, stderr=log,
                start_new_session=True, preexec_fn=lambda: end_with_parent(us, signal.SIGQUIT), **self._as,
            )  # fmt: skip
        end = time.monotonic() + START_SECONDS
        while True:
            assert self._process.poll() is None, self.log
            try:
                psycopg.connect(self._conninfo("postgres")).close()
            except psycopg.OperationalError:
                assert time.monotonic() < end, self.log
                time.sleep(0.05)
            else:
                return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGQUIT)  # at once: nothing of it is needed any more
        self._process.wait(300)

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://{USER}@/{database}?host={self.folder}"

    def create(self, like: str = "template1") -> str:
        """The name of a new database."""
        name = f"test{next(self._names)}"
        self._execute(f"create database {name} template {like}")
        return name

    def drop(self, database: str) -> None:
        self._execute(f"drop database {database} with (force)")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self._conninfo("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())

    def _conninfo(self, database: str) -> str:
        return f"host={self.folder} user={USER} dbname={database}"

    def _call(self, program: str, *arguments: str) -> None:
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
        done = subprocess.run(
            [str(self._programs / program), *arguments], cwd=self.folder, env=environment, capture_output=True,
            text=True, **self._as,
        )  # fmt: skip
        assert done.returncode == 0, f"{program}: {done.stdout}\n{done.stderr}"


def _account() -> pwd.struct_passwd:
    for name in NOBODY:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    pytest.skip("PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody")


def short_folder() -> Path:
    """Not in pytest's own: a socket's path may have about a hundred characters, and others must get there."""
    folder = Path(tempfile.mkdtemp(prefix="superopt-pg-"))
    folder.chmod(0o711)
    return folder
