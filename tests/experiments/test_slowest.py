"""The study of the README's picture: its numbers against a closed form, its picture, its refusals."""

import json
import math

import pytest
from scipy import stats

from experiments import slowest
from experiments.slowest import Row, main, plot, study, table

ROWS = [
    Row(ranks, wait + 0.047, wait + 0.046, wait + 0.06, (0.04, 0.05), (0.05, None), 0.0405, wait, 0.0065)
    for ranks, wait in ((8, 0.001), (1024, 0.006), (1 << 20, 0.1))
]


def test_rows_against_a_closed_form():
    # Without pauses and slow chips: the slowest of 8 lognormal times, and an exchange of fixed length.
    # Links as lines, without NCCL's protocols.
    plain = ["cluster.noise.pauses=null", "cluster.noise.slow_chips=null", "plan.protocol=none"]
    (row,) = study([8], 20_000, plain)
    compute, exchange = 16 / (989 * 0.40), 2.6 / 450 + 1.2e-6

    def quantile(p):
        return compute * math.exp(0.02 * stats.norm.isf(-math.expm1(math.log(p) / 8))) + exchange

    for found, (low, high), p in ((row.p50, row.p50_interval, 0.5), (row.p99, row.p99_interval, 0.99)):
        width = high - low
        assert low - width < quantile(p) < high + width
        assert found == pytest.approx(quantile(p), rel=2e-3)
    assert row.compute == pytest.approx(compute * math.exp(0.02**2 / 2), rel=1e-5)
    assert row.exchange == pytest.approx(exchange, rel=1e-5)
    assert row.compute + row.wait + row.exchange == pytest.approx(row.mean, rel=1e-5)


def test_the_command_prints_and_draws(monkeypatch, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(slowest, "study", lambda *_: ROWS)
    file = tmp_path / "picture.svg"
    assert main(["--quick", "--json", "--plot", str(file)]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["ranks"] for row in rows] == [8, 1024, 1 << 20]
    assert rows[0]["p99_interval"] == [0.05, None]
    drawn = file.read_text(encoding="utf-8")
    assert drawn.startswith("<?xml")

    plot(ROWS, file)
    assert file.read_text(encoding="utf-8") == drawn, "the same rows give the same file"


def test_the_table_has_a_line_per_size():
    assert table(ROWS).row_count == len(ROWS)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("picture.jpeg", "expected a file that ends in .svg, .png, .pdf; got"),
        ("missing/picture.svg", "there is no folder"),
    ],
)
def test_a_picture_that_cannot_be_drawn_is_refused_before_sampling(
    file, message, monkeypatch, capsys, tmp_path
):
    monkeypatch.setattr(slowest, "find_spec", lambda _: object())
    with pytest.raises(SystemExit) as refused:
        main(["--plot", str(tmp_path / file)])
    assert refused.value.code == 2
    assert message in capsys.readouterr().err


def test_matplotlib_is_asked_for_by_name(monkeypatch, capsys):
    monkeypatch.setattr(slowest, "find_spec", lambda _: None)
    with pytest.raises(SystemExit):
        main(["--plot", "picture.svg"])
    assert "pip install 'matplotlib>=3.9'" in capsys.readouterr().err
