"""Shapes from a `config.json` of each family: those that are shipped, and the sizes that are published."""

import pytest

from mc.config import config_hash, load_model
from mc.transformer import build_transformer, parameters
from tests.config.hugging_face.files import DEEPSEEK, GEMMA3, GPT2, GPT_OSS, LLAMA, LLAMA4, MIXTRAL, QWEN3_MOE


@pytest.mark.parametrize(
    ("shipped", "content", "changes"),
    [
        ("llama3-8b", LLAMA, {}),
        (
            "llama3-70b",
            LLAMA,
            {
                "hidden_size": 8192,
                "intermediate_size": 28672,
                "num_attention_heads": 64,
                "num_hidden_layers": 80,
            },
        ),
        (
            "llama3-405b",
            LLAMA,
            {"hidden_size": 16384, "intermediate_size": 53248, "num_attention_heads": 128}
            | {"num_hidden_layers": 126, "head_dim": 128},
        ),
        (
            "llama2-7b",
            LLAMA,
            {"intermediate_size": 11008, "vocab_size": 32000, "num_key_value_heads": "(left out)"},
        ),
        ("mixtral-8x7b", MIXTRAL, {}),
        ("deepseek-v3", DEEPSEEK, {}),
        ("qwen3-235b-a22b", QWEN3_MOE, {}),
        (
            "qwen3-30b-a3b",
            QWEN3_MOE,
            {"hidden_size": 2048, "moe_intermediate_size": 768, "num_attention_heads": 32}
            | {"num_hidden_layers": 48},
        ),
        ("gpt-oss-120b", GPT_OSS, {}),
        (
            "nemotron-15b",
            LLAMA,
            {"model_type": "nemotron", "hidden_size": 6144, "intermediate_size": 24576}
            | {"num_attention_heads": 48, "vocab_size": 256000},
        ),
    ],
)
def test_imports_are_the_shipped_shapes(imported, shipped, content, changes):
    """Typed in twice, from the reports and from the files: one hash but for the name."""
    found = imported(content, ["name=x"], **changes)
    assert build_transformer(found.transformer) == build_transformer(load_model(shipped).transformer)
    assert config_hash(found) == config_hash(load_model(shipped, ["name=x"]))


@pytest.mark.parametrize(
    ("content", "millions"),
    [
        # The sizes that the weight files state.
        (GPT2, 124.44),
        (GPT2 | {"n_embd": 1600, "n_head": 25, "n_layer": 48}, 1557.61),
        # Scout, language model only: 107.77 of 109 billion.
        (
            {
                "text_config": LLAMA4["text_config"]
                | {"interleave_moe_layer_step": 1, "num_local_experts": 16}
            },
            107_770.0,
        ),
        # Maverick: 400 billion with about 0.9 of vision.
        (LLAMA4, 400_000.0),
        # 27.0 billion of 27.4.
        (GEMMA3, 27_009.0),
        # Qwen2.5 7B and 72B with biases of queries, keys and values.
        (
            LLAMA
            | {
                "model_type": "qwen2",
                "hidden_size": 3584,
                "intermediate_size": 18944,
                "num_attention_heads": 28,
            }
            | {"num_hidden_layers": 28, "num_key_value_heads": 4, "vocab_size": 152064},
            7615.62,
        ),
    ],
)
def test_published_sizes(imported, content, millions):
    shape = build_transformer(imported(content).transformer)
    assert parameters(shape).total / 1e6 == pytest.approx(millions, rel=4e-3)


def test_what_the_family_says(imported):
    gpt2 = imported(GPT2).transformer
    assert (gpt2.gated, gpt2.norm, gpt2.biases, gpt2.tied_embeddings) == (False, "layer", True, True)
    assert (gpt2.positions, gpt2.max_positions, gpt2.ffn, gpt2.dropout) == ("learned", 1024, 3072, True)
    qwen = imported(LLAMA, model_type="qwen2").transformer
    assert (qwen.biases, qwen.norm, qwen.dropout) == ("qkv", "rms", False)
    gemma = imported(GEMMA3).transformer
    assert (gemma.window, gemma.full_every, gemma.qk_norm, gemma.post_norms) == (1024, 6, True, True)
    assert gemma.tied_embeddings
    llama4 = imported(LLAMA4).transformer
    assert (llama4.window, llama4.chunked, llama4.full_every) == (8192, True, 4)
    assert (llama4.ffn, llama4.experts.ffn, llama4.experts.shared_ffn) == (16384, 8192, 8192)
    assert build_transformer(llama4).layer_kinds == ("dense", "moe") * 24
    lite = imported(DEEPSEEK, model_type="deepseek_v2", q_lora_rank=None, first_k_dense_replace=1).transformer
    assert lite.mla.q_rank is None
    assert lite.experts.dense_layers == 1
    biased = imported(LLAMA, attention_bias=True).transformer
    assert biased.biases == "attention"
    assert imported(LLAMA, attention_bias=True, mlp_bias=True).transformer.biases is True
    glm = imported(
        DEEPSEEK, model_type="glm4_moe", attention_bias=True, head_dim=128, use_qk_norm=True
    ).transformer
    assert (glm.biases, glm.qk_norm, glm.mla) == ("qkv", True, None)
    mistral = imported(LLAMA, model_type="mistral", sliding_window=4096).transformer
    assert (mistral.window, mistral.full_every) == (4096, None)
    vision = imported(
        {"model_type": "qwen3_vl_moe", "text_config": QWEN3_MOE | {"model_type": "qwen3_vl_moe_text"}}
    )
    assert vision.transformer.qk_norm
    assert vision.transformer.experts.count == 128
