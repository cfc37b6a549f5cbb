"""NUTS against the posterior of a straight line, which is normal in closed form."""

import sys

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from mc.cli.app import app
from mc.errors import InputError
from tests.stats import ALPHA


@pytest.fixture(scope="module")
def line():
    """Draws for y = a + b·x with known scatter and standard normal priors, and the posterior's mean and covariance."""
    nuts = pytest.importorskip("mc.calibration.nuts", exc_type=ImportError)
    x = np.linspace(0, 2, 12)
    design = np.stack([np.ones_like(x), x], axis=1) / 0.5
    measured = design @ np.array([0.7, -1.2]) + np.random.default_rng(5).normal(size=12)
    precision = np.eye(2) + design.T @ design
    mean = np.linalg.solve(precision, design.T @ measured)

    def log_density(z):
        off = jnp.asarray(design) @ z - jnp.asarray(measured)
        return -(jnp.sum(off**2) + jnp.sum(z**2)) / 2

    covariance = np.linalg.inv(precision)
    # It begins elsewhere, and with another width.
    found = nuts.sample(log_density, mean + 0.1, 2 * covariance, chains=2, draws=400, warm_up=100, seed=3)
    return found, mean, covariance


def standard_errors(draws, effective, mean, covariance):
    """How many standard errors the mean, and the variances, are off."""
    deviation = np.sqrt(np.diag(covariance))
    first = (draws.mean(0) - mean) / (deviation / np.sqrt(effective))
    second = (draws.var(0) / deviation**2 - 1) / np.sqrt(2 / effective)
    return np.abs(np.concatenate([first, second])).max()


def test_draws_have_the_closed_form_mean_and_variance(line):
    found, mean, covariance = line
    gate = stats.norm.isf(ALPHA / 8)
    assert standard_errors(found.together, found.effective, mean, covariance) < gate
    # The control: another mean, and another width.
    moved = found.together + 0.5 * np.sqrt(np.diag(covariance))
    assert standard_errors(moved, found.effective, mean, covariance) > gate
    assert standard_errors(found.together, found.effective, mean, 3 * covariance) > gate
    assert found.draws.shape == (2, 400, 2)
    assert (found.rhat < 1.05).all()
    assert (found.effective > 100).all()
    assert found.divergences == 0


def test_without_the_extra_it_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "blackjax", None)
    monkeypatch.delitem(sys.modules, "mc.calibration.nuts", raising=False)
    (tmp_path / "x.log").write_text("")
    words = [
        "calibrate",
        "--cluster",
        "dgx-h100-superpod",
        "--data",
        str(tmp_path / "x.log"),
        "--posterior",
        "nuts",
    ]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, InputError)
    assert "pip install 'tailstep[bayes]'" in str(done.exception)
