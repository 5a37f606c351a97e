"""The other optimizers for a machine that reaches no package index: their wheels in a folder to be taken along.

    python benchmarks/peer_wheels.py FOLDER [--python 3.12]

onnxruntime.transformers comes alone, without the rest of onnxruntime, which that machine has.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.commandline import run

WANTED = ("onnxsim", "onnxslim", "onnxscript", "onnx-ir", "colorama")
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux2014_x86_64", "manylinux_2_17_x86_64")
PARTS = (
    "onnxruntime/transformers/",
    "onnxruntime/tools/symbolic_shape_infer.py",
    "onnxruntime/tools/onnx_model_utils.py",
)
LEFT_OUT = "onnxruntime/transformers/models/"  # scripts, one for each kind of model; the optimizer needs none
PATIENCE = 900.0


def download(folder: Path, python: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        _pip(folder, python, WANTED)
        _pip(Path(name), python, ("onnxruntime-gpu",))
        (whole,) = Path(name).glob("*.whl")
        cut(whole, folder / f"onnxruntime_transformers-{whole.name.split('-')[1]}-py3-none-any.whl")


def _pip(folder: Path, python: str, wanted: Sequence[str]) -> None:
    platforms = [word for p in PLATFORMS for word in ("--platform", p)]
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps")
    done = run((*pip, "--only-binary=:all:", "--python-version", python, *platforms, "-d", folder, *wanted), PATIENCE)
    if done.returncode:
        raise SystemExit(done.problem)


def cut(whole: Path, part: Path) -> None:
    """onnxruntime.transformers and what it imports, out of a wheel."""
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            if name.startswith(PARTS) and not name.startswith(LEFT_OUT):
                target.writestr(name, source.read(name))


def unpacked(folder: Path, site: Path) -> Path:
    """All wheels of the folder in one place to import from, unpacked once."""
    for wheel in sorted(folder.glob("*.whl")):
        ready = site / f".{wheel.name}"
        if not ready.exists():
            with zipfile.ZipFile(wheel) as content:
                content.extractall(site)
            ready.touch()
    return site.resolve()


def versions(folder: Path) -> dict[str, str]:
    names = [wheel.name.split("-") for wheel in sorted(folder.glob("*.whl"))]
    return {name: version for name, version, *_ in names}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default="3.12", help="version of Python on that machine")
    given = parser.parse_args(arguments)
    download(given.folder, given.python)
    total = sum(path.stat().st_size for path in given.folder.iterdir())
    print(f"{given.folder}: {total / 2**20:.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
