"""An experiment from the text of its file."""

import pytest

from mc.config import load_experiment


@pytest.fixture
def load(tmp_path):
    """Loads a text, with overrides."""

    def load_text(text, *overrides):
        path = tmp_path / "experiment.yaml"
        path.write_text(text)
        return load_experiment(path, overrides)

    return load_text
