"""superopt makes ONNX models faster without changing what they compute.

>>> import superopt
>>> result = superopt.optimize("model.onnx", target="cpu")
>>> result.save("faster.onnx")
>>> print(result.report.verdict)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from superopt.version import __version__

if TYPE_CHECKING:
    from superopt.client import AsyncClient, Client
    from superopt.engine.library import Result, optimize

__all__ = ["AsyncClient", "Client", "Result", "__version__", "optimize"]


def __getattr__(name: str) -> Any:
    """`optimize` brings numpy and onnxruntime with it; asking for the version does not."""
    if name in ("Result", "optimize"):
        from superopt.engine import library

        return getattr(library, name)
    if name in ("AsyncClient", "Client"):
        from superopt import client

        return getattr(client, name)
    raise AttributeError(f"module 'superopt' has no attribute {name!r}")
