"""Shapes for tests: the shipped ones, and small ones with each feature."""

from functools import cache

from mc.config import load_model
from mc.config.shipped import names
from mc.config.transformer import TransformerConfig
from mc.transformer import Transformer, build_transformer


@cache
def shipped() -> dict[str, Transformer]:
    """All shipped models that are transformers, by name of file."""
    found = {name: load_model(name).transformer for name in names("model")}
    return {name: build_transformer(each) for name, each in found.items() if each is not None}


def shape(**fields) -> Transformer:
    """The shape of a configuration, small unless the fields say otherwise."""
    base = {"layers": 4, "hidden": 64, "heads": 8, "ffn": 96, "vocab": 320}
    return build_transformer(TransformerConfig.model_validate(base | fields))


def gpt(
    layers: int, hidden: int, heads: int, vocab: int, positions: int, *, dropout: bool = True
) -> Transformer:
    """The shape that the formulas of the Megatron papers are about."""
    return shape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        ffn=4 * hidden,
        vocab=vocab,
        gated=False,
        tied_embeddings=True,
        biases=True,
        norm="layer",
        positions="learned",
        max_positions=positions,
        dropout=dropout,
    )


SMALL = {
    "dense": {},
    "grouped": {"kv_heads": 2, "head_dim": 16},
    "biased": {"biases": True, "norm": "layer", "gated": False, "dropout": True},
    "half biased": {"biases": "qkv", "qk_norm": True, "post_norms": True},
    "learned": {"positions": "learned", "max_positions": 128, "tied_embeddings": True},
    "windowed": {"window": 24, "full_every": 2},
    "chunked": {"window": 24, "chunked": True},
    "latent": {"mla": {"q_rank": 24, "kv_rank": 16, "nope_dim": 8, "rope_dim": 4, "v_dim": 12}},
    "latent, direct queries": {"mla": {"kv_rank": 16, "nope_dim": 8, "rope_dim": 4, "v_dim": 12}},
    "experts": {"experts": {"count": 8, "top_k": 2, "ffn": 32}},
    "some experts": {
        "experts": {"count": 8, "top_k": 3, "ffn": 32, "shared": 2, "dense_layers": 1, "every": 2},
        "biases": True,
    },
    "further tokens": {"mtp_layers": 2, "experts": {"count": 4, "top_k": 1, "ffn": 32, "dense_layers": 2}},
}
