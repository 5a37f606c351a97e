# pyright: basic
"""Notes of superopt in a model's metadata: keys that begin with `superopt.`, beside the file's own, which are not ours
to touch. Notes of an earlier run go when new ones come: they describe another model."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import ModelProto

PREFIX = "superopt."


def own_notes(proto: ModelProto) -> dict[str, str]:
    """What an earlier run has left."""
    return {entry.key: entry.value for entry in proto.metadata_props if entry.key.startswith(PREFIX)}


def add_metadata(proto: ModelProto, metadata: Mapping[str, str]) -> None:
    """Adds the notes, sorted by key, after the file's own; without any the model stays as it is."""
    for key in metadata:
        if not key.startswith(PREFIX):
            raise ValueError(f"expected a key that begins with {PREFIX}, found {key}")
    if not metadata:
        return
    others = [entry for entry in proto.metadata_props if not entry.key.startswith(PREFIX)]
    del proto.metadata_props[:]
    proto.metadata_props.extend(others)
    for key, value in sorted(metadata.items()):
        proto.metadata_props.add(key=key, value=value)
