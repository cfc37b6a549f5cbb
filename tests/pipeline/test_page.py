"""What the page on pipelines says is so: its table of schedules, and its program."""

import re
from pathlib import Path

import pytest

from mc.pipeline import bubble, bubble_fraction, in_flight, makespan, order_of

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "pipelines.md").read_text(encoding="utf-8")
ROWS = re.findall(
    r"^\| ([a-z0-9-]+) \| (\d) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) % \| (\d+) \|$", PAGE, re.MULTILINE
)


def test_every_schedule_has_its_row():
    assert len(ROWS) == 5


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_table(row):
    case = (row[0], 8, 32, int(row[1]))
    step, idle, percent, held = (float(each) for each in row[2:])
    share = 4 if row[0] == "interleaved" else 1
    times = dict.fromkeys(("forward", "backward_input", "backward_weight"), 1 / share)
    assert makespan(*case, **times).makespan == pytest.approx(step)
    assert bubble(*case) == idle
    assert 100 * bubble_fraction(*case) == pytest.approx(percent, abs=0.05)
    assert in_flight(order_of(*case))[0] == held


def test_program(capsys):
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(program, {})
    without, with_noise = map(float, capsys.readouterr().out.split())
    assert 141 < without < 145
    # m·(F + B) + (p − 1)(F + B)/v, and what waiting for the slowest of the neighbours adds.
    assert 96 + 45 / 4 < with_noise < 1.2 * (96 + 45 / 4)
