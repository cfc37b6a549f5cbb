"""A model from the content of a `config.json`."""

import json

import pytest

from mc.config import load_model


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
