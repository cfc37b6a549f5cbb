"""`tailstep ridge`: what it prints, and what it refuses."""

import json

import pytest
from typer.testing import CliRunner

from mc.cli.app import app
from mc.errors import InputError


def run(*arguments):
    return CliRunner().invoke(app, ["ridge", *arguments])


def test_chips_as_json():
    found = json.loads(run("--json", "--chip", "A100", "--chip", "Rubin", "--tier", "scale-up").stdout)
    assert {(row["chip"], row["format"]) for row in found["ridges"]} == {
        ("A100", "bf16"), ("Rubin", "bf16"), ("Rubin", "fp8"), ("Rubin", "fp4"),
    }  # fmt: skip
    (move,) = found["movements"]
    assert (move["from"], move["to"]) == ("A100", "Rubin")
    assert move["factor"] == pytest.approx(35e15 / 1.8e12 / (312e12 / 300e9))


def test_a_plan_as_json_and_as_a_table(tmp_path):
    file = tmp_path / "roofs.svg"
    done = run("configs/llama3-405b-16k.yaml", "--json", "--plot", str(file))
    assert done.exit_code == 0, done.output
    points = {(each["dimension"], each["tier"]): each for each in json.loads(done.stdout)["points"]}
    assert points["tp", "node"]["bound"] == "compute"
    assert points["dp", "pod"]["over_ridge"] == pytest.approx(
        points["dp", "pod"]["computing_s"] / points["dp", "pod"]["sending_s"]
    )
    assert "<svg" in file.read_text(encoding="utf-8")
    assert "`pod` is the tightest tier: fabric-bound" in run("configs/llama3-405b-16k.yaml").stdout


def test_chips_are_drawn(tmp_path):
    assert run("--plot", str(tmp_path / "ridges.png")).exit_code == 0
    assert (tmp_path / "ridges.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--chip", "H10"], "unknown chip `H10`"),
        (["--format", "fp5"], "--format: unknown name `fp5`"),
        (["--wire", "int8"], "--wire: unknown name `int8`"),
        (["--tier", "rack"], "--tier: unknown name `rack`"),
        (
            ["--chip", "A100", "--format", "fp4"],
            "expected chips that have the formats and the tiers asked for",
        ),
        (["--set", "a=b"], "--set: expected a CONFIG"),
        (["configs/llama3-405b-16k.yaml", "--chip", "A100"], "--chip: expected none with CONFIG"),
        (["configs/quickstart.yaml"], "expected a model with a `transformer`"),
        (["configs/llama3-405b-16k.yaml", "--set", "plan.formats.math=fp4"], "fp4"),
        (["--plot", "roofs.txt"], "--plot: expected a file that ends in"),
    ],
)
def test_mistakes(arguments, message):
    error = run(*arguments).exception
    assert isinstance(error, InputError)
    assert message in str(error)
