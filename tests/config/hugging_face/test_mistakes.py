"""What is wrong in a `config.json` is said at the key that is wrong."""

import pytest
from typer.testing import CliRunner

from mc.cli.app import app
from mc.config import load_model
from mc.document import ConfigError
from tests.config.hugging_face.files import DEEPSEEK, GEMMA3, GPT_OSS, LLAMA, LLAMA4, MIXTRAL, QWEN3_MOE

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


def test_the_command_line_refuses_with_2(imported):
    with pytest.raises(ConfigError):
        imported(LLAMA, model_type="mamba2")
    done = CliRunner().invoke(app, ["validate", "model.yaml"])
    assert done.exit_code == 2
    assert "config.json:12:17: model_type: unsupported model type `mamba2`" in done.output
