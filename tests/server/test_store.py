"""The store: whole files under their own digest, in a folder and behind a URL; uploads counted as they come."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from server.problems import Problem
from server.spool import ABANDONED, Allowance, Sink, Spooled, hashed, sweep
from server.store import Damaged, FolderStore, RemoteStore, Store, fetch, open_store
from superopt.errors import BadOption
from tests.server.world import World, sha256

pytestmark = pytest.mark.unit


@pytest.fixture(params=["folder", "file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    url = {"folder": str(tmp_path / "s"), "file": f"file://{tmp_path}/s", "memory": f"memory://{tmp_path.name}"}
    return open_store(url[request.param])


def spooled(folder: Path, content: bytes) -> Spooled:
    sink = Sink(folder, Allowance.of(1 << 20))
    sink.write(content)
    return sink.finish()


def test_what_is_put_is_there_under_its_digest(store: Store, tmp_path: Path) -> None:
    file = spooled(tmp_path, b"content")
    assert (file.digest, file.size) == (sha256(b"content"), 7)
    assert not store.has(file.digest)
    store.put(file)
    assert store.has(file.digest)
    assert not file.path.exists()
    with store.open(file.digest) as stored:
        stored.seek(3)
        assert stored.read() == b"tent"
    store.put(spooled(tmp_path, b"content"))  # again is harmless
    assert list(tmp_path.glob("*.part")) == []
    store.remove(file.digest)
    store.remove(file.digest)
    with pytest.raises(FileNotFoundError):
        store.open(file.digest)


def test_a_store_that_cannot_be_written_says_so(store: Store, tmp_path: Path) -> None:
    store.probe()
    if isinstance(store, FolderStore):
        os.rmdir(store.root)
        with pytest.raises(OSError, match="No such file"):
            store.probe()


def test_nothing_but_a_digest_becomes_a_path(store: Store) -> None:
    for name in ("../../etc/passwd", "A" * 64, "ab", "", "0" * 63 + "/"):
        with pytest.raises(ValueError, match="is no SHA-256"):
            store.open(name)


def test_what_was_damaged_is_not_handed_out(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "s")
    file = spooled(tmp_path, b"content")
    store.put(file)
    path = store.root / file.digest[:2] / file.digest[2:]
    path.write_bytes(b"c0ntent")
    with pytest.raises(Damaged, match="has other content"):
        fetch(store, file.digest, tmp_path / "out1")
    path.unlink()
    with pytest.raises(Damaged, match="is missing"):
        fetch(store, file.digest, tmp_path / "out2")


def test_a_store_on_another_file_system_gets_a_whole_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FolderStore(tmp_path / "s")
    file = spooled(tmp_path, b"content")
    replace = os.replace

    def across(source: str | Path, target: str | Path) -> None:
        if Path(source) == file.path:
            raise OSError(18, "Invalid cross-device link")
        replace(source, target)

    monkeypatch.setattr(os, "replace", across)
    store.put(file)
    with store.open(file.digest) as stored:
        assert stored.read() == b"content"
    assert [p.name for p in store.root.iterdir()] == [file.digest[:2]]
    assert not file.path.exists()


def test_a_remote_store_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(f"file://{tmp_path}/s")
    assert isinstance(store, RemoteStore)
    file = spooled(tmp_path, b"content")

    def lost(*_: object) -> None:
        raise OSError("connection lost")

    monkeypatch.setattr(store.system, "mv", lost)
    with pytest.raises(OSError, match="connection lost"):
        store.put(file)
    assert not store.has(file.digest)
    assert not [p for p in (tmp_path / "s").rglob("*") if p.is_file()]
    assert file.path.exists()


def test_an_unknown_protocol_is_refused() -> None:
    with pytest.raises(BadOption, match="--store: cannot be opened"):
        open_store("nosuch://bucket")


def test_the_parts_of_an_upload_share_one_allowance(tmp_path: Path) -> None:
    allowance = Allowance.of(1 << 20)
    first, second = Sink(tmp_path, allowance), Sink(tmp_path, allowance)
    first.write(b"x" * (1 << 19))
    second.write(b"x" * (1 << 19))
    with pytest.raises(Problem, match="larger than 1 MiB") as refused:
        second.write(b"x")
    assert refused.value.status == 413
    first.discard()
    second.discard()
    assert list(tmp_path.iterdir()) == []


def test_what_killed_processes_left_is_swept(tmp_path: Path) -> None:
    old, new = tmp_path / "1.part", tmp_path / "2.part"
    old.write_bytes(b"")
    new.write_bytes(b"")
    os.utime(old, (0, time.time() - ABANDONED - 1))
    assert sweep(tmp_path) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["2.part"]


def test_a_file_of_our_own_is_hashed(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"content")
    assert hashed(tmp_path / "f") == Spooled(tmp_path / "f", sha256(b"content"), 7)


def test_files_without_a_user_are_given_up_and_others_kept(world: World) -> None:
    lonely = world.keep(b"lonely")
    job = world.submit(b"of a job")
    world.claims.complete(world.claim(), world.outcome(b"of a result"))
    assert world.blobs.collect() == 0, "a file just kept may still get its row"
    assert world.blobs.collect(grace=-1.0) == 1
    assert not world.blobs.store.has(lonely.digest)
    assert world.find(job).state == "done"
    for content in (b"of a job", b"of a result"):
        assert world.blobs.store.has(sha256(content))


def test_a_file_kept_again_after_it_was_given_up_is_there(world: World) -> None:
    file = world.keep(b"x")
    world.blobs.collect(grace=-1.0)
    world.keep(b"x")
    assert world.blobs.store.has(file.digest)


def test_a_large_model_is_not_copied_to_its_end_for_nobody(world: World, tmp_path: Path) -> None:
    file = world.keep(b"x" * (5 << 20))
    looks: list[int] = []

    def look() -> None:
        looks.append(1)
        if len(looks) == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        world.blobs.fetch(file.digest, tmp_path / "copy", look)
    assert (tmp_path / "copy").stat().st_size <= 2 << 20
