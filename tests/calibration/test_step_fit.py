"""An experiment fitted to step times: against scipy on the closed form of the slowest of n exponentials."""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, stats
from typer.testing import CliRunner

from mc.calibration import CalibrationError, StepRun, fit_runs, runs_of, split_runs, step_parameters
from mc.calibration.step_model import check_steps
from mc.calibration.step_runs import thinned
from mc.cli.app import app
from mc.config import load_experiment
from mc.config.hold_out import HoldOut, parse_hold_out
from mc.errors import InputError
from mc.logs import Hints, read_logs
from mc.report.calibration_steps import by_size, has_sizes, size_rows, steps_from_json

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


def test_what_is_left_by_number_of_ranks(printed, files):
    assert [(each["ranks"], each["runs"], each["held_out"]) for each in printed["sizes"]] == [
        (8, 1, False),
        (32, 1, False),
    ]
    for run, size in zip(printed["runs"], printed["sizes"], strict=True):
        assert size["levels"] == [0.5, 0.99]
        exact = [run["predicted"][place] / run["measured"][place] for place in (0, 2)]
        assert size["ratios"] == [pytest.approx([each] * 3) for each in exact]
    report = steps_from_json(printed)
    # A second run on 8 ranks, which is twice as far off.
    more = replace(report.runs[0], predicted=[2 * each for each in report.runs[0].predicted])
    (low, middle, high), _ = by_size(replace(report, runs=[*report.runs, more]))[0].ratios
    assert (middle / low, high / low) == pytest.approx((2**0.5, 2.0))
    assert "held out" not in str(size_rows(report))
    assert not has_sizes(replace(report, runs=report.runs[:1]))


def test_the_folder_is_drawn_and_told(printed, files):
    assert "<svg" in (files / "fit.svg").read_text()
    done = CliRunner().invoke(app, ["report", str(files / "kept"), "--out", str(files / "page.html")])
    assert done.exit_code == 0, done.output
    page = (files / "page.html").read_text()
    assert page.count("<svg") == 3
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
    assert found.posterior.parameters[0].paths == ("cluster.noise.jitter.mean",)
    assert "# 90 %: " in (files / "out.yaml").read_text()


HEAD = "step,ranks,step_time_s\n"
ROWS = [f"{i},8,{0.03 + 1e-4 * (i * 7 % 20):.4f}" for i in range(40)]
GOOD = HEAD + "\n".join(ROWS) + "\n"
LINES = [f'{{"step": {i}, "ranks": 8, "step_time_s": {0.03 + 1e-4 * (i * 7 % 20):.4f}}}' for i in range(40)]


def with_row(text, place=20):
    """The good table with one row replaced; it is on line 22."""
    return HEAD + "\n".join([*ROWS[:place], text, *ROWS[place + 1 :]]) + "\n"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "steps.csv: the file is empty"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4, "steps.csv: expected text; got a picture"),
        (bytes(range(256)) * 9, "steps.csv: expected text; got binary data"),
        (gzip.compress(GOOD.encode())[:90], "steps.csv: expected a whole gzip file"),
        (GOOD.encode("utf-16-le"), "steps.csv: expected UTF-8 text; got what looks like UTF-16"),
        (HEAD, "steps.csv: expected measurements"),
        ("size,colour\n1,red\n2,blue\n", "steps.csv: expected a column of a time"),
        (HEAD + "a" * (1 << 21), "steps.csv: expected measurements as table prints them; got no row"),
        (HEAD + ROWS[0], "steps.csv: expected 10 step times or more; got 1"),
        (HEAD + "".join(f"{i},8,0.03\n" for i in range(20)), "steps.csv: expected step times that vary"),
        (
            with_row("20,8,0"),
            "steps.csv:22: expected step times and nothing else; got rows with a time that is zero",
        ),
        (with_row("20,8,-0.03"), "steps.csv:22: expected step times and nothing else"),
        (with_row("20,8,nan"), "that is no number (1), `20, 8, nan`"),
        (with_row("20,8,inf"), "that is no number (1), `20, 8, inf`"),
        (with_row("20,8,fast"), "that is no number (1), `20, 8, fast`"),
        (with_row("20,8,30 ms"), "that is no number (1), `20, 8, 30 ms`"),
        (with_row("20,8,"), "steps.csv:22: expected step times and nothing else; got rows without a figure"),
        (
            with_row("20,8"),
            "steps.csv:22: expected step times and nothing else; got rows that have not as many",
        ),
        (with_row(HEAD.strip()), "steps.csv:22: expected step times and nothing else"),
        (
            with_row("20,8,30"),
            "steps.csv:22: expected step times within a factor of 300 of their median; got 30 s",
        ),
        (with_row("20,8,1e-300"), "steps.csv:22: expected step times within a factor of 300"),
        (
            with_row("19,8,0.03"),
            "steps.csv:22: expected each step of a run on 8 ranks once; got step 19 again (line 21",
        ),
        (with_row("20,many,0.03"), "steps.csv:22: expected a whole number of ranks above 0; got none"),
        (GOOD + "".join(f"{i},16,{30 + i}\n" for i in range(20)), "to 39.5 s on 16: are all in one unit?"),
        (GOOD.replace("step_time_s", "step_time"), "steps.csv: expected the unit of the column `step_time`"),
        (
            GOOD.replace(",0.", ',"0,').replace("\n", '"\n').replace('s"', "s"),
            "written with a point, not a comma",
        ),
        (GOOD.replace(",", ";").replace("0.0", "0,0"), "written with a point, not a comma"),
        (
            "step,ranks,process,step_time_s\n" + "0,8,0,0.03\n0,8,1,0.04\n" * 20,
            "got times of single processes",
        ),
        ("step,ranks,time_s,time_ms\n" + "0,8,0.03,30\n" * 20, "expected one column of times"),
        (
            "\n".join(LINES)[:-8],
            "steps.csv:40: expected step times and nothing else; got lines that are no JSON",
        ),
        ("[" + ",".join(LINES)[:-8], "steps.csv:1: expected JSON; the file ends before its value does"),
        (GOOD.replace(",8,", ",128,"), "expected at most the 64 ranks of flat"),
        (GOOD.replace(",ranks,", ",shards,"), "steps.csv:2: expected a whole number of ranks above 0"),
    ],
)
def test_what_is_no_file_of_step_times(tmp_path, files, data, message):
    (tmp_path / "steps.csv").write_bytes(data if isinstance(data, bytes) else data.encode())
    words = ["calibrate", str(files / "job.yaml"), "--data", str(tmp_path / "steps.csv")]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, InputError), done.output
    assert message in str(done.exception)
    assert "\n" not in str(done.exception)


@pytest.mark.parametrize(
    "data",
    [
        GOOD.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.encode("utf-16"),
        gzip.compress(GOOD.encode()),
        GOOD.replace(",", ";").encode(),
        GOOD.replace(",", "\t").encode(),
        "\n".join(LINES).encode(),
        f"[{','.join(LINES)}]".encode(),
    ],
)
def test_what_is_read_as_the_same_steps(tmp_path, data):
    (tmp_path / "steps.csv").write_bytes(data)
    found = read_logs([tmp_path / "steps.csv"], Hints())
    (run,) = runs_of(found.table, found.files)
    assert run.ranks == 8
    np.testing.assert_allclose(run.times, [float(row.split(",")[2]) for row in ROWS])


def test_more_steps_than_are_fitted_are_thinned_and_more_than_are_read_refused(tmp_path):
    runs = [StepRun(8, np.arange(1.0, 60_001)), StepRun(16, np.arange(1.0, 31))]
    long, short = thinned(runs)
    assert (len(long.times), len(short.times)) == (5000, 30)
    assert set(np.diff(long.times)) == {12.0}
    (tmp_path / "steps.csv").write_text(GOOD)
    with pytest.raises(InputError, match=r"steps.csv:12: expected at most 10 rows; got more"):
        read_logs([tmp_path / "steps.csv"], Hints(), most=10)


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
