"""`tailstep energy`: what it prints, and what it refuses."""

import json

import pytest
from typer.testing import CliRunner

from mc.cli.app import app
from mc.errors import InputError

FILE = "configs/llama3-405b-16k.yaml"


def run(*arguments):
    return CliRunner().invoke(app, ["energy", *arguments])


def test_json_and_picture(tmp_path):
    file = tmp_path / "energy.svg"
    done = run(FILE, "--json", "--budget", "22 MW", "--plot", str(file))
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    joules = found["joules_per_rank"]
    assert joules["total"] == pytest.approx(
        sum(joules[key] for key in ("idle", "computing", "host", "network"))
    )
    assert joules["network"] == pytest.approx(sum(tier["total_j"] for tier in found["tiers"]))
    assert [tier["inside"] for tier in found["tiers"]] == [True, False, False]
    assert found["largest"]["step"]["share_of_budget"] <= 1
    assert "<svg" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([FILE, "--budget", "1"], "--budget: "),
        ([FILE, "--pue", "0.5"], "pue: expected a number >= 1"),
        (["configs/quickstart.yaml"], "expected a model with a `transformer`"),
        ([FILE, "--set", "cluster.chip.power=none"], "cluster.chip.power"),
    ],
)
def test_mistakes(arguments, message):
    error = run(*arguments).exception
    assert isinstance(error, InputError)
    assert message in str(error)
