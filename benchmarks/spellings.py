# pyright: basic, reportMissingImports=false
"""Small networks of many architectures as torch's exporters spell them, for mining and for recognized.py.

    python benchmarks/spellings.py DIR [--only REGEX] [--ways legacy17,dynamo18]

Runs where torch, transformers and onnxscript are installed, which superopt does not need. Weights are random under a
fixed seed; two layers of each network, narrow, no two sizes alike. handwritten.py and handwritten_attention.py have
more. A network that an exporter refuses is told and left.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import handwritten
import handwritten_attention
import torch
import transformers
from handwriting import networks_of

LENGTH, WIDTH, HEADS, INNER, VOCABULARY = 20, 48, 4, 72, 100
WAYS = ("legacy14", "legacy17", "dynamo18", "dynamo23")
ATTENTION = ("eager", "sdpa")

Network = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]
NETWORKS: dict[str, Callable[[str], Network]] = networks_of(handwritten, handwritten_attention)


class Named(torch.nn.Module):
    """A model that is handed its inputs by name, and gives its first result."""

    def __init__(self, model: torch.nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *values: torch.Tensor) -> torch.Tensor:
        return self.model(**dict(zip(self.names, values, strict=True)))[0]


def tokens(length: int = LENGTH) -> torch.Tensor:
    return torch.randint(5, VOCABULARY, (1, length))


def mask() -> torch.Tensor:
    return torch.ones(1, LENGTH, dtype=torch.long)


def image(size: int = 32) -> torch.Tensor:
    return torch.randn(1, 3, size, size)


def made(kind: str, configuration: str, attention: str, **settings: object) -> torch.nn.Module:
    """A model of transformers from its configuration."""
    config = getattr(transformers, configuration)(**settings)
    config._attn_implementation = attention
    if hasattr(config, "use_cache"):
        config.use_cache = False
    return getattr(transformers, kind)(config)


def network(build: Callable[[str], Network]) -> Callable[[str], Network]:
    NETWORKS[build.__name__] = build
    return build


ENCODER = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": HEADS, "intermediate_size": INNER}
TEXT = {**ENCODER, "vocab_size": VOCABULARY, "max_position_embeddings": 64}
GROUPED = {**TEXT, "num_key_value_heads": 2}
STACKS = {
    "d_model": WIDTH, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS, "encoder_ffn_dim": INNER, "decoder_ffn_dim": INNER,
}  # fmt: skip


def read(kind: str, attention: str, model: str = "Model", **settings: object) -> Network:
    """A model of text with a mask of keys."""
    built = made(f"{kind}{model}", f"{kind}Config", attention, **{**TEXT, **settings})
    return Named(built, ("input_ids", "attention_mask")), (tokens(), mask())


@network
def bert(attention: str) -> Network:
    return read("Bert", attention)


@network
def roberta(attention: str) -> Network:
    return read("Roberta", attention)


@network
def electra(attention: str) -> Network:
    return read("Electra", attention, embedding_size=WIDTH)


@network
def gpt2(attention: str) -> Network:
    return read("GPT2", attention, "LMHeadModel", n_embd=WIDTH, n_layer=2, n_head=HEADS, n_inner=INNER)


@network
def opt(attention: str) -> Network:
    return read("OPT", attention, "ForCausalLM", ffn_dim=INNER, word_embed_proj_dim=WIDTH)


@network
def llama(attention: str) -> Network:
    return read("Llama", attention, "ForCausalLM", **GROUPED)


@network
def mistral(attention: str) -> Network:
    return read("Mistral", attention, "ForCausalLM", **GROUPED, sliding_window=8, head_dim=16)


@network
def qwen2(attention: str) -> Network:
    return read("Qwen2", attention, "ForCausalLM", **GROUPED)


@network
def gpt_neox(attention: str) -> Network:
    return read("GPTNeoX", attention, "ForCausalLM", head_dim=16)


@network
def t5(attention: str) -> Network:
    built = made(
        "T5Model", "T5Config", attention, d_model=WIDTH, d_kv=16, d_ff=INNER, num_layers=2, num_heads=HEADS,
        vocab_size=VOCABULARY,
    )  # fmt: skip
    return Named(built, ("input_ids", "decoder_input_ids")), (tokens(), tokens(14))


@network
def bart(attention: str) -> Network:
    built = made("BartModel", "BartConfig", attention, **STACKS, vocab_size=VOCABULARY, max_position_embeddings=64)
    return Named(built, ("input_ids", "attention_mask")), (tokens(), mask())


@network
def whisper(attention: str) -> Network:
    settings = {"num_mel_bins": 10, "max_source_positions": 25, "max_target_positions": 30, "pad_token_id": 0}
    built = made("WhisperModel", "WhisperConfig", attention, **STACKS, **settings, vocab_size=VOCABULARY)
    names = ("input_features", "decoder_input_ids", "decoder_attention_mask")
    return Named(built, names), (torch.randn(1, 10, 50), tokens(), mask())


@network
def vit(attention: str) -> Network:
    built = made("ViTModel", "ViTConfig", attention, **ENCODER, image_size=32, patch_size=8)
    return Named(built, ("pixel_values",)), (image(),)


@network
def clip_vision(attention: str) -> Network:
    built = made("CLIPVisionModel", "CLIPVisionConfig", attention, **ENCODER, image_size=32, patch_size=8)
    return Named(built, ("pixel_values",)), (image(),)


@network
def clip_text(attention: str) -> Network:
    return read("CLIPText", attention, eos_token_id=2, bos_token_id=1, pad_token_id=1)


@network
def swin(attention: str) -> Network:
    settings = {"embed_dim": 12, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}
    built = made("SwinModel", "SwinConfig", attention, **settings, image_size=32, patch_size=2)
    return Named(built, ("pixel_values",)), (image(),)


@network
def detr(attention: str) -> Network:
    backbone = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 12], depths=[1, 1], layer_type="basic")
    settings = {**STACKS, "num_queries": 10, "use_timm_backbone": False, "use_pretrained_backbone": False}
    built = made("DetrModel", "DetrConfig", attention, **settings, backbone=None, backbone_config=backbone)
    return Named(built, ("pixel_values",)), (image(),)


class Causal(torch.nn.Module):
    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("hidden", torch.nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return self.model(value, mask=self.hidden, is_causal=True)


@network
def torch_encoder(attention: str) -> Network:
    """torch's own layers; here `attention` says whether it is causal."""
    torch.backends.mha.set_fastpath_enabled(False)
    layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, batch_first=True, norm_first=True, activation="gelu")
    built = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return (built if attention == "eager" else Causal(built)), (torch.randn(1, LENGTH, WIDTH),)


def export(name: str, attention: str, way: str, path: Path) -> None:
    torch.manual_seed(0)
    model, inputs = NETWORKS[name](attention)
    model.eval()
    with torch.no_grad():
        for parameter in model.parameters():  # nothing is right because a bias happens to be zero
            parameter.add_(0.05 * torch.randn_like(parameter))
        names = [f"x{k}" for k in range(len(inputs))]
        dynamo, opset = way.startswith("dynamo"), int(re.sub(r"\D", "", way))
        further = {"external_data": False, "verbose": False} if dynamo else {}
        torch.onnx.export(model, inputs, str(path), input_names=names, opset_version=opset, dynamo=dynamo, **further)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--ways", default=",".join(WAYS))
    chosen = parser.parse_args()
    warnings.filterwarnings("ignore")
    chosen.out.mkdir(parents=True, exist_ok=True)
    for name in NETWORKS:
        for attention in ATTENTION:
            for way in chosen.ways.split(","):
                path = chosen.out / f"{name}.{attention}.{way}.onnx"
                if path.exists() or not re.search(chosen.only, path.name):
                    continue
                try:
                    export(name, attention, way, path)
                except Exception as error:  # noqa: BLE001 - exporters refuse in many ways
                    path.unlink(missing_ok=True)
                    print(f"{path.stem}: {type(error).__name__}: {str(error).strip().splitlines()[:1]}", flush=True)
                else:
                    print(f"{path.stem}: {path.stat().st_size:,} bytes", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
