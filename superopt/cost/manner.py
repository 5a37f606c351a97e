"""How onnxruntime runs a graph on a device, as far as prices depend on it.

On a CPU a convolution takes along what is added to its result and an activation behind that. CUDA has one such kernel,
com.microsoft.FusedConv: for Relu, in float32, with channels first. Everywhere else on a GPU an activation or a sum is a
kernel of its own, that reads and writes all there is.
"""

from __future__ import annotations

from dataclasses import dataclass

from superopt.cost.layouts import Images
from superopt.ir.graph import Node
from superopt.ir.types import DType
from superopt.runtime.deployment import Deployment


@dataclass(frozen=True)
class Manner:
    images: Images = "first"
    on_gpu: bool = False

    def activates(self, product: Node, op: str) -> bool:
        """Whether a product, or a convolution, does an activation behind it in passing."""
        if not self.on_gpu:
            return True
        return op == "Relu" and self.adds(product)

    def adds(self, convolution: Node) -> bool:
        """Whether it does so with a sum with another tensor."""
        if not self.on_gpu:
            return True
        type_ = convolution.outputs[0].tensor_type
        in_float32 = type_ is not None and type_.dtype is DType.FLOAT32
        return convolution.op in ("Conv", "FusedConv") and in_float32 and self.images == "first"


ON_A_CPU = Manner()


def in_a_region(deployment: Deployment) -> Manner:
    """Of a part of a model, where images have their channels last at the borders, too."""
    return Manner("last" if keeps_channels_last(deployment) else "first", deployment.target == "cuda")


def in_a_model(deployment: Deployment) -> Manner:
    return Manner("last inside" if keeps_channels_last(deployment) else "first", deployment.target == "cuda")


def keeps_channels_last(deployment: Deployment) -> bool:
    return deployment.provider_settings.get("prefer_nhwc") == "1"
