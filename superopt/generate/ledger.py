"""What was decided, on disk: a file of lines that only grows.

Each line is one answer, under a digest of all that the answer depends on. A run that was killed leaves at worst a torn
last line, which is cut off when the file is opened again; everything before it counts, and nothing is asked twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from superopt.errors import BadInput

Entry = Mapping[str, Any]


class Ledger:
    """Answers by key. Without a path it is kept in memory alone."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._entries: dict[str, Entry] = {}
        self._file: IO[bytes] | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b")
            self._read(self._file, path)

    def _read(self, file: IO[bytes], path: Path) -> None:
        """All whole lines; what follows the last of them is cut off."""
        file.seek(0)
        data = file.read()
        whole = data.rfind(b"\n") + 1
        for number, line in enumerate(data[:whole].split(b"\n")[:-1], 1):
            try:
                key, entry = json.loads(line)
            except ValueError:
                raise BadInput(f"{path}:{number}: is no entry of a ledger; move the file away to begin anew") from None
            self._entries[key] = entry
        if whole < len(data):
            file.truncate(whole)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def get(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def entries(self) -> Iterator[tuple[str, Entry]]:
        yield from self._entries.items()

    def add(self, *answers: tuple[str, Entry]) -> None:
        """On disk when this returns, all of them by one write."""
        new = [(key, dict(entry)) for key, entry in answers if key not in self._entries]
        if not new:
            return
        self._entries.update(new)
        if self._file is not None:
            self._file.write(b"".join(json.dumps(a, sort_keys=True).encode() + b"\n" for a in new))
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def export(entries: Iterable[tuple[str, Entry]], path: Path) -> int:
    """What was refuted and what is unknown, with the reasons, for people to read. Returns how many there are."""
    failed = [(key, e) for key, e in entries if e.get("verdict") in ("refuted", "unknown")]
    failed.sort(key=lambda item: (item[1]["verdict"], item[1]["form"], item[0]))
    parts = [f"# {e['verdict']} ({key}): {' '.join(str(e['reason']).split())}\n{e['form']}\n" for key, e in failed]
    staged = path.with_name(f".{path.name}.new")
    staged.write_text("\n".join(parts), encoding="utf-8")
    os.replace(staged, path)
    return len(failed)
