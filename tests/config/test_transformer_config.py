"""The shape of a transformer in a model file: what is filled in, and what cannot be."""

from pathlib import Path

import pytest

from mc.config import config_hash, load_any, load_model, resolved
from mc.config.transformer import TransformerConfig
from mc.document import ConfigError

PLAIN = "layers: 4, hidden: 64, heads: 8, vocab: 320"
EXPERTS = "count: 8, top_k: 2, ffn: 32"


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A function from the inside of `transformer` to the loaded shape."""
    monkeypatch.chdir(tmp_path)

    def load(text) -> TransformerConfig:
        (tmp_path / "model.yaml").write_text(f"name: x\ntransformer: {{{text}}}\n")
        found = load_model("model.yaml").transformer
        assert found is not None
        return found

    return load


def test_what_follows_is_filled_in(model):
    found = model(f"{PLAIN}, ffn: 96, experts: {{{EXPERTS}, shared: 2, groups: 4}}")
    assert (found.kv_heads, found.head_dim) == (8, 8)
    assert (found.experts.shared_ffn, found.experts.group_limit) == (64, 4)
    # So a file that writes it out is the same.
    same = model(
        f"{PLAIN}, kv_heads: 8, head_dim: 8, ffn: 96, "
        f"experts: {{{EXPERTS}, shared: 2, shared_ffn: 64, groups: 4, group_limit: 4}}"
    )
    assert same == found
    assert config_hash(same) == config_hash(found)
    assert resolved(found)["experts"]["group_limit"] == 4


def test_each_feature_is_accepted(model):
    assert model(f"{PLAIN}, experts: {{{EXPERTS}}}").ffn is None
    # The third of four layers has them, since the first two have not.
    assert model(f"{PLAIN}, ffn: 96, experts: {{{EXPERTS}, dense_layers: 2, every: 3}}").experts is not None
    assert model(f"{PLAIN}, ffn: 96, biases: qkv").biases == "qkv"
    assert model(f"{PLAIN}, ffn: 96, biases: true").biases is True
    assert model(f"{PLAIN}, ffn: 96, head_dim: 32, kv_heads: 1").head_dim == 32
    assert model(f"{PLAIN}, ffn: 96, positions: learned, max_positions: 64").max_positions == 64
    assert model(f"{PLAIN}, ffn: 96, window: 8, chunked: true, full_every: 2").full_every == 2
    latent = model(f"{PLAIN}, ffn: 96, mla: {{kv_rank: 8, nope_dim: 8, rope_dim: 4, v_dim: 8}}")
    assert latent.mla is not None
    assert latent.mla.q_rank is None


def test_its_kind_is_told(model, tmp_path):
    model(f"{PLAIN}, ffn: 96")
    assert load_any(tmp_path / "model.yaml")[0] == "model"


MISTAKES = [
    (PLAIN, "expected `ffn` or `experts`; got neither"),
    (f"{PLAIN}, ffn: 96, layer: 3", "transformer.layer: unknown key; did you mean `layers`?"),
    (
        "hidden: 64, heads: 8, vocab: 320, ffn: 96",
        "transformer.layers: missing key; `layers` has to be given",
    ),
    (f"{PLAIN}, ffn: 0", "transformer.ffn: expected at least 1; got 0"),
    (f"{PLAIN}, ffn: 96.5", "transformer.ffn: expected an integer; got 96.5"),
    (
        f"{PLAIN}, ffn: 96, kv_heads: 3",
        "transformer.kv_heads: expected a divisor of 8, the number of heads; got 3",
    ),
    (
        "layers: 4, hidden: 60, heads: 8, vocab: 320, ffn: 96",
        "expected `head_dim`, since 60 / 8 heads is no whole",
    ),
    (
        f"{PLAIN}, ffn: 96, biases: all",
        "transformer.biases: expected true, false, `qkv` or `attention`; got 'all'",
    ),
    (f"{PLAIN}, ffn: 96, norm: batch", "transformer.norm: unknown name `batch`"),
    (f"{PLAIN}, ffn: 96, positions: learned", "expected `max_positions` beside learned positions; got none"),
    (
        f"{PLAIN}, ffn: 96, max_positions: 8",
        "transformer.max_positions: expected none beside rotary positions; got 8",
    ),
    (f"{PLAIN}, ffn: 96, chunked: true", "transformer.chunked: expected a `window` beside it; got none"),
    (f"{PLAIN}, ffn: 96, full_every: 2", "transformer.full_every: expected a `window` beside it; got none"),
    (f"{PLAIN}, ffn: 96, window: 8, full_every: 1", "transformer.full_every: expected at least 2; got 1"),
    (
        f"{PLAIN}, ffn: 96, biases: qkv, mla: {{kv_rank: 8, nope_dim: 8, rope_dim: 4, v_dim: 8}}",
        "transformer.biases: expected none beside `mla`, whose biases are not modelled; got qkv",
    ),
    (
        f"{PLAIN}, experts: {{count: 8, top_k: 9, ffn: 32}}",
        "experts.top_k: expected at most 8, the number of experts",
    ),
    (
        f"{PLAIN}, experts: {{{EXPERTS}, shared_ffn: 64}}",
        "experts: expected `shared` and `shared_ffn` both positive or both 0; got 0",
    ),
    (
        f"{PLAIN}, experts: {{{EXPERTS}, groups: 3}}",
        "experts.groups: expected a divisor of 8, the number of experts",
    ),
    (
        f"{PLAIN}, experts: {{{EXPERTS}, groups: 4, group_limit: 5}}",
        "group_limit: expected at most 4, the number of",
    ),
    (
        f"{PLAIN}, experts: {{count: 8, top_k: 3, ffn: 32, groups: 4, group_limit: 1}}",
        "experts.group_limit: expected enough groups for 3 experts; 1 of them have 2",
    ),
    (
        f"{PLAIN}, experts: {{{EXPERTS}, dense_layers: 1}}",
        "expected `ffn`, since some layers have no experts; got none",
    ),
    (
        f"{PLAIN}, ffn: 96, experts: {{{EXPERTS}, dense_layers: 4}}",
        "transformer.experts: expected experts in some layer; with dense_layers 4 and every 1 none of 4 layers has",
    ),
    (f"{PLAIN}, ffn: 96, experts: {{{EXPERTS}, dense_layers: 3, every: 3}}", "none of 4 layers has them"),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_mistakes(model, text, message):
    with pytest.raises(ConfigError) as error:
        model(text)
    assert message in str(error.value)
    assert str(error.value).startswith("model.yaml:2:")


def test_the_example_of_the_docs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).resolve().parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    example = page.split("```yaml\n")[1].split("```")[0]
    (tmp_path / "model.yaml").write_text(example)
    assert load_model("model.yaml").transformer is not None
