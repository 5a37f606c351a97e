"""Files by the SHA-256 of their content: in a folder, or behind any fsspec URL.

A file is there whole or not at all: it is written under another name and then renamed. Its name is its content's, so
that writing it twice is harmless and what is read can be held against what was asked for.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from server.spool import Spooled
from superopt.errors import BadOption, SuperoptError

CHUNK = 1 << 20
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Damaged(SuperoptError):
    """A stored file is missing, or is not what its name says."""


class Store(Protocol):
    def put(self, file: Spooled) -> None:
        """Keep a file, which is gone from where it was afterwards."""
        ...

    def has(self, digest: str) -> bool: ...

    def open(self, digest: str) -> BinaryIO:
        """For reading, from any position; FileNotFoundError where it is not there."""
        ...

    def remove(self, digest: str) -> None: ...

    def probe(self) -> None:
        """Write something and remove it; OSError where that fails."""
        ...


def open_store(url: str) -> Store:
    """A folder, or a URL with a protocol that fsspec knows."""
    if "://" not in url:
        return FolderStore(Path(url))
    import fsspec  # only where it is asked for

    try:
        system, root = fsspec.core.url_to_fs(url)
    except (ValueError, ImportError) as error:
        raise BadOption(f"--store: cannot be opened: {error}") from None
    return RemoteStore(system, root)


def fetch(store: Store, digest: str, target: Path, look: Callable[[], None] = lambda: None) -> None:
    """Copy a stored file to a path, and make sure on the way that it is what its name says.

    `look` is called all the while, and may raise to end it.
    """
    found = hashlib.sha256()
    try:
        with store.open(digest) as source, open(target, "xb") as out:
            while chunk := _read(source):
                found.update(chunk)
                out.write(chunk)
                look()
    except FileNotFoundError:
        raise Damaged(f"the stored file {digest[:12]} is missing") from None
    if found.hexdigest() != digest:
        raise Damaged(f"the stored file {digest[:12]} has other content than it was stored with")


def _read(source: BinaryIO) -> bytes:
    with reaching():
        return source.read(CHUNK)


@contextmanager
def reaching() -> Generator[None]:
    """Whatever a file system behind a URL raises, to everybody else it is an OSError."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(errno.EIO, type(error).__name__) from error


class FolderStore:
    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)

    def put(self, file: Spooled) -> None:
        target = self._path(file.digest)
        if target.exists():
            file.discard()
            return
        target.parent.mkdir(exist_ok=True)
        try:
            os.replace(file.path, target)
        except OSError:  # another file system
            staged = self.root / f"{uuid.uuid4().hex}.new"
            try:
                with open(file.path, "rb") as source, open(staged, "xb") as out:
                    shutil.copyfileobj(source, out, CHUNK)
                    out.flush()
                    os.fsync(out.fileno())
                os.replace(staged, target)
            finally:
                staged.unlink(missing_ok=True)
            file.discard()
        _sync_folder(target.parent)

    def has(self, digest: str) -> bool:
        return self._path(digest).exists()

    def open(self, digest: str) -> BinaryIO:
        return open(self._path(digest), "rb")

    def remove(self, digest: str) -> None:
        self._path(digest).unlink(missing_ok=True)

    def probe(self) -> None:
        path = self.root / f"{uuid.uuid4().hex}.probe"
        try:
            path.write_bytes(b"probe")
        finally:
            path.unlink(missing_ok=True)

    def _path(self, digest: str) -> Path:
        return self.root / _split(digest)


class RemoteStore:
    """Through fsspec; what the network does between two steps is the file system's business, not ours."""

    def __init__(self, system: Any, root: str) -> None:
        self.system, self.root = system, root.rstrip("/")
        with reaching():
            system.makedirs(self.root, exist_ok=True)

    def put(self, file: Spooled) -> None:
        target = self._path(file.digest)
        with reaching():
            if not self.system.exists(target):
                self._write(file, target)
        file.discard()

    def _write(self, file: Spooled, target: str) -> None:
        staged = f"{self.root}/{uuid.uuid4().hex}.new"
        self.system.makedirs(target.rpartition("/")[0], exist_ok=True)
        try:
            self.system.put_file(str(file.path), staged)
            self.system.mv(staged, target)
        except BaseException:
            with contextlib.suppress(Exception):  # what is wrong is told by the one that came first
                self.system.rm_file(staged)
            raise

    def has(self, digest: str) -> bool:
        path = self._path(digest)
        with reaching():
            return bool(self.system.exists(path))

    def open(self, digest: str) -> BinaryIO:
        path = self._path(digest)
        with reaching():
            return self.system.open(path, "rb")

    def remove(self, digest: str) -> None:
        path = self._path(digest)
        with contextlib.suppress(FileNotFoundError), reaching():
            self.system.rm_file(path)

    def probe(self) -> None:
        path = f"{self.root}/{uuid.uuid4().hex}.probe"
        with reaching():
            self.system.pipe_file(path, b"probe")
            self.system.rm_file(path)

    def _path(self, digest: str) -> str:
        return f"{self.root}/{_split(digest)}"


def _split(digest: str) -> str:
    """No name but a digest ever becomes part of a path."""
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"{digest[:80]!r} is no SHA-256")
    return f"{digest[:2]}/{digest[2:]}"


def _sync_folder(folder: Path) -> None:
    """So that the name survives a loss of power, not just the content."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
