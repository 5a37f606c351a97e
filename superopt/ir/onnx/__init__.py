"""The ONNX border: the only package that knows protobuf.

The file's own messages are kept beside the graph and edited, never rebuilt from the graph: what superopt does not
understand goes back out exactly as it came in, sparse tensors and unknown operators included.
"""

from superopt.ir.onnx.export import encode
from superopt.ir.onnx.inline import inlined
from superopt.ir.onnx.model import Model, load, parse
from superopt.ir.onnx.save import stage
from superopt.ir.onnx.stats import facts

__all__ = ["Model", "encode", "facts", "inlined", "load", "parse", "stage"]
