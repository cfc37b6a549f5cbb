"""The notebook of the quick start as a page: its text, its code, and what came out when it was last executed."""

import json
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).resolve().parents[1] / "quickstart.ipynb"


def page(path: Path = NOTEBOOK) -> str:
    """The cells as Markdown; pictures stay inside as data."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join(text for cell in cells for text in _cell(cell)) + "\n"


def _cell(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"]).rstrip()
    if cell["cell_type"] == "markdown":
        return [source]
    return [f"```python\n{source}\n```", *(_output(each) for each in cell.get("outputs", []))]


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return f"![Output of the cell above](data:image/png;base64,{''.join(data['image/png']).strip()})"
    text = "".join(output.get("text", data.get("text/plain", []))).rstrip()
    return f"```text\n{text}\n```"
