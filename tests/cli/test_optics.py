"""`tailstep optics`: what it prints, and what it refuses."""

import json

import pytest
from typer.testing import CliRunner

from mc.cli.app import app
from mc.errors import InputError


def run(*arguments):
    return CliRunner().invoke(app, ["optics", *arguments])


def test_json(tmp_path):
    file = tmp_path / "optics.svg"
    done = run("--json", "--rate", "200 Gb/s", "--length", "50 cm", "--plot", str(file))
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    (lane,) = found["lanes"]
    assert lane["rate_bits_per_s"] == 200e9
    assert lane["media"][0]["id"] == "passive-copper"
    assert found["nvl72"]["cables"] == 5184
    assert found["nvl72"]["optics_w"] == pytest.approx(19_440)
    copper, *_, pluggable, _ = lane["media"]
    assert copper["interruptions_per_day"] < pluggable["interruptions_per_day"]
    assert copper["effective_ratio"] > pluggable["effective_ratio"]
    assert "<svg" in file.read_text(encoding="utf-8")


def test_table():
    done = run("--length", "2 m")
    assert "5,184 cables" in done.stdout
    assert "does not reach" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rate", "200"], "--rate: "),
        (["--rate", "60 Gb/s"], "expected a lane rate of 25, 50"),
        (["--length", "2"], "--length: "),
        (["--length", "0 m"], "length: expected metres > 0"),
    ],
)
def test_mistakes(arguments, message):
    error = run(*arguments).exception
    assert isinstance(error, InputError)
    assert message in str(error)
