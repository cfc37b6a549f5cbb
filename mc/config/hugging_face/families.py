"""What the class of a model in Transformers says and its `config.json` does not, by `model_type`."""

from dataclasses import dataclass
from typing import Literal

from mc.config.transformer import Biases


@dataclass(frozen=True)
class Family:
    """What the class of a model says and its file does not.

    Attributes:
        gated: as in `TransformerConfig`.
        norm: likewise.
        biases: likewise; with `bias_key`, what `attention_bias: true` means.
        bias_key: whether `attention_bias` and `mlp_bias` decide.
        qk_norm: as in `TransformerConfig`.
        post_norms: likewise.
        tied: of the embeddings, where the file has no `tie_word_embeddings`.
        learned: whether positions are learned.
        experts: `none`; the `only` network of each layer, as wide as `intermediate_size` says; or of a width
            of their `own`, beside dense layers.
        latent: whether attention is latent.
        window: `none`, for `all` layers unless other keys say more, or for every second one (`half`).
        grouped: whether the file has to say how many heads of keys and values there are.
    """

    gated: bool = True
    norm: Literal["rms", "layer"] = "rms"
    biases: Biases = False
    bias_key: bool = False
    qk_norm: bool = False
    post_norms: bool = False
    tied: bool = False
    learned: bool = False
    experts: Literal["none", "only", "own"] = "none"
    latent: bool = False
    window: Literal["none", "all", "half"] = "none"
    grouped: bool = True


_DEEPSEEK = Family(latent=True, experts="own", grouped=False, biases="attention", bias_key=True)
FAMILIES: dict[str, Family] = {
    "llama": Family(biases="attention", bias_key=True, grouped=False),
    "granite": Family(biases="attention", bias_key=True),
    "mistral": Family(window="all"),
    "mixtral": Family(experts="only", window="all"),
    "phi3": Family(window="all"),
    "qwen2": Family(biases="qkv", window="all"),
    "qwen2_moe": Family(biases="qkv", window="all", experts="own"),
    "qwen3": Family(biases="attention", bias_key=True, qk_norm=True, window="all"),
    "qwen3_moe": Family(biases="attention", bias_key=True, qk_norm=True, window="all", experts="own"),
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK,
    "kimi_k2": _DEEPSEEK,
    "glm4_moe": Family(biases="qkv", bias_key=True, experts="own"),
    "gpt_oss": Family(biases=True, experts="only", window="half"),
    "llama4": Family(biases="attention", bias_key=True, qk_norm=True, experts="own"),
    "gemma": Family(biases="attention", bias_key=True, tied=True),
    "gemma2": Family(biases="attention", bias_key=True, tied=True, post_norms=True, window="half"),
    "gemma3": Family(
        biases="attention", bias_key=True, tied=True, post_norms=True, qk_norm=True, window="all"
    ),
    "nemotron": Family(biases="attention", bias_key=True, gated=False, norm="layer"),
    "starcoder2": Family(gated=False, norm="layer", biases=True, tied=True, window="all"),
    "gpt_neox": Family(gated=False, norm="layer", biases=True, grouped=False),
    "gpt2": Family(gated=False, norm="layer", biases=True, tied=True, learned=True, grouped=False),
}
