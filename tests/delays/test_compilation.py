"""Numbers are traced: a sweep over parameters, ranks and probabilities compiles once."""

import chex
import jax
import jax.numpy as jnp
import pytest

from mc.delays import Exponential, Lognormal, Shifted, Slowest, SlowestOf, draw, shared_fate, with_pauses


def _states(mean, ranks, probability):
    return shared_fate(
        Shifted(Exponential(mean), 1e-4),
        group=ranks,
        groups=2 * ranks,
        probabilities=jnp.stack([1 - probability, probability]),
        slowdowns=jnp.stack([jnp.ones_like(mean), 1 + probability]),
    )


LAWS = {
    "slowest": lambda mean, ranks, probability: Slowest(Exponential(mean), ranks),
    "pauses": lambda mean, ranks, probability: Slowest(
        with_pauses(Exponential(mean), probability, Exponential(1e-3)), ranks
    ),
    "shared fate": _states,
    "classes": lambda mean, ranks, probability: SlowestOf(
        jax.vmap(lambda median, count: Slowest(Lognormal(median, probability), count))(
            jnp.stack([mean, 2 * mean]), jnp.stack([ranks, ranks + 1])
        )
    ),
}


@pytest.mark.parametrize("method", ["direct", "grid", "exact"])
@pytest.mark.parametrize("name", LAWS)
def test_a_sweep_compiles_once(name, method):
    if method == "exact" and name == "shared fate":
        pytest.skip("the table of a mixture is already compiled for the pauses")

    chex.clear_trace_counter()  # it counts by the name of a function, and each law has another of that name

    @jax.jit
    @chex.assert_max_traces(n=1)
    def sample(key, *parameters):
        return draw(LAWS[name](*parameters), key, 16, method)

    means = []
    for seed, (mean, ranks, probability) in enumerate([(1e-5, 8, 0.1), (3e-5, 3, 0.02), (1e-6, 1, 0.5)]):
        parameters = (jnp.float32(mean), jnp.float32(ranks), jnp.float32(probability))
        means.append(float(jnp.mean(sample(jax.random.key(seed), *parameters))))
    assert len(set(means)) == 3
    chex.assert_tree_all_finite(means)
