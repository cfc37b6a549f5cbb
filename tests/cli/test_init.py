"""`tailstep init`: what it writes is valid, fits and is what was asked for; nothing is overwritten. And completion."""

import io
import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from mc.cli.app import app
from mc.config import load_experiment
from mc.parallel import checked_plan


class Terminal(io.StringIO):
    """Answers that come from a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def init(tmp_path, monkeypatch, invoke):
    """Runs `tailstep init` in an empty folder; returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, answers: str | None = None) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO() if answers is None else Terminal(answers))
        return invoke("init", *arguments)

    return run


def test_a_transformer_that_fits(init):
    code, out, _ = init("big.yaml", "--model", "llama3-405b", "--chips", "4096", "--chip", "H200")
    assert (code, out) == (0, "wrote big.yaml; next: tailstep run big.yaml\n")
    config = load_experiment("big.yaml")
    assert checked_plan(config).ranks == 4096
    assert config.cluster.chip.name == "H200"
    assert [tier.fan_out for tier in config.cluster.tiers] == [8, 512]


def test_experts_are_spread(init):
    assert init("moe.yaml", "--model", "deepseek-v3")[0] == 0
    assert checked_plan(load_experiment("moe.yaml")).ep > 1


def test_what_a_terminal_answers(init, monkeypatch):
    code, _, error = init("asked.yaml", answers="A100\nInfiniBand-HDR\n16\n4\nbarrier\n")
    assert code == 0
    assert "chips in a node" in error
    config = load_experiment("asked.yaml")
    assert config.ranks == 16
    assert [tier.fan_out for tier in config.cluster.tiers] == [4, 4]


def test_one_node_has_one_tier(init):
    assert init("--model", "barrier", "--chips", "8")[0] == 0
    assert len(load_experiment("experiment.yaml").cluster.tiers) == 1


def test_nothing_is_overwritten(init, tmp_path):
    (tmp_path / "mine.yaml").write_text("precious")
    (tmp_path / "dangling.yaml").symlink_to(tmp_path / "nowhere")
    for name in ("mine.yaml", "dangling.yaml"):
        code, _, error = init(name, "--model", "barrier")
        assert code == 2
        assert "nothing is overwritten" in error
    assert (tmp_path / "mine.yaml").read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--chip", "H10"), "--chip: unknown name `H10`; did you mean `H100`?"),
        (("--link", "NDR"), "--link: unknown name `NDR`"),
        (("--chips", "12"), "--chips: expected whole nodes of 8; got 12"),
        (
            ("--model", "llama3-405b", "--chips", "8"),
            "--chips: expected enough for llama3-405b; got 8 x H100",
        ),
        (("--model", "lama3-8b"), "did you mean `llama3-8b`?"),
        (("experiment.txt",), "expected a name that ends in .yaml"),
        (("missing/experiment.yaml", "--model", "barrier"), "cannot be written"),
    ],
)
def test_refusals(init, arguments, message):
    code, _, error = init(*arguments)
    assert code == 2
    assert message in error


def test_answers_that_are_no_numbers(init):
    code, _, error = init("--model", "barrier", answers="\n\nmany\n")
    assert code == 2
    assert "--chips: expected a whole number from 1 to 1,048,576; got `many`" in error


def test_completion_knows_the_verbs():
    asked = {"_TAILSTEP_COMPLETE": "complete_bash", "COMP_WORDS": "tailstep do", "COMP_CWORD": "1"}
    done = CliRunner().invoke(app, [], env=asked, prog_name="tailstep")
    assert done.stdout.split() == ["doctor"]


def test_completing_does_not_import_jax():
    code = "import mc.cli.app, sys; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


CONFIG = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "rms_norm_eps": 1e-05,
    "tie_word_embeddings": False,
}


def test_a_config_json_on_a_calibrated_cluster(init, tmp_path):
    """From what people have to a file that runs: a part of the cluster, references from where the file lies."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "measured.yaml").write_text("extends: dgx-h100-superpod\n")
    (tmp_path / "out").mkdir()
    code, _, error = init(
        "out/e.yaml", "--cluster", "measured.yaml", "--chips", "64", "--model", "mine/config.json"
    )
    assert code == 0, error
    config = load_experiment("out/e.yaml")
    assert checked_plan(config).ranks == 64
    assert config.model.name == "mine"
    assert config.cluster.size == 1024
    assert config.cluster.noise.slow_chips is not None
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["e.yaml"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--cluster", "dgx-h100-superpod", "--chip", "A100"),
            "instead of --chip, --link and --node; got both",
        ),
        (
            ("--cluster", "dgx-h100-superpod", "--chips", "2048"),
            "expected at most the 1,024 of `dgx-h100-superpod`",
        ),
        (("--model", "config.json"), "config.json cannot be read: No such file"),
        (("--cluster", "dgx-h100-superpot"), "did you mean `dgx-h100-superpod`?"),
    ],
)
def test_refusals_of_files(init, arguments, message):
    code, _, error = init(*arguments)
    assert code == 2
    assert message in error
