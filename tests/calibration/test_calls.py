"""Noise of links from times of single calls: the rows, the law beside scipy and brute force, and a truth found again."""

import json

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from mc.calibration import CalibrationError, CallSeries, calls_of, noise_parameters, parameter_at
from mc.calibration.call_model import CallModel, _crps, _weighted_quantiles
from mc.calibration.parameters import Parameters
from mc.cli.app import app
from mc.config import load_cluster
from mc.config.figures import figure_at
from mc.config.hold_out import parse_hold_out
from mc.errors import InputError
from mc.logs import read_logs

CLUSTER = """
name: small
chip: {peak: {}}
tiers:
  - {name: node, fan_out: 4, link: {bandwidth: 200 GB/s, duplex: each, latency: 1 us}}
  - name: net
    fan_out: 8
    link: {bandwidth: 20 GB/s, duplex: each, latency: 5 us}
    jitter: {family: lognormal, median: 5 us, sigma: 0.5}
    congestion:
      shared_by: node
      states: [{name: free, probability: 0.9}, {name: busy, probability: 0.1, slowdown: 1.5}]
"""
BUSY = "tiers.net.congestion.states.busy"
SIZE = 2**24


def transfer(ranks):
    return 2 * (ranks - 1) / ranks * SIZE / 20e9


def brute(ranks, calls, seed):
    """A ring's calls, 10 % longer than the cluster says: each of ranks/4 nodes draws its link, every rank its jitter."""
    generator = np.random.default_rng(seed)
    jitter = 8e-6 * np.exp(0.7 * generator.normal(size=(calls, ranks // 4, 4))).max(-1)
    busy = generator.uniform(size=jitter.shape) < 0.05
    idle = 1.1 * (2 * (ranks - 1) * 5e-6 + transfer(ranks))
    return idle + (jitter + 0.8 * 1.1 * transfer(ranks) * busy).max(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("calls")
    (found / "small.yaml").write_text(CLUSTER)
    lines = ["collective,ranks,nodes,size_bytes,iteration,time_us"]
    for ranks in (16, 32):
        for call, time in enumerate(brute(ranks, 300, ranks)):
            lines.append(f"all-reduce,{ranks},{ranks // 4},{SIZE},{call},{1e6 * time:.3f}")
    (found / "calls.csv").write_text("\n".join(lines) + "\n")
    return found


@pytest.fixture(scope="module")
def config(folder):
    return load_cluster(folder / "small.yaml")


def series(ranks, times):
    return CallSeries("all-reduce", ranks, ("ring",), "auto", float(SIZE), np.asarray(times, float))


def test_the_command_finds_what_made_the_calls_and_forecasts_more_ranks(folder):
    words = [
        "calibrate",
        "--cluster",
        str(folder / "small.yaml"),
        "--data",
        str(folder / "calls.csv"),
        "--json",
    ]
    words += [
        "--algorithm",
        "ring",
        "--starts",
        "1",
        "--hold-out",
        "ranks > 16",
        "--out",
        str(folder / "out.yaml"),
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    truth = {"probability": 0.05, "slowdown": 1.8, "median": 8e-6, "sigma": 0.7}
    assert {each["paths"][0].split(".")[-1] for each in found["figures"]} == set(truth)
    for each in found["figures"]:
        # Twice as wide as a 90 % interval, in logarithms.
        value = truth[each["paths"][0].split(".")[-1]]
        low, high = (np.log(each["value"] / each[end]) for end in ("low", "high"))
        assert 2 * high < np.log(each["value"] / value) < 2 * low
    assert found["outcome"] == "flat"
    assert found["closed"]
    fitted, left = found["series"]
    assert (fitted["held_out"], left["held_out"]) == (False, True)
    assert fitted["factor"] == pytest.approx(1.1, rel=0.01)
    for low, _, high in (*fitted["forecast"], *left["measured"], *left["forecast"]):
        assert low < high
    assert found["held_out"]["mean"] < 0.03
    kept = load_cluster(folder / "out.yaml")
    (probability,) = (each["value"] for each in found["figures"] if "probability" in each["paths"][0])
    assert figure_at(kept, f"{BUSY}.probability") == pytest.approx(probability, rel=1e-4)
    assert kept.posterior is not None
    assert len(kept.posterior.parameters) == 4


def test_a_call_has_the_likelihood_of_the_slowest_rank(config):
    # Without states, of 16 ranks: F(t + δ/2)^16 − F(t − δ/2)^16, by scipy.
    tier = config.tiers[1].model_copy(update={"congestion": None})
    quiet = config.model_copy(update={"tiers": (config.tiers[0], tier)})
    idle = 2 * 15 * 5e-6 + transfer(16)
    times = idle + 1e-6 * np.array([6.0, 9.0, 12.0, 20.0])
    with jax.enable_x64(True):
        model = CallModel(
            quiet, Parameters((parameter_at(quiet, "tiers.net.jitter.median"),)), (series(16, times),)
        )
        data = model.data()
        z = jnp.append(jnp.zeros(1), -model.centers / 0.5)
        (found,) = model.scores(z, data)
    law, half = stats.lognorm(0.5, scale=5e-6), float(data[0].resolution[0]) / 2
    ends = [law.cdf(times + sign * half - idle) ** 16 for sign in (1, -1)]
    np.testing.assert_allclose(-found, np.log(ends[0] - ends[1]), rtol=1e-6)


def test_states_without_jitter_are_points_with_the_chances_of_the_slowest_group(config):
    tier = config.tiers[1].model_copy(update={"jitter": None})
    stepped = config.model_copy(update={"tiers": (config.tiers[0], tier)})
    times = brute(16, 40, 1)
    with jax.enable_x64(True):
        model = CallModel(
            stepped, Parameters((parameter_at(stepped, f"{BUSY}.slowdown"),)), (series(16, times),)
        )
        assert not any(map(model.is_closed, model.structures))
        z = jnp.append(jnp.zeros(1), -model.centers / 0.5)
        # One of 4 nodes is busy with 1 − 0.9⁴ = 0.344.
        levels = jnp.array([0.01, 0.655, 0.657, 0.99])
        idle = 2 * 15 * 5e-6 + transfer(16)
        found = model.quantiles(z, levels)[0]
        slope = jax.grad(lambda at: model.loss(at, model.data()))(z)
        found, slope = np.asarray(found), np.asarray(slope)
    np.testing.assert_allclose(found, idle + transfer(16) * np.array([0, 0, 0.5, 0.5]), rtol=1e-9)
    chex.assert_tree_all_finite(slope)
    assert (slope != 0).all()


def test_the_score_of_points_is_its_definition():
    generator = np.random.default_rng(4)
    points, weights = np.sort(generator.normal(size=7)), generator.dirichlet(np.ones(7))
    measured = np.array([-5.0, 0.1, points[3], 4.0])
    pairs = np.abs(points[:, None] - points[None])
    expected = [weights @ np.abs(points - y) - weights @ pairs @ weights / 2 for y in measured]
    with jax.enable_x64(True):
        found = _crps(*map(jnp.asarray, (points, weights, measured)))
        half = _weighted_quantiles(jnp.asarray(points), jnp.full(7, 1 / 7), jnp.array([0.5]))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)
    assert float(half[0]) == points[3]


def test_of_an_inspector_the_least_time_of_a_call_counts(tmp_path, config):
    # Three processes, each with a file of its own; the second always comes last and waits for nobody.
    paths = []
    for process, waits in enumerate((30, 0, 12)):
        rows = [
            {
                "header": {"id": "0x1", "rank": process, "n_ranks": 16, "nnodes": 4},
                "coll_perf": {
                    "coll": "AllReduce",
                    "coll_sn": call,
                    "coll_msg_size_bytes": SIZE,
                    "coll_exec_time_us": 2000 + call + waits,
                },
            }
            for call in range(25)
        ]
        paths.append(tmp_path / f"{process}.log")
        paths[-1].write_text("\n".join(map(json.dumps, rows)) + "\n")
    (found,), _ = calls_of(read_logs(paths).table, config)
    np.testing.assert_allclose(found.times, 1e-6 * (2000 + np.arange(25)), rtol=1e-12)
    assert found.ranks == 16


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (
            [2000.0 + call for call in range(19)],
            "expected 20 calls or more of one collective at one size; got 19",
        ),
        ([2000.0 if call % 2 else 2.1 for call in range(25)], "300 times as long: are all in one unit?"),
        ([2000.0] * 25, "expected times that vary; got 0.002 s for all 25 calls"),
    ],
)
def test_calls_that_are_refused(tmp_path, config, times, message):
    rows = [f"all-reduce,16,4,{SIZE},{call},{time}" for call, time in enumerate(times)]
    (tmp_path / "calls.csv").write_text(
        "\n".join(["collective,ranks,nodes,size_bytes,iteration,time_us", *rows])
    )
    with pytest.raises(CalibrationError) as caught:
        calls_of(read_logs([tmp_path / "calls.csv"]).table, config)
    assert message in str(caught.value)


def test_rules_and_figures_that_are_refused(folder, config):
    table = read_logs([folder / "calls.csv"]).table
    with pytest.raises(
        CalibrationError, match="some calls meet and some do not, 20 of a series each; none do"
    ):
        calls_of(table, config, ["ring"], parse_hold_out("ranks > 32"))
    found, left = calls_of(table, config, ["ring"], parse_hold_out("every 3"))
    assert [len(each.times) for each in (*found, *left)] == [200, 200, 100, 100]
    mixed = Parameters((parameter_at(config, "tiers.net.link.latency"),))
    with pytest.raises(
        CalibrationError, match=r"tiers.net.link.latency: expected a figure of links' `jitter`"
    ):
        CallModel(config, mixed, tuple(found))
    quiet = config.model_copy(
        update={
            "tiers": (
                config.tiers[0],
                config.tiers[1].model_copy(update={"jitter": None, "congestion": None}),
            )
        }
    )
    with pytest.raises(CalibrationError, match="the cluster has none: `--set` gives it some"):
        noise_parameters(quiet, found)
    words = [
        "calibrate",
        "--cluster",
        str(folder / "small.yaml"),
        "--data",
        str(folder / "calls.csv"),
        "--bootstrap",
        "9",
    ]
    with pytest.raises(InputError, match="--bootstrap: expected a fit of mean times"):
        raise CliRunner().invoke(app, words).exception  # pyright: ignore[reportGeneralTypeIssues]
