"""The notebook of the quick start: public names, no errors among its outputs; `.ci/run` executes it."""

import ast
import json
from pathlib import Path

import mc

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "quickstart.ipynb"
CELLS = [
    cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"
]


def test_it_uses_public_names():
    tree = ast.parse("\n".join("".join(cell["source"]) for cell in CELLS))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "mc"
    }
    assert {"run", "run_sweep", "calibrate", "difference", "Slowest"} <= used <= set(mc._HOME)


def test_every_cell_was_executed_without_error():
    kinds = [output["output_type"] for cell in CELLS for output in cell["outputs"]]
    assert len(kinds) >= 5
    assert set(kinds) == {"stream"}
    assert all(cell["outputs"] for cell in CELLS)
