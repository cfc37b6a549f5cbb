"""The shapes of the models that were trained: those that the project ships, and others by their numbers.

GPT shapes are those of Megatron-LM: learned positions, biases everywhere, layer norms, dropout, the head tied to the
embedding. Vocabularies are as trained, with their padding.
"""

from functools import cache
from typing import Any

from mc.config import load_model
from mc.config.transformer import TransformerConfig

_GPT: dict[str, Any] = {
    "gated": False,
    "vocab": 51_200,
    "tied_embeddings": True,
    "biases": True,
    "norm": "layer",
    "positions": "learned",
    "max_positions": 2048,
    "dropout": True,
}


def _gpt(layers: int, hidden: int, heads: int, **others: Any) -> dict[str, Any]:
    return _GPT | {"layers": layers, "hidden": hidden, "heads": heads, "ffn": 4 * hidden} | others


# Narayanan et al. (SC21), Table 1, and Korthikanti et al. (2022), Table 3.
_INLINE: dict[str, dict[str, Any]] = {
    "gpt-1.7b": _gpt(24, 2304, 24),
    "gpt-3.6b": _gpt(30, 3072, 32),
    "gpt-7.5b": _gpt(36, 4096, 32),
    "gpt-18.4b": _gpt(40, 6144, 48),
    "gpt-22b": _gpt(48, 6144, 64),
    "gpt-39.1b": _gpt(48, 8192, 64),
    "gpt-76.1b": _gpt(60, 10_240, 80),
    "gpt-145.6b": _gpt(80, 12_288, 96),
    "gpt-174.6b": _gpt(96, 12_288, 96),
    "gpt-310.1b": _gpt(96, 16_384, 128),
    "gpt-529.6b": _gpt(105, 20_480, 128),
    "gpt-1008b": _gpt(128, 25_600, 160),
    # vTrain's sweep on one node: heads 16, and GPT-2's 50,257 tokens, padded.
    "gpt-h1024": _gpt(12, 1024, 16, vocab=50_304, max_positions=1024),
    "gpt-h2048": _gpt(12, 2048, 16, vocab=50_304, max_positions=1024),
    # MegaScale (NSDI 24), Table 1.
    "megascale-530b": _gpt(105, 20_480, 160, vocab=64_000, dropout=False),
    # Kimi K2's config.json: DeepSeek-V3's layers with more experts and fewer heads, one dense layer, no prediction of more tokens.
    "kimi-k2": {
        "layers": 61,
        "hidden": 7168,
        "heads": 64,
        "ffn": 18_432,
        "vocab": 163_840,
        "mla": {"q_rank": 1536, "kv_rank": 512, "nope_dim": 128, "rope_dim": 64, "v_dim": 128},
        "experts": {"count": 384, "top_k": 8, "ffn": 2048, "shared": 1, "dense_layers": 1},
    },
}
_SHIPPED = {"grok-1": "grok-1", "deepseek-v3-no-mtp": "deepseek-v3"}


def _bloom(name: str) -> dict[str, Any] | None:
    """BLOOM's preparation runs: `bloom-h14336-a112` has so wide a hidden state and so many heads."""
    parts = name.split("-")
    if parts[0] != "bloom":
        return None
    # No dropout, and attention biases by distance instead of learned positions, which cost nothing.
    hidden, heads = int(parts[1][1:]), int(parts[2][1:])
    others = {"vocab": 250_880, "dropout": False, "positions": "rotary", "max_positions": None}
    return _gpt(70, hidden, heads, **others)


@cache
def shape(name: str, layers: int | None = None) -> TransformerConfig:
    """The shape of a model, with another number of layers where a run had one."""
    inline = _INLINE.get(name) or _bloom(name)
    if inline is None:
        found = load_model(_SHIPPED.get(name, name)).transformer
        assert found is not None
        inline = found.model_dump(exclude_unset=False)
        if name.endswith("-no-mtp"):
            inline["mtp_layers"] = 0
    changed = {key: value for key, value in inline.items() if value is not None}
    return TransformerConfig.model_validate(changed if layers is None else changed | {"layers": layers})
