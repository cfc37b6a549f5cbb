"""What a delay refuses, and in which words."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mc.delays import (
    Constant,
    Discrete,
    Empirical,
    Exponential,
    Gamma,
    GeneralisedPareto,
    Lognormal,
    Mixture,
    ParameterError,
    Scaled,
    Shifted,
    Slowest,
    SlowestOf,
    Weibull,
    draw,
    sampler,
    shared_fate,
    with_pauses,
)
from mc.errors import InputError

_ONE = Exponential(1e-5)

REFUSED = [
    (lambda: Constant(-1e-6), "value: expected a number >= 0; got -1e-06"),
    (lambda: Exponential(0.0), "mean: expected a number > 0; got 0.0"),
    (lambda: Exponential(float("nan")), "mean: expected a finite number; got nan"),
    (lambda: Exponential(float("inf")), "mean: expected a finite number; got inf"),
    (lambda: Exponential(1e-50), "mean: expected a number > 0; got 1e-50"),
    (lambda: Exponential(1e50), "mean: expected a finite number; got 1e\\+50"),
    (lambda: Exponential(np.array([1.0, -1.0])), "mean: expected a number > 0"),
    (lambda: Lognormal(-1.0, 0.1), "median: expected a number > 0; got -1.0"),
    (lambda: Lognormal(1.0, 0.0), "sigma: expected a number > 0; got 0.0"),
    (lambda: Lognormal.from_mean_cv(1.0, -0.1), "cv: expected a number > 0; got -0.1"),
    (lambda: Gamma(0.0, 1.0), "shape: expected a number > 0; got 0.0"),
    (lambda: Gamma(1.0, -2.0), "scale: expected a number > 0; got -2.0"),
    (lambda: Gamma.from_mean_cv(0.0, 0.1), "mean: expected a number > 0; got 0.0"),
    (lambda: Weibull(1.0, -1), "shape: expected a number > 0; got -1"),
    (lambda: GeneralisedPareto(-1.0, 0.1), "scale: expected a number > 0; got -1.0"),
    (lambda: GeneralisedPareto(1.0, float("nan")), "shape: expected a finite number; got nan"),
    (lambda: Shifted(_ONE, -1e-9), "shift: expected a number >= 0; got -1e-09"),
    (lambda: Scaled(_ONE, 0), "factor: expected a number > 0; got 0"),
    (lambda: Slowest(_ONE, -1), "ranks: expected a number >= 0; got -1"),
    (lambda: SlowestOf(_ONE), "expected a batch of delays with one common leading axis"),
    (
        lambda: SlowestOf(Lognormal(jnp.ones(3), jnp.ones(4))),
        r"expected a batch of delays .* got leading axes \[\(3,\), \(4,\)\]",
    ),
    (lambda: Mixture([], ()), "expected one probability per component"),
    (lambda: Mixture([1.0], ()), r"expected one probability per component; got \(1,\) for 0"),
    (lambda: Mixture([0.5, 0.5], (_ONE,)), r"expected one probability per component; got \(2,\) for 1"),
    (lambda: Mixture([0.5, 0.4], (_ONE, _ONE)), "expected probabilities that add up to 1; got 0.9"),
    (lambda: Mixture([1.5, -0.5], (_ONE, _ONE)), "probability: expected a number >= 0"),
    (lambda: with_pauses(_ONE, 1.5, _ONE), "probability: expected a number >= 0"),
    (lambda: Discrete([1.0, 2.0], [1.0]), "expected one probability per value"),
    (lambda: Discrete(1.0, 1.0), "expected one probability per value"),
    (lambda: Discrete([1.0, 2.0], [0.5, 0.4]), "expected probabilities that add up to 1; got 0.9"),
    (
        lambda: Empirical.fit(np.ones(199) + np.arange(199)),
        "expected at least 200 to fit a tail to 10 % of them; got 199",
    ),
    (lambda: Empirical.fit(np.arange(1000.0)), "samples: expected positive finite values; got 0 to 999"),
    (lambda: Empirical.fit([*np.arange(1.0, 1000.0), np.nan]), "samples: expected positive finite values"),
    (lambda: Empirical.fit(np.ones(1000)), "samples: expected 20 values above the quantile 0.9; got 0"),
    (
        lambda: Empirical.fit(np.arange(1.0, 1000.0), 1.5),
        "tail_fraction: expected a share between 0 and 1; got 1.5",
    ),
    (
        lambda: _fate([0.5, 0.5], [1.0, 2.0, 3.0]),
        "expected as many probabilities, slowdowns and delays as there are states",
    ),
    (lambda: _fate([0.5, 0.5], [1.0, 2.0], [0.0]), "expected as many probabilities, slowdowns and delays"),
    (lambda: _fate([0.5, 0.4], [1.0, 2.0]), "expected probabilities that add up to 1; got 0.9"),
    (lambda: _fate([0.5, 0.5], [1.0, 0.0]), "slowdown: expected a number > 0"),
    (lambda: _fate([0.5, 0.5], [1.0, 2.0], [0.0, -1.0]), "delay: expected a number >= 0"),
]


def _fate(probabilities, slowdowns, delays=None):
    delays = None if delays is None else jnp.array(delays)
    return shared_fate(
        _ONE,
        group=2,
        groups=3,
        probabilities=jnp.array(probabilities),
        slowdowns=jnp.array(slowdowns),
        delays=delays,
    )


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message[:50] for _, message in REFUSED])
def test_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_what_is_at_the_edge_is_accepted():
    for law in (
        Constant(0),
        Slowest(_ONE, 0),
        Shifted(_ONE, 0),
        Mixture([1, 0], (_ONE, _ONE)),
        GeneralisedPareto(1, -2),
    ):
        assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(law))


def test_unknown_method(key):
    message = "method: expected one of exact, direct, grid; got 'fast'"
    with pytest.raises(InputError, match=message):
        draw(_ONE, key, 3, "fast")
    with pytest.raises(InputError, match=message):
        sampler(_ONE, "fast")


@pytest.mark.parametrize("method", ["exact", "direct", "grid"])
@pytest.mark.parametrize(
    "wrong", [jax.random.key(0, impl="rbg"), jax.random.split(jax.random.key(0), 3)], ids=["rbg", "three"]
)
def test_a_key_of_another_kind(method, wrong):
    with pytest.raises(ValueError, match=r"expected one threefry2x32 key, as jax\.random\.key"):
        draw(_ONE, wrong, 3, method)


def test_traced_parameters_pass():
    """Inside `jit` a value cannot be looked at; the construction must still work."""
    assert jax.jit(lambda mean: Exponential(mean).quantile(jnp.float32(-1.0)))(jnp.float32(2.0)) == 2.0
