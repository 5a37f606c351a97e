# pyright: basic
"""Build the benchmark's own networks, seeded weights and all, into a folder.

    python benchmarks/built.py FOLDER [--only REGEX]

NAME.onnx is the network spelled out; NAME.hand.onnx, where there is one, the same network merged by hand.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import built_blocks, built_images, built_sequences, handmade

HAND = ".hand.onnx"

MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "repvgg-branches": built_images.repvgg,
    "mobileone-branches": built_images.mobileone,
    "retinanet-head": built_images.retinanet_head,
    "dilated-cnn": built_images.dilated_cnn,
    "hardswish-spelled": built_images.hard_swish,
    "gelu-spelled": built_sequences.gelu,
    "silu-spelled": built_sequences.silu,
    "lora-transformer": built_sequences.lora_transformer,
    "linear-attention": built_sequences.linear_attention,
    "matmul-chain": built_sequences.matmul_chain,
    "lstm-unrolled": built_sequences.lstm_unrolled,
    **built_blocks.MODELS,
}


def write(folder: Path, names: Sequence[str] = tuple(MODELS)) -> None:
    """The same bytes every time."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.onnx").write_bytes(MODELS[name]().SerializeToString(deterministic=True))
        if name in handmade.MODELS:
            (folder / f"{name}{HAND}").write_bytes(handmade.MODELS[name]().SerializeToString(deterministic=True))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--only", default="", metavar="REGEX", help="only models whose name matches")
    options = parser.parse_args(arguments)
    write(options.folder, [name for name in MODELS if re.search(options.only, name)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
