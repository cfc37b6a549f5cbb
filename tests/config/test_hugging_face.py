"""Shapes from files as Hugging Face Transformers writes them: right numbers, or an error at the key that is wrong."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from mc.cli.app import app
from mc.config import config_hash, load_experiment, load_model, resolved_yaml
from mc.document import ConfigError
from mc.transformer import build_transformer, parameters

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 128000,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 8192,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "rope_theta": 500000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "vocab_size": 128256,
}
MIXTRAL = {
    "attention_dropout": 0.0,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "model_type": "mixtral",
    "num_attention_heads": 32,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "output_router_logits": False,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 32000,
}
DEEPSEEK = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "auto_map": {"AutoConfig": "configuration_deepseek.DeepseekV3Config"},
    "ep_size": 1,
    "first_k_dense_replace": 3,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "kv_lora_rank": 512,
    "model_type": "deepseek_v3",
    "moe_intermediate_size": 2048,
    "moe_layer_freq": 1,
    "n_group": 8,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "norm_topk_prob": True,
    "num_attention_heads": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 61,
    "num_key_value_heads": 128,
    "num_nextn_predict_layers": 1,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "quantization_config": {"fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]},
    "routed_scaling_factor": 2.5,
    "scoring_func": "sigmoid",
    "tie_word_embeddings": False,
    "topk_group": 4,
    "topk_method": "noaux_tc",
    "torch_dtype": "bfloat16",
    "v_head_dim": 128,
    "vocab_size": 129280,
}
QWEN3_MOE = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "attention_bias": False,
    "decoder_sparse_step": 1,
    "head_dim": 128,
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "max_window_layers": 94,
    "mlp_only_layers": [],
    "model_type": "qwen3_moe",
    "moe_intermediate_size": 1536,
    "num_attention_heads": 64,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 94,
    "num_key_value_heads": 4,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
GPT2 = {
    "activation_function": "gelu_new",
    "architectures": ["GPT2LMHeadModel"],
    "attn_pdrop": 0.1,
    "embd_pdrop": 0.1,
    "layer_norm_epsilon": 1e-05,
    "model_type": "gpt2",
    "n_ctx": 1024,
    "n_embd": 768,
    "n_head": 12,
    "n_layer": 12,
    "n_positions": 1024,
    "resid_pdrop": 0.1,
    "vocab_size": 50257,
}
GPT_OSS = {
    "attention_bias": True,
    "experts_per_token": 4,
    "head_dim": 64,
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "layer_types": ["sliding_attention", "full_attention"] * 18,
    "model_type": "gpt_oss",
    "num_attention_heads": 64,
    "num_experts_per_tok": 4,
    "num_hidden_layers": 36,
    "num_key_value_heads": 8,
    "num_local_experts": 128,
    "sliding_window": 128,
    "tie_word_embeddings": False,
    "vocab_size": 201088,
}
# Multimodal: the language model is a part of it.
LLAMA4: dict[str, Any] = {
    "architectures": ["Llama4ForConditionalGeneration"],
    "model_type": "llama4",
    "text_config": {
        "attention_bias": False,
        "attention_chunk_size": 8192,
        "head_dim": 128,
        "hidden_size": 5120,
        "interleave_moe_layer_step": 2,
        "intermediate_size": 8192,
        "intermediate_size_mlp": 16384,
        "model_type": "llama4_text",
        "no_rope_layers": [],
        "num_attention_heads": 40,
        "num_experts_per_tok": 1,
        "num_hidden_layers": 48,
        "num_key_value_heads": 8,
        "num_local_experts": 128,
        "use_qk_norm": False,
        "vocab_size": 202048,
    },
    "tie_word_embeddings": False,
    "vision_config": {"hidden_size": 1408, "model_type": "llama4_vision_model", "num_hidden_layers": 34},
}
GEMMA3: dict[str, Any] = {
    "model_type": "gemma3",
    "text_config": {
        "head_dim": 128,
        "hidden_size": 5376,
        "intermediate_size": 21504,
        "model_type": "gemma3_text",
        "num_attention_heads": 32,
        "num_hidden_layers": 62,
        "num_key_value_heads": 16,
        "sliding_window": 1024,
        "sliding_window_pattern": 6,
        "vocab_size": 262208,
    },
    "vision_config": {"hidden_size": 1152, "num_hidden_layers": 27},
}


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """A function from the content of a config.json, with changes, to the loaded model."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.yaml").write_text("name: imported\nhugging_face: config.json\n")

    def load(content, overrides=(), /, **changes):
        content = {key: value for key, value in {**content, **changes}.items() if value != "(left out)"}
        (tmp_path / "config.json").write_text(json.dumps(content, indent=2))
        return load_model("model.yaml", overrides)

    return load


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


def test_the_numbers_are_what_is_kept(imported, tmp_path):
    """Printed, the configuration stands alone; where the file was does not count."""
    found = imported(LLAMA)
    text = resolved_yaml(found)
    assert "hugging_face" not in text
    assert "layers: 32" in text
    (tmp_path / "config.json").unlink()
    (tmp_path / "alone.yaml").write_text(text)
    assert load_model("alone.yaml") == found


def test_references_start_from_the_file_that_says_them(imported, tmp_path, monkeypatch):
    found = imported(LLAMA)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "heir.yaml").write_text("extends: ../model.yaml\n")
    (tmp_path / "deep" / "other.yaml").write_text("name: imported\nhugging_face: ../config.json\n")
    (tmp_path / "deep" / "folder.yaml").write_text("name: imported\nhugging_face: ..\n")
    monkeypatch.chdir(tmp_path / "deep")
    assert load_model("heir.yaml") == load_model("other.yaml") == load_model("folder.yaml") == found


def test_overrides_name_the_file_or_change_the_numbers(imported, tmp_path):
    found = imported(DEEPSEEK, ["transformer.mtp_layers=0", "transformer.layers=4"])
    assert (found.transformer.mtp_layers, found.transformer.layers) == (0, 4)
    (tmp_path / "other.json").write_text(json.dumps(LLAMA))
    assert imported(DEEPSEEK, ["hugging_face=other.json"]).transformer.layers == 32


def test_tabs_and_byte_order_marks_are_json(imported, tmp_path):
    found = imported(LLAMA)
    (tmp_path / "config.json").write_text("\ufeff" + json.dumps(LLAMA, indent="\t"), encoding="utf-8")
    assert load_model("model.yaml") == found


MISTAKES = [
    (
        LLAMA,
        {"num_hidden_layers": "(left out)"},
        "config.json:1:1: num_hidden_layers: missing key; `num_hidden_layers` ",
    ),
    (
        LLAMA,
        {"vocab_size": "many"},
        "config.json:22:17: vocab_size: expected a whole number of at least 1; got 'many'",
    ),
    (LLAMA, {"vocab_size": 0}, "config.json:22:17: vocab_size: expected a whole number of at least 1; got 0"),
    (LLAMA, {"vocab_size": 1.5}, "vocab_size: expected a whole number of at least 1; got 1.5"),
    (LLAMA, {"num_key_value_heads": 5}, "config.json:15:26: transformer.kv_heads: expected a divisor of 32"),
    (
        LLAMA,
        {"hidden_size": 4100},
        "transformer.heads: expected `head_dim`, since 4100 / 32 heads is no whole number",
    ),
    (LLAMA, {"tie_word_embeddings": "no"}, "tie_word_embeddings: expected true or false; got 'no'"),
    (LLAMA, {"attention_dropout": "no"}, "attention_dropout: expected a number; got 'no'"),
    (LLAMA, {"num_layers": 8}, "num_layers: expected the same as `num_hidden_layers`, 32; got 8"),
    (LLAMA, {"mlp_bias": True}, "mlp_bias: expected false without `attention_bias`"),
    (
        LLAMA,
        {"model_type": "mamba2"},
        "config.json:12:17: model_type: unsupported model type `mamba2`; expected one of",
    ),
    (LLAMA, {"model_type": "lama"}, "unsupported model type `lama`; did you mean `llama`?"),
    (
        LLAMA,
        {"model_type": "(left out)"},
        "config.json:1:1: model_type: missing key; it tells what the numbers mean",
    ),
    (
        LLAMA,
        {"model_type": "mistral"},
        "sliding_window: missing key; give null for attention without a window",
    ),
    (
        MIXTRAL,
        {"num_key_value_heads": "(left out)"},
        "num_key_value_heads: missing key; `num_key_value_heads` (or",
    ),
    (
        MIXTRAL,
        {"num_local_experts": "(left out)"},
        "num_experts: missing key; `num_experts` (or `num_local_experts`",
    ),
    (
        MIXTRAL,
        {"num_experts_per_tok": 9},
        "transformer.experts.top_k: expected at most 8, the number of experts; got 9",
    ),
    (DEEPSEEK, {"q_lora_rank": "(left out)"}, "q_lora_rank: missing key"),
    (
        DEEPSEEK,
        {"moe_layer_freq": 2},
        "moe_layer_freq: expected 1; got 2: write the numbers into `transformer`",
    ),
    (DEEPSEEK, {"moe_intermediate_size": "(left out)"}, "moe_intermediate_size: missing key"),
    (DEEPSEEK, {"first_k_dense_replace": "(left out)"}, "first_k_dense_replace: missing key"),
    (DEEPSEEK, {"attention_bias": True}, "attention_bias: expected false with latent attention"),
    (
        QWEN3_MOE,
        {"mlp_only_layers": [1]},
        "mlp_only_layers: expected the first layers, 0, 1, ...; other patterns",
    ),
    (
        QWEN3_MOE,
        {"use_sliding_window": True, "sliding_window": 8},
        "use_sliding_window: expected `layer_types` beside",
    ),
    (
        GPT_OSS,
        {"layer_types": ["linear_attention"]},
        "layer_types: expected full_attention, sliding_attention",
    ),
    (
        GPT_OSS,
        {"layer_types": ["full_attention", "sliding_attention"]},
        "layer_types: expected layers 1, 2, ... to attend to everything, the others in windows",
    ),
    (
        GEMMA3,
        {"text_config": {"model_type": "gemma3_text"}},
        "config.json:3:18: text_config.num_hidden_layers: missing",
    ),
    (
        LLAMA4,
        {"text_config": LLAMA4["text_config"] | {"moe_layers": [0, 1]}},
        "text_config.moe_layers: expected each 2.",
    ),
]


@pytest.mark.parametrize(("content", "changes", "message"), MISTAKES)
def test_mistakes_are_reported_at_the_key(imported, content, changes, message):
    with pytest.raises(ConfigError) as error:
        imported(content, **changes)
    assert message in str(error.value)
    assert all(line.startswith(("config.json", "model.yaml")) for line in str(error.value).splitlines())


def test_all_that_is_missing_is_reported_at_once(imported):
    """Gemma 3 is published without what it has in common with Transformers' defaults."""
    text = {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34, "sliding_window": 1024}
    with pytest.raises(ConfigError) as error:
        imported({"model_type": "gemma3", "text_config": text})
    found = [line.split(": ")[1] for line in str(error.value).splitlines()]
    keys = (
        "intermediate_size",
        "num_attention_heads",
        "num_key_value_heads",
        "sliding_window_pattern",
        "vocab_size",
    )
    assert sorted(found) == [f"text_config.{key}" for key in keys]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{,}", "config.json:1:2: not JSON: Expecting property name"),
        ("[" * 100_000, "config.json: nested too deep"),
        ("[1]", "config.json:1:1: expected a mapping of keys to values; got a list"),
        ('{"model_type": "llama", "model_type": "x"}', "config.json:1:25: model_type: duplicate key"),
        ("\ud800", "model.yaml:2:15: hugging_face: config.json cannot be read: it is not UTF-8 text"),
        (
            None,
            "model.yaml:2:15: hugging_face: config.json cannot be read: No such file or directory; nothing is ",
        ),
    ],
)
def test_files_that_cannot_be_read(imported, tmp_path, text, message):
    imported(LLAMA)
    (tmp_path / "config.json").unlink()
    if text is not None:
        (tmp_path / "config.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(ConfigError) as error:
        load_model("model.yaml")
    assert str(error.value).startswith(message)


def test_one_way_only(imported, tmp_path):
    imported(LLAMA)
    (tmp_path / "model.yaml").write_text("name: x\nhugging_face: config.json\ncompute: {time: 1 ms}\n")
    expected = "expected either `transformer` or `hugging_face` or `compute` and `exchange`"
    with pytest.raises(ConfigError, match=expected):
        load_model("model.yaml")
    (tmp_path / "model.yaml").write_text("name: x\n")
    with pytest.raises(ConfigError, match=f"model.yaml:1:1: {expected}; got neither"):
        load_model("model.yaml")
    (tmp_path / "model.yaml").write_text("name: x\nhugging_face: [1]\n")
    with pytest.raises(
        ConfigError, match=r"model.yaml:2:15: hugging_face: expected the path of a config.json"
    ):
        load_model("model.yaml")


def test_in_an_experiment(imported, write, tmp_path):
    """Inline, by reference, or by flag; what is wrong is at its place."""
    del tmp_path
    imported(LLAMA)
    write("config.json", json.dumps(LLAMA))
    write("model.yaml", "name: imported\nhugging_face: config.json\n")
    plan = ["plan={tp: 8, micro_batch: 1, global_batch: 128, sequence_length: 4096}"]
    first = load_experiment("experiment.yaml", plan)
    assert first.model.transformer is not None
    assert first.model.transformer.layers == 32
    inline = load_experiment("experiment.yaml", [*plan, "model={name: imported, hugging_face: config.json}"])
    assert config_hash(inline) == config_hash(first)
    shorter = load_experiment("experiment.yaml", [*plan, "model.transformer.layers=8"])
    assert shorter.model.transformer is not None
    assert shorter.model.transformer.layers == 8
    with pytest.raises(
        ConfigError, match=r"^--set model.hugging_face=no.json: model.hugging_face: no.json cannot be"
    ):
        load_experiment(
            "experiment.yaml", [*plan, "model.hugging_face=no.json", "model.transformer.layers=8"]
        )


def test_the_command_line_refuses_with_2(imported):
    with pytest.raises(ConfigError):
        imported(LLAMA, model_type="mamba2")
    done = CliRunner().invoke(app, ["validate", "model.yaml"])
    assert done.exit_code == 2
    assert "config.json:12:17: model_type: unsupported model type `mamba2`" in done.output
