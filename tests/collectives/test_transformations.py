"""One compiled kernel serves all numbers, a batch is a loop, and derivatives are right."""

import chex
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mc.collectives import ALGORITHMS, Machine, algorithms

EVERY = [
    pytest.param(collective, name, id=f"{collective}-{name}")
    for collective, each in ALGORITHMS.items()
    for name in each
]


def time_of(algorithm, ranks, size, latency, bandwidth, gamma=1e-12, hop_latency=5e-7, radix=4):
    return algorithm.cost(ranks, size, Machine(latency, bandwidth, gamma, hop_latency, radix)).time


@pytest.mark.parametrize(("collective", "name"), EVERY)
def test_one_compilation_serves_all_numbers(collective, name):
    algorithm = algorithms(collective)[name]

    @eqx.filter_jit
    @eqx.debug.assert_max_traces(max_traces=1)
    def kernel(*numbers):
        return time_of(algorithm, *numbers)

    rng = np.random.default_rng(7)
    for size in np.geomspace(1.0, 1e10, 64):
        latency, bandwidth = rng.uniform(1e-7, 1e-4), rng.uniform(1e9, 1e12)
        ranks, radix = rng.integers(1, 5000), rng.integers(2, 64)
        kernel(*(jnp.asarray(each) for each in (ranks, size, latency, bandwidth, 1e-12, 5e-7, radix)))


@pytest.mark.parametrize(("collective", "name"), EVERY)
def test_a_batch_is_a_loop(collective, name):
    algorithm = algorithms(collective)[name]
    ranks = jnp.asarray([1, 2, 3, 16, 17, 1000, 4096])
    sizes = jnp.geomspace(1.0, 1e9, 7)
    latencies = jnp.geomspace(1e-7, 1e-5, 7)
    radices = jnp.asarray([2, 3, 4, 5, 8, 16, 64])

    def one(ranks, size, latency, radix):
        return time_of(algorithm, ranks, size, latency, 1e11, radix=radix)

    batch = jax.jit(jax.vmap(one))(ranks, sizes, latencies, radices)
    loop = [one(*numbers) for numbers in zip(ranks, sizes, latencies, radices, strict=True)]
    np.testing.assert_allclose(batch, loop, rtol=1e-6)


@pytest.mark.parametrize(("collective", "name"), EVERY)
def test_derivatives_against_finite_differences(collective, name):
    algorithm = algorithms(collective)[name]
    with jax.enable_x64(True):

        @jax.jit
        def time(n, numbers):
            size, latency, bandwidth, gamma, hop_latency = numbers
            return time_of(algorithm, n, size, latency, bandwidth, gamma, hop_latency)

        point = np.asarray([1e8, 2e-6, 5e10, 1e-12, 6e-7])
        gradient = jax.jit(jax.grad(time, argnums=1))
        for n in (1, 2, 6, 1000):
            found = np.asarray(gradient(n, point))
            for place, value in enumerate(point):
                # Central differences of a smooth function: relative error of h² ~ 10⁻¹⁰, rounding of 10⁻¹⁶/h.
                step = np.zeros_like(point)
                step[place] = value * 1e-5
                slope = (time(n, point + step) - time(n, point - step)) / (2 * step[place])
                tolerance = 1e-9 * float(time(n, point)) / value
                assert found[place] == pytest.approx(float(slope), rel=1e-6, abs=tolerance)
        # In float32, as the engine runs, derivatives must be finite too, in the number of ranks as well.
    for n in (1.0, 2.0, 6.0, 1024.0):
        slopes = jax.grad(lambda *x: time_of(algorithm, *x), argnums=(0, 1, 2, 3))(n, 0.0, 1e-6, 1e11)
        chex.assert_tree_all_finite(slopes)


@pytest.mark.parametrize(("collective", "name"), EVERY)
def test_double_precision_agrees(collective, name):
    algorithm = algorithms(collective)[name]
    cases = [(2, 1.0), (3, 1e3), (8192, 1e6), (98304, 1e9)]
    single = [float(time_of(algorithm, n, size, 1e-6, 5e10)) for n, size in cases]
    with jax.enable_x64(True):
        double = [float(time_of(algorithm, n, size, 1e-6, 5e10)) for n, size in cases]
    np.testing.assert_allclose(single, double, rtol=1e-6)
