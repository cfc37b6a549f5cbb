"""`advise --budget` and `energy --plans` as a user meets them: tables, JSON, pictures, and refusals."""

import json

import pytest
from typer.testing import CliRunner

from mc.cli.app import app
from mc.errors import InputError
from tests.advise.test_budget import TEXT


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "little.yaml").write_text(TEXT.replace("power: 500 W", "memory_size: 3 GB, power: 500 W"))
    return "little.yaml"


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_a_budget_as_json_with_a_picture(file, tmp_path):
    done = run("advise", file, "--budget", "now", "--json", "--plot", "budget.svg")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["unit"] == "W"
    assert found["budget"] == pytest.approx(found["budget_now"]) == pytest.approx(4 * 733.2)
    assert sum(each["cost"] for each in found["figures"]) + found["fixed_per_chip"] == pytest.approx(733.2)
    assert found["step_time_s"]["best"] < found["step_time_s"]["now"]
    assert "<svg" in (tmp_path / "budget.svg").read_text(encoding="utf-8")


def test_the_best_plan_of_a_site(file, tmp_path):
    done = run("energy", file, "--plans", "--budget", "4.2 kW", "--json", "--plot", "site.svg")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["chips"], found["ranks"]) == (4, 4)
    assert found["design_watts_per_chip"] == pytest.approx(733.2)
    assert sum(found["design_shares"].values()) == pytest.approx(1)
    best = found["best"][0]
    assert best["tokens_per_s"] == pytest.approx(4 * 512 / best["step_time_s"])
    assert best["watts_per_rank"] < 733.2
    assert "<svg" in (tmp_path / "site.svg").read_text(encoding="utf-8")


def test_as_a_table(file):
    done = run("energy", file, "--plans", "--budget", "4.2 kW", "--count", "2", "--best", "energy")
    assert done.exit_code == 0, done.output
    assert "4 chips of 733.2 W while all compute" in done.stdout
    assert "facility (cooling, conversion)" in done.stdout
    done = run("advise", file, "--budget", "60000 EUR", "--cost", "peak=9000 EUR", "--cost", "rest=5000 EUR")
    assert done.exit_code == 0, done.output
    assert "60,000 EUR for 4 chips" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["advise", "--budget", "1 USD"], "the catalog has no prices"),
        (["advise", "--cost", "peak=1 W"], "--cost: expected a --budget as well"),
        (["advise", "--by", "p99"], "--by: expected a --budget, or --plans, as well"),
        (["advise", "--budget", "now", "--samples", "8"], "--samples: expected `--by` with a --budget"),
        (["advise", "--plans", "--budget", "1 MW"], "--budget: expected none with --plans"),
        (["energy", "--plans", "--best", "speed"], "--best: expected time or energy; got `speed`"),
        (["energy", "--plans", "--budget", "1 kW"], "budget: expected the power of 2 chips"),
    ],
)
def test_mistakes(file, arguments, message):
    error = run(arguments[0], file, *arguments[1:]).exception
    assert isinstance(error, InputError)
    assert message in str(error)
