"""Steps without a likelihood: the score of draws against its closed form, and a truth that NumPy alone drew."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from mc.calibration import CalibrationError
from mc.calibration.step_draws import crps_of_sorted, drawn_parameters
from mc.cli.app import app
from mc.config import load_experiment
from mc.config.calibration import FreeConfig

COMPUTE, LATENCY, OWN, SHARED = 0.02, 1e-4, 1e-3, 2e-3
EXPERIMENT = """
name: shared noise
cluster:
  name: flat
  chip: {peak: {}}
  tiers: [{name: net, fan_out: 64, link: {bandwidth: 10 GB/s, duplex: each, latency: 100 us}}]
  noise:
    jitter: {family: exponential, mean: 1 ms}
    transient: [{scope: all, jitter: {family: exponential, mean: 5 ms}}]
model: {name: m, compute: {time: 30 ms}, exchange: {collective: all-reduce, size: 1 B}}
plan: {ranks: 16, algorithm: ring}
"""


def test_the_score_of_draws_is_that_of_all_pairs():
    """By brute force, without the pairs of a draw with itself."""
    generator = np.random.default_rng(1)
    draws, measured = generator.normal(size=40), generator.normal(size=7)
    pairs = np.abs(draws[:, None] - draws).sum() / (40 * 39)
    brute = np.abs(draws - measured[:, None]).mean(axis=1) - pairs / 2
    with jax.enable_x64(True):
        found = crps_of_sorted(jnp.asarray(np.sort(draws)), jnp.asarray(measured))
        slope = jax.grad(
            lambda c: jnp.mean(crps_of_sorted(jnp.asarray(np.sort(draws)) * c, jnp.asarray(measured)))
        )
        step = 1e-6
        sides = [np.abs(draws * c - measured[:, None]).mean() - c * pairs / 2 for c in (1 - step, 1 + step)]
        assert np.asarray(found) == pytest.approx(brute, abs=1e-12)
        assert float(slope(1.0)) == pytest.approx((sides[1] - sides[0]) / (2 * step), abs=1e-5)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A fit to steps that wait for the slowest of 16 exponentials, and for one that all share."""
    folder = tmp_path_factory.mktemp("crps")
    (folder / "job.yaml").write_text(EXPERIMENT)
    generator = np.random.default_rng(7)
    own = generator.exponential(OWN, size=(300, 16)).max(axis=1)
    times = COMPUTE + own + generator.exponential(SHARED, size=300) + 2 * 15 * LATENCY
    rows = [f"{place},16,{time:.9f}" for place, time in enumerate(times)]
    (folder / "steps.csv").write_text("step,ranks,step_time_s\n" + "\n".join(rows) + "\n")
    words = [
        "calibrate",
        str(folder / "job.yaml"),
        "--data",
        str(folder / "steps.csv"),
        "--starts",
        "1",
        "--json",
    ]
    words += ["--free", "model.compute.time", "--free", "cluster.noise.transient.0.jitter.mean"]
    done = CliRunner().invoke(app, [*words, "--out", str(folder / "out.yaml")])
    assert done.exit_code == 0, done.output
    return folder, json.loads(done.stdout)


def test_noise_that_ranks_share_is_found(fitted):
    """Within four standard deviations of the fit; as far off as the file's guesses are, it would not pass."""
    _, found = fitted
    for figure, truth in zip(found["figures"], (COMPUTE, SHARED), strict=True):
        deviation = (figure["high"] - figure["low"]) / (2 * 1.645)
        assert abs(figure["value"] - truth) < 4 * deviation
        assert abs(figure["prior"] - truth) > 8 * deviation
        assert figure["known_from"] == "data"
    assert found["outcome"] == "flat"
    assert found["log_likelihood"] is None
    assert any("Scored by CRPS, as there is no likelihood" in each for each in found["known"])


def test_what_is_written_is_an_experiment(fitted):
    folder, found = fitted
    written = load_experiment(str(folder / "out.yaml"))
    assert written.model.compute is not None
    assert written.model.compute.time == pytest.approx(found["figures"][0]["value"], rel=1e-5)
    assert "estimating equations of the CRPS" in (folder / "out.yaml").read_text()


def test_what_draws_hold_fixed_is_not_fitted_to_them(fitted):
    folder, _ = fitted
    config = load_experiment(str(folder / "job.yaml"))
    names = [each.name for each in drawn_parameters(config).items]
    assert names == [
        "model.compute.time",
        "cluster.noise.jitter.mean",
        "cluster.noise.transient.0.jitter.mean",
    ]
    path = "cluster.tiers.net.congestion.states.busy.probability"
    with pytest.raises(CalibrationError, match="draws keep the states of links as they are"):
        drawn_parameters(config, [FreeConfig(path=path)])
    with pytest.raises(CalibrationError, match="a run counts as steps of many clusters"):
        drawn_parameters(config, [FreeConfig(path="cluster.noise.slow_chips.fraction")])
