"""Where a `config.json` is looked for, what overrides do to it, and what is kept of it."""

import json

import pytest

from mc.config import config_hash, load_experiment, load_model, resolved_yaml
from mc.document import ConfigError
from tests.config.hugging_face.files import DEEPSEEK, LLAMA


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
