# pyright: basic, reportMissingImports=false
"""Well-known networks of torchvision and transformers with random weights, and their way to ONNX.

Weights are those of the network's own initialization under a fixed seed; parameters that start out constant (zero
biases, unit scales, statistics of BatchNormalization) are jittered, so that no rewrite is right by accident.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

SEED = 0
OPSET = 17
VOCABULARY = 1000


@dataclass(frozen=True)
class Network:
    module: torch.nn.Module
    inputs: dict[str, torch.Tensor]


class First(torch.nn.Module):
    """Of all that a network of transformers gives, the first tensor, asked for by keyword."""

    def __init__(self, module: torch.nn.Module, *names: str) -> None:
        super().__init__()
        self.module, self.names = module, names

    def forward(self, *values):
        return self.module(**dict(zip(self.names, values, strict=True)))[0]


def pictures(name: str, pixels: int = 224, **options: Any) -> Callable[[int, str], Network]:
    def build(batch: int, attention: str) -> Network:
        models = __import__("torchvision").models
        return Network(getattr(models, name)(weights=None, **options), {"x": torch.randn(batch, 3, pixels, pixels)})

    return build


def _transformer(model: str, config: str, attention: str, **options: Any) -> torch.nn.Module:
    library = __import__("transformers")
    chosen = getattr(library, config)(**options)
    if attention:
        chosen._attn_implementation = attention
    if hasattr(chosen, "use_cache"):
        chosen.use_cache = False
    return getattr(library, model)(chosen)


def words(model: str, config: str, length: int, masked: bool = False, **options: Any) -> Callable[[int, str], Network]:
    """On `length` tokens; with a mask of ones as an input where a network is usually given one."""

    def build(batch: int, attention: str) -> Network:
        inputs = {"input_ids": torch.randint(0, VOCABULARY, (batch, length))}
        if masked:
            inputs["attention_mask"] = torch.ones(batch, length, dtype=torch.long)
        return Network(First(_transformer(model, config, attention, **options), *inputs), inputs)

    return build


def whisper_encoder(batch: int, attention: str) -> Network:
    size = {"d_model": 384, "encoder_layers": 4, "decoder_layers": 4}
    heads = {"encoder_attention_heads": 6, "decoder_attention_heads": 6}
    width = {"encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536}
    whole = _transformer("WhisperModel", "WhisperConfig", attention, **size, **heads, **width)
    return Network(First(whole.get_encoder(), "input_features"), {"mel": torch.randn(batch, 80, 3000)})


BUILDERS: dict[str, Callable[[int, str], Network]] = {
    "bert_base": words("BertModel", "BertConfig", 128),
    "bert_base_masked": words("BertModel", "BertConfig", 128, masked=True),
    "convnext_tiny": pictures("convnext_tiny"),
    "densenet121": pictures("densenet121"),
    "distilbert": words("DistilBertModel", "DistilBertConfig", 128),
    "efficientnet_b0": pictures("efficientnet_b0"),
    "gpt2": words("GPT2LMHeadModel", "GPT2Config", 64, masked=True),
    "inception_v3": pictures("inception_v3", 299, aux_logits=False, init_weights=False),
    "mobilenet_v2": pictures("mobilenet_v2"),
    "mobilenet_v3_large": pictures("mobilenet_v3_large"),
    "resnet50": pictures("resnet50"),
    "resnext50_32x4d": pictures("resnext50_32x4d"),
    "squeezenet1_1": pictures("squeezenet1_1"),
    "swin_t": pictures("swin_t"),
    "t5_small_encoder": words("T5EncoderModel", "T5Config", 128),
    "vit_b_16": pictures("vit_b_16"),
    "whisper_tiny_encoder": whisper_encoder,
}


TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def build(name: str, batch: int, dtype: str, device: str, attention: str) -> Network:
    """The same weights and inputs every time, whatever the attention is computed with ("eager", "sdpa")."""
    warnings.filterwarnings("ignore")
    torch.manual_seed(SEED)
    network = BUILDERS[name](batch, "" if name.startswith("t5") else attention)
    module = network.module.eval()
    jitter(module)
    torch.manual_seed(SEED + 1)
    inputs = {name: _drawn(tensor) for name, tensor in network.inputs.items()}
    wanted = TYPES[dtype]
    module = module.to(wanted)
    inputs = {name: t.to(wanted) if t.is_floating_point() else t for name, t in inputs.items()}
    return Network(module.to(device), {name: t.to(device) for name, t in inputs.items()})


def _drawn(tensor: torch.Tensor) -> torch.Tensor:
    """Anew, so that inputs do not depend on how many weights were drawn before; a mask stays one."""
    if tensor.is_floating_point():
        return torch.randn(tensor.shape)
    return tensor if bool((tensor == 1).all()) else torch.randint(0, VOCABULARY, tensor.shape)


def jitter(module: torch.nn.Module) -> None:
    generator = torch.Generator().manual_seed(SEED + 2)
    with torch.no_grad():
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            flat = tensor.flatten()
            if not tensor.is_floating_point() or flat.numel() < 2 or not bool((flat == flat[0]).all()):
                continue
            if not torch.isfinite(flat[0]):
                continue
            if "var" in name:
                tensor.copy_(torch.rand(tensor.shape, generator=generator) + 0.5)
            else:
                tensor.add_(0.1 * torch.randn(tensor.shape, generator=generator))


def export(network: Network, path: Path) -> str:
    """Writes the model; which of torch's exporters did it. The older one first: the newer needs onnxscript."""
    values = tuple(network.inputs.values())
    names = list(network.inputs)
    with torch.no_grad():
        try:
            torch.onnx.export(
                network.module, values, str(path), input_names=names, output_names=["out"],
                opset_version=OPSET, dynamo=False,
            )  # fmt: skip
        except Exception as error:  # noqa: BLE001 - it raises whatever its parts raise
            print(f"the older exporter failed: {type(error).__name__}: {error}"[:300], flush=True)
        else:
            return "legacy"
        torch.onnx.export(
            network.module, values, str(path), input_names=names, output_names=["out"],
            opset_version=OPSET + 1, dynamo=True, external_data=False, verbose=False,
        )  # fmt: skip
    return "dynamo"
