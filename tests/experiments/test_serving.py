"""The study of published serving: errors that it reports, and that it can be printed and drawn."""

import json

from experiments.serving import main


def test_errors_without_a_fit(capsys, tmp_path):
    assert main(["--json", "--plot", str(tmp_path / "serving.svg")]) == 0
    assert "<svg" in (tmp_path / "serving.svg").read_text(encoding="utf-8")
    found = json.loads(capsys.readouterr().out)
    assert found["summary"]["rows"] == len(found["rows"]) == 15
    assert found["summary"]["median"] < 0.08
    assert found["summary"]["largest"] < 0.28
    assert abs(found["summary"]["signed"]) < 0.05
    # Tokens of whole batches: 18 to 90 ms.
    steps = [row for row in found["rows"] if row["what"] == "tpot_s"]
    assert max(abs(row["error"]) for row in steps) < 0.15
