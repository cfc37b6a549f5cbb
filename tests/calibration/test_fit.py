"""Fits of a small cluster to times that it made itself, so that the truth is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mc.calibration import (
    Curve,
    Parameters,
    bootstrap,
    bootstrap_interval,
    calibrated_yaml,
    fit_curves,
    free_parameters,
    identify,
    parameter_at,
    predict_curves,
)
from mc.calibration.least_squares import least_squares
from mc.calibration.loss import size_weights
from mc.config import ClusterConfig, load_cluster
from mc.config.figures import figure_at, with_figures
from tests.stats import assert_fraction

NODE, NET = "tiers.node.link", "tiers.net.link"


@pytest.fixture(scope="module")
def config():
    tiers = [
        {
            "name": "node",
            "fan_out": 4,
            "link": {"bandwidth": "200 GB/s", "duplex": "each", "latency": "1 us"},
        },
        {"name": "net", "fan_out": 4, "link": {"bandwidth": "20 GB/s", "duplex": "each", "latency": "5 us"}},
    ]
    return ClusterConfig.model_validate({"name": "small", "chip": {"peak": {}}, "tiers": tiers})


def curve(config, ranks, *, scatter=0.0, seed=0):
    sizes = 2.0 ** np.arange(3, 31, 2)
    blank = Curve("all-reduce", ranks, ("ring",), "auto", sizes, np.ones_like(sizes), f"{ranks} ranks")
    (times,) = predict_curves(config, [blank])
    noise = np.random.default_rng(seed).normal(size=sizes.size)
    return Curve("all-reduce", ranks, ("ring",), "auto", sizes, times * np.exp(scatter * noise), blank.label)


@pytest.fixture(scope="module")
def fitted(config):
    truth = with_figures(
        config,
        {
            f"{NET}.latency": 9e-6,
            f"{NET}.bandwidth": 15e9,
            f"{NODE}.latency": 1.7e-6,
            f"{NODE}.bandwidth": 150e9,
        },
    )
    curves = [curve(truth, 4, scatter=0.03), curve(truth, 16, scatter=0.03, seed=1)]
    return truth, fit_curves(config, curves, free_parameters(config, curves))


def test_recovers_what_made_the_data(fitted):
    truth, fit = fitted
    # The flat ring pays the outer latency and the smaller bandwidth; inside a node it is alone: all four are seen.
    for each, (low, value, high) in zip(fit.parameters.items, fit.interval(0.999), strict=True):
        assert low < figure_at(truth, each.paths[0]) < high
        assert value == pytest.approx(figure_at(truth, each.paths[0]), rel=0.1)
    assert fit.convergence.outcome == "flat"
    assert fit.convergence.agreeing == 4
    assert fit.sigma == pytest.approx(0.03, rel=0.6)
    assert np.median(fit.held_out.errors) < 0.06


def test_the_data_fix_all_four(fitted):
    _, fit = fitted
    known = identify(fit.covariance)
    assert [known.learnt(place) for place in range(4)] == ["data"] * 4
    assert known.directions == 4


def test_refits_agree_with_laplace_and_with_their_count(fitted):
    _, fit = fitted
    found = bootstrap(fit, 300, seed=3)
    assert found.shape == (300, 4)
    ratio = found.std(0) / np.sqrt(np.diag(fit.covariance))
    # Weights that differ from row to row stand for a scatter that is a sample's: within a factor of two.
    assert ((ratio > 0.5) & (ratio < 2)).all()
    low, value, high = bootstrap_interval(fit, found).T
    assert (low < value).all()
    assert (value < high).all()


def test_the_file_is_a_cluster_with_the_fitted_figures(fitted, tmp_path):
    _, fit = fitted
    path = tmp_path / "fitted.yaml"
    path.write_text(calibrated_yaml(fit, fit.interval(), "tailstep calibrate"))
    found = load_cluster(path)
    assert found.model_copy(update={"posterior": None}) == fit.calibrated
    line = next(each for each in path.read_text().splitlines() if "latency" in each)
    assert "# 90 %: 1." in line
    assert "prior 1 us; from the data" in line
    assert figure_at(fit.calibrated, f"{NET}.latency") == pytest.approx(9e-6, rel=0.1)


def test_what_data_cannot_tell_apart_is_said(config):
    # One group over both tiers: the ring shows the outer latency and bandwidth, and nothing of the inner tier.
    curves = [curve(config, 16)]
    fit = fit_curves(config, curves, free_parameters(config, curves), starts=1, held_out=False)
    names = [each.name for each in fit.parameters.items]
    known = identify(fit.covariance)
    assert known.learnt(names.index(f"{NODE}.latency")) == "prior"
    assert known.learnt(names.index(f"{NET}.latency")) == "data"
    assert fit.held_out is None
    assert any("Left free by the data" in each and "tiers.node" in each for each in known.sentences(names))


def test_a_product_that_alone_is_known_is_named():
    # z₀ + z₁ measured to 1 % of a prior's width; each alone hardly.
    covariance = np.linalg.inv(np.eye(3) + 1e4 * np.outer([1, 1, 0], [1, 1, 0]))
    known = identify(covariance)
    assert known.directions == 1
    (pair,) = known.pairs
    assert pair[:3] == (0, 1, "product")
    assert "Only the product of a and b is known" in known.sentences(["a", "b", "c"])[-1]


def test_a_shared_figure_is_one_parameter(config):
    both = parameter_at(config, [f"{NODE}.latency", f"{NET}.latency"], center=2e-6)
    assert both.name == "tiers.*.link.latency"
    found = Parameters((both,)).settled(config, np.zeros(1))
    assert figure_at(found, f"{NODE}.latency") == figure_at(found, f"{NET}.latency") == 2e-6


def test_dense_sizes_count_no_more_than_sparse_ones(config):
    sizes = np.concatenate([np.logspace(1, 4, 4), np.linspace(1.1e4, 1e5, 90)])
    dense = Curve("all-reduce", 4, ("ring",), "auto", sizes, np.ones_like(sizes), "")
    weights = size_weights([dense])
    assert weights.mean() == pytest.approx(1)
    assert weights[4:].sum() == pytest.approx(weights[:4].sum() / 3.5, rel=0.3)
    used = np.arange(94) % 2 == 0
    assert (size_weights([dense], [used])[~used] == 0).all()


def test_intervals_cover_at_their_level():
    """100 lines with 5 % scatter, fitted in one call: 90 % intervals hold the truth, drawn from the prior, 90 % of the time."""
    generator = np.random.default_rng(11)
    sizes = np.logspace(1, 9, 20)
    truth = generator.normal(size=(100, 2))
    start = np.log([5e-6, 1 / 20e9])

    def times(z):
        natural = jnp.exp(start + 0.7 * z)
        return jnp.log(natural[0] + natural[1] * sizes)

    def residuals(z, measured):
        return jnp.concatenate([(times(z) - measured) / 0.05, z])

    with jax.enable_x64(True):
        measured = jax.vmap(times)(jnp.asarray(truth)) + 0.05 * generator.normal(size=(100, 20))
        found = jax.jit(lambda z, data: least_squares(residuals, z, data, steps=50, data_axes=0))(
            jnp.zeros((100, 2)), measured
        )
    errors = np.sqrt(np.diagonal(np.linalg.inv(np.asarray(found.normal)), axis1=1, axis2=2))
    inside = np.abs(np.asarray(found.point) - truth) < 1.6449 * errors
    assert_fraction(inside.sum(), inside.size, 0.9)
    # The control: intervals half as long.
    with pytest.raises(AssertionError):
        assert_fraction((np.abs(np.asarray(found.point) - truth) < 0.6 * errors).sum(), inside.size, 0.9)
