"""What the README and the pages beside it show is true: the snippets run, the commands parse, the examples validate."""

import math
import re
import shlex
from pathlib import Path

import pytest
from scipy import stats
from typer.testing import CliRunner

from mc.cli.app import VERBS, app, command
from mc.config import load_any, load_experiment
from mc.document import ConfigError

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
COMMANDS = {verb: command(verb) for verb in VERBS}


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def shown_commands() -> list[list[str]]:
    """The `tailstep` commands in code blocks, as words, with `*` expanded as a shell does."""
    lines = [
        line
        for text in (README, CONFIGURATION)
        for block in blocks(text, "sh")
        for line in block.splitlines()
    ]
    found = [shlex.split(line, comments=True) for line in lines if line.startswith("tailstep ")]
    return [[word for part in words for word in expanded(part)] for words in found]


def expanded(word: str) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob(word))] if "*" in word else [word]


@pytest.mark.parametrize("words", shown_commands(), ids=" ".join)
def test_shown_commands_parse(words, monkeypatch):
    monkeypatch.chdir(ROOT)
    _, verb, *rest = words
    # Raises UsageError for an option or an argument that does not exist; eats the list.
    parsed = COMMANDS[verb].make_context(verb, list(rest)).params
    if verb == "run":
        load_experiment(parsed["config"], parsed["overrides"] or ())
    elif verb == "sweep":
        done = CliRunner().invoke(app, [verb, rest[0], "--dry-run"])
        assert done.exit_code == 0, done.output
    elif verb not in ("collective", "calibrate", "report"):  # the latter take what the reader has made
        done = CliRunner().invoke(app, [verb, *rest])
        assert done.exit_code == 0, done.output


def test_there_are_commands_to_parse():
    assert {words[1] for words in shown_commands()} >= {"run", "collective", "catalog", "validate", "show"}


def test_the_table_of_commands_is_complete():
    rows = re.findall(r"^\| `tailstep ([a-z]+)[^`]*` \| (.*) \|$", README, re.MULTILINE)
    assert sorted(verb for verb, _ in rows) == sorted(COMMANDS)
    for verb, text in rows:
        options = {name for parameter in COMMANDS[verb].params for name in parameter.opts}
        assert set(re.findall(r"`(--[a-z-]+)", text)) <= options


@pytest.mark.smoke
def test_the_python_snippet_runs(capsys):
    (snippet,) = blocks(README, "python")
    assert len([line for line in snippet.splitlines() if line]) <= 8
    names = {}
    exec(compile(snippet, "README.md", "exec"), names)
    assert len(capsys.readouterr().out.splitlines()) == 2

    # The slowest of n lognormal times has the quantile function of one at the level p^(1/n).
    median = 1e-3 * math.exp(0.3 * deviate(0.5, 1_000_000))
    assert float(names["median"](0.3)) == pytest.approx(median, rel=1e-5)
    slope = float(names["jax"].grad(names["median"])(0.3))
    assert slope == pytest.approx(median * deviate(0.5, 1_000_000), rel=1e-4)
    # 16 TFLOP at 40 % of 989 TFLOP/s; 2.6 GB through the NVSwitches, at 0.85 x 15/16 of 370.8 GB/s (the cards do more: 8 x 40);
    # NCCL's 25 and 18 us, and up and down two switches.
    compute, exchange = 16 / (989 * 0.40), 2.6 / (0.85 * 15 / 16 * 370.8) + 43e-6 + 1.2e-6 + 1.4e-6
    p99 = compute * math.exp(0.02 * deviate(0.99, 128)) + exchange
    found = names["result"].estimates.p99
    width = found.high - found.low
    assert found.low - width < p99 < found.high + width


def deviate(probability: float, ranks: int) -> float:
    """The standard normal deviate that the largest of `ranks` stays below with this probability."""
    return float(stats.norm.isf(-math.expm1(math.log(probability) / ranks)))


def test_the_output_shown_adds_up():
    (output,) = [block for block in blocks(README, "text") if "where the mean goes" in block]
    mean, total = (
        float(re.search(rf"^{name} +([\d.]+)", output, re.MULTILINE)[1]) for name in ("mean", "sum")
    )
    parts = re.findall(r"^([a-z ]+?) +([\d.]+) .* ([\d.]+) %", output, re.MULTILINE)
    parts = [(float(time), float(share)) for name, time, share in parts if name != "sum"]
    assert len(parts) == 5
    assert mean == total == pytest.approx(sum(time for time, _ in parts), abs=0.015)
    for time, share in parts:
        assert share == pytest.approx(100 * time / mean, abs=0.06)


def test_the_example_of_an_experiment_is_one(tmp_path):
    file = tmp_path / "example.yaml"
    file.write_text(blocks(CONFIGURATION, "yaml")[0], encoding="utf-8")
    kind, _ = load_any(file)
    assert kind == "experiment"


def test_the_mistakes_shown_are_reported_so(tmp_path, monkeypatch):
    (mistakes,) = [block for block in blocks(CONFIGURATION, "yaml") if block.startswith("extends")]
    (report,) = blocks(CONFIGURATION, "text")
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    monkeypatch.chdir(tmp_path)
    file = Path("mistakes.yaml")
    file.write_text(mistakes, encoding="utf-8")
    with pytest.raises(ConfigError) as first:
        load_any(file)
    assert str(first.value).splitlines() == report.splitlines()

    file.write_text(mistakes.replace("2.6", "2.6 GB").replace("algoritm", "algorithm"), encoding="utf-8")
    with pytest.raises(ConfigError) as second:
        load_any(file)
    assert f"`{second.value}`" in CONFIGURATION


@pytest.mark.parametrize(
    "page", ["README.md", "docs/model.md", "docs/configuration.md", "experiments/README.md"]
)
def test_links_lead_to_files(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    assert targets
    for target in targets:
        file, _, heading = target.partition("#")
        found = (ROOT / page).parent / file if file else ROOT / page
        assert found.exists(), target
        assert not heading or heading in headings(found.read_text(encoding="utf-8")), target


def headings(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_study_has_its_line():
    studies = {path.stem for path in (ROOT / "experiments").glob("[a-z]*.py")}
    studies |= {path.parent.name for path in (ROOT / "experiments").glob("*/__main__.py")}
    listed = re.findall(r"^\| `([a-z_]+)` \|", (ROOT / "experiments" / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(studies)


def test_the_picture_is_small_and_carries_its_own_ground():
    picture = ROOT / "docs" / "assets" / "slowest.svg"
    assert "docs/assets/slowest.svg" in README
    assert picture.stat().st_size < 150_000
    assert "fill: #ffffff" in picture.read_text(encoding="utf-8")
