"""The benchmarks run and say what they found; how fast is not a test's business."""

import json
import sys

import pytest

from benchmarks import __main__ as command
from benchmarks import plans
from benchmarks.measure import at_least, at_most


def test_findings_as_json(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmarks", "exact", "--quick", "--json"])
    code = command.main()
    findings = json.loads(capsys.readouterr().out)
    assert len(findings) == 4
    assert all(set(each) == {"name", "value", "unit", "target", "holds", "note"} for each in findings)
    assert code == (0 if all(each["holds"] for each in findings) else 1)


def test_unknown_benchmark_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmarks", "exakt"])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 2
    assert "unknown benchmark `exakt`; expected exact" in capsys.readouterr().err


def test_a_target_is_met_or_missed():
    assert at_least("speed", 3.0, "x", 2.0, "").holds
    assert not at_least("speed", 1.9, "x", 2.0, "").holds
    assert at_most("memory", 400.0, "MB", 500.0, "").holds
    assert not at_most("memory", 501.0, "MB", 500.0, "").holds


def test_plans_are_mixed():
    mix = plans._mix(60)
    assert len(mix) >= 60
    assert {place for place, _ in mix} == {0, 1, 2}
    assert {plan.schedule for _, plan in mix} == {"1f1b", "interleaved", "zb-h1", "dualpipe", "gpipe"}
    assert {plan.pp for _, plan in mix} >= {4, 8, 16}
    assert len(set(mix)) == len(mix)
