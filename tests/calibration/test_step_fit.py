"""An experiment fitted to step times: against scipy on the closed form of the slowest of n exponentials."""

import json

import numpy as np
import pytest
from scipy import optimize, stats
from typer.testing import CliRunner

from mc.calibration import CalibrationError, StepRun, fit_runs, runs_of, split_runs, step_parameters
from mc.calibration.step_model import check_steps
from mc.cli.app import app
from mc.config import load_experiment
from mc.config.hold_out import HoldOut, parse_hold_out
from mc.errors import InputError
from mc.logs import Hints, read_logs

COMPUTE, LATENCY, MEAN = 0.02, 1e-4, 1e-3
EXPERIMENT = """
name: small
cluster:
  name: flat
  chip: {peak: {}}
  tiers: [{name: net, fan_out: 64, link: {bandwidth: 10 GB/s, duplex: each, latency: 100 us}}]
  noise: {jitter: {family: exponential, mean: 2 ms}}
model: {name: m, compute: {time: 20 ms}, exchange: {collective: all-reduce, size: 1 B}}
plan: {ranks: 8, algorithm: ring}
"""


def steps(ranks, count, seed):
    """Step times by numpy alone: every rank drawn, and a ring's rounds of latency behind the slowest."""
    jitter = np.random.default_rng(seed).exponential(MEAN, size=(count, ranks))
    return COMPUTE + jitter.max(axis=1) + 2 * (ranks - 1) * LATENCY


RUNS = {8: steps(8, 300, 1), 32: steps(32, 200, 2)}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("steps")
    (folder / "job.yaml").write_text(EXPERIMENT)
    rows = [f"{i},{n},{t:.9f}" for n, times in RUNS.items() for i, t in enumerate(times)]
    (folder / "steps.csv").write_text("step,ranks,step_time_s\n" + "\n".join(rows) + "\n")
    return folder


@pytest.fixture(scope="module")
def printed(files):
    words = ["calibrate", str(files / "job.yaml"), "--data", str(files / "steps.csv"), "--starts", "2"]
    words += ["--free", "cluster.noise.jitter.mean", "--forecast", "64", "--json"]
    words += ["--results", str(files / "kept"), "--plot", str(files / "fit.svg")]
    done = CliRunner().invoke(app, [*words, "--out", str(files / "out.yaml")])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def closed_form(mean):
    """Minus the log posterior: of maxima of exponentials, and of a lognormal prior around 2 ms with a spread of 1.5."""
    loss = (np.log(mean / 2e-3) / 1.5) ** 2 / 2
    for ranks, times in RUNS.items():
        x = (times - COMPUTE - 2 * (ranks - 1) * LATENCY) / mean
        loss -= np.sum(np.log(ranks / mean) + (ranks - 1) * np.log(-np.expm1(-x)) - x)
    return loss


def test_the_most_likely_figure_and_its_interval_are_those_of_the_closed_form(printed):
    best = optimize.minimize_scalar(
        lambda z: closed_form(np.exp(z)), bounds=(-8, -5), method="bounded", options={"xatol": 1e-9}
    ).x
    h = 1e-3
    curvature = (
        closed_form(np.exp(best + h)) - 2 * closed_form(np.exp(best)) + closed_form(np.exp(best - h))
    ) / h**2
    (figure,) = printed["figures"]
    assert figure["value"] == pytest.approx(np.exp(best), rel=1e-4)
    reach = stats.norm.ppf(0.95) / np.sqrt(curvature)
    assert figure["low"] == pytest.approx(np.exp(best - reach), rel=1e-3)
    assert figure["high"] == pytest.approx(np.exp(best + reach), rel=1e-3)
    # Five standard errors.
    assert abs(np.log(figure["value"] / MEAN)) < 5 / np.sqrt(curvature)
    assert (printed["outcome"], printed["agreeing"]) == ("flat", 2)


def test_the_forecast_is_the_quantile_of_the_slowest_of_more(printed):
    mean = printed["figures"][0]["value"]
    (forecast,) = printed["forecasts"]
    for level, (low, middle, high) in zip(forecast["levels"], forecast["times"], strict=True):
        exact = COMPUTE + 126 * LATENCY - mean * np.log(-np.expm1(np.log(level) / 64))
        assert middle == pytest.approx(exact, rel=1e-4)
        assert low < middle < high


def test_distances_between_distributions_are_kolmogorovs(printed):
    mean = printed["figures"][0]["value"]
    for run in printed["runs"]:
        n = run["ranks"]
        shift = COMPUTE + 2 * (n - 1) * LATENCY

        def cdf(t, n=n, shift=shift):
            return (-np.expm1(-(t - shift) / mean)) ** n

        exact = stats.kstest(RUNS[n], cdf).statistic
        assert run["distance"] == pytest.approx(exact, abs=5e-3)
        assert not run["far"]


def test_the_folder_is_drawn_and_told(printed, files):
    assert "<svg" in (files / "fit.svg").read_text()
    done = CliRunner().invoke(app, ["report", str(files / "kept"), "--out", str(files / "page.html")])
    assert done.exit_code == 0, done.output
    page = (files / "page.html").read_text()
    assert page.count("<svg") == 2
    for text in ("cluster.noise.jitter.mean", "32", "Forecasts", "steps.csv"):
        assert text in page
    # Fitted quantiles are those of the closed form.
    mean, run = printed["figures"][0]["value"], printed["runs"][0]
    level, measured, fitted = run["curve"][10]
    exact = (
        COMPUTE + 2 * (run["ranks"] - 1) * LATENCY - mean * np.log(-np.expm1(np.log(level) / run["ranks"]))
    )
    assert fitted == pytest.approx(exact, rel=1e-4)
    assert measured == pytest.approx(np.quantile(RUNS[run["ranks"]], level), abs=1e-8)


def test_run_takes_the_file(printed, files):
    found = load_experiment(files / "out.yaml")
    assert found.cluster.noise.jitter.mean == pytest.approx(printed["figures"][0]["value"], rel=1e-5)
    assert found.cluster.posterior.parameters[0].paths == ("noise.jitter.mean",)
    assert "# 90 %: " in (files / "out.yaml").read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("step,ranks,step_time_s\n", "expected"),
        ("step,ranks,step_time_s\n0,8,0.02\n", "expected 10 step times or more; got 1"),
        ("step,ranks,step_time_s\n" + "0,8,0.03\n" * 20, "expected step times that vary"),
        ("step,ranks,step_time_s\n" + "0,8,0.03\n1,8,0\n" * 20, "0"),
        ("step,ranks,step_time_s\n" + "0,8,0.03\n1,8,-1\n" * 20, "expected"),
        ("step,ranks,step_time_s\n" + "0,8,0.03\n1,8,nan\n" * 20, "nan"),
        ("step,ranks,step_time_s\n" + "0,8,0.03\n1,8,0.04\n0,16,30\n1,16,40\n" * 20, "are all in one unit?"),
        (
            "step,ranks,step_time_s\n" + "0,128,0.03\n1,128,0.04\n" * 20,
            "expected at most the 64 ranks of flat",
        ),
        ("step,step_time_s\n" + "0,0.03\n1,0.04\n" * 20, "the file does not say it, so use --ranks"),
        ("size,colour\n1,red\n2,blue\n", "expected"),
    ],
)
def test_bad_data(tmp_path, files, text, message):
    (tmp_path / "steps.csv").write_text(text)
    words = ["calibrate", str(files / "job.yaml"), "--data", str(tmp_path / "steps.csv")]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, InputError), done.output
    assert message in str(done.exception)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "cluster.noise={transient: [{scope: all, jitter: {family: exponential, mean: 1 ms}}]}",
            "noise that ranks share",
        ),
        ("cluster.noise.jitter=null", "expected a `spread` or a `jitter`"),
    ],
)
def test_what_has_no_likelihood(files, change, message):
    with pytest.raises(CalibrationError, match=message):
        check_steps(load_experiment(files / "job.yaml", [change]), [8])


def test_times_below_what_computing_takes_are_not_fitted(files):
    config = load_experiment(files / "job.yaml", ["model.compute.time=1 s"])
    times = np.linspace(0.02, 0.03, 20)
    parameters = step_parameters(load_experiment(files / "job.yaml"))
    assert [each.name for each in parameters.items] == ["model.compute.time", "cluster.noise.jitter.mean"]
    only = type(parameters)(parameters.items[1:])
    with pytest.raises(CalibrationError, match="they are impossible under all figures tried"):
        fit_runs(config, [StepRun(8, times)], only, starts=1)


@pytest.mark.parametrize(
    ("text", "ranks", "size", "place", "held"),
    [
        ("none", 8, None, 3, False),
        ("every 4", 8, None, 3, True),
        ("every 4", 8, None, 4, False),
        ("ranks > 8", 9, None, 0, True),
        ("ranks>8", 8, None, 0, False),
        ("ranks = 64, 128", 128, None, 0, True),
        ("size > 16 MiB", 8, 2**24, 0, False),
        ("size < 16 MiB", 8, 2**20, 0, True),
    ],
)
def test_rules_of_holding_out(text, ranks, size, place, held):
    assert parse_hold_out(text).holds(ranks, size, place) == held


@pytest.mark.parametrize("text", ["", "every 1", "rank > 8", "ranks > few", "size > 3 s", "ranks"])
def test_what_is_no_rule(text):
    with pytest.raises(InputError, match="hold_out: expected one of"):
        parse_hold_out(text)


def test_runs_are_split_by_ranks(files):
    runs = runs_of(read_logs([files / "steps.csv"], Hints()).table)
    fitted, left = split_runs(runs, HoldOut("ranks", ">", (8.0,)))
    assert ([run.ranks for run in fitted], [run.ranks for run in left]) == ([8], [32])
    with pytest.raises(CalibrationError, match="all of them do"):
        split_runs(runs, HoldOut("ranks", ">", (1.0,)))
