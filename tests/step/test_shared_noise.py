"""Transient noise that units share, against a simulation of every unit and rank."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mc.delays import Constant, Exponential, Lognormal, ParameterError
from mc.step import Compute, Persistent, SharedNoise, Step, draw_classes
from tests.stats import assert_mean, assert_same_law

COUNT = 8000
NODE = SharedNoise(8, spread=Lognormal(1.0, 0.05), jitter=Exponential(0.02))
RACK = SharedNoise(40, pause_probability=0.1, pause=Exponential(0.3))
JOB = SharedNoise(
    120, spread=Lognormal(1.0, 0.02), jitter=Exponential(0.05), pause_probability=0.2, pause=Constant(0.5)
)


def simulate(*, job, slow=None, persistent_nodes=None, seed=3):
    """The slowest of 120 ranks in 15 nodes in 3 racks, and the mean of one rank."""
    rng = np.random.default_rng(seed)
    times = rng.lognormal(0.0, 0.03, (COUNT, 15, 8))
    if slow is not None:
        times = times * np.where(rng.random((COUNT, 15, 8)) < slow[0], slow[1], 1.0)
    times = times * rng.lognormal(0.0, 0.05, (COUNT, 15, 1)) + rng.exponential(0.02, (COUNT, 15, 1))
    if persistent_nodes is not None:
        times = times * np.where(rng.random((COUNT, 15, 1)) < persistent_nodes[0], persistent_nodes[1], 1.0)
    times = times.reshape(COUNT, 3, 40)
    times = times + np.where(rng.random((COUNT, 3, 1)) < 0.1, rng.exponential(0.3, (COUNT, 3, 1)), 0.0)
    times = times.reshape(COUNT, 120)
    if job:
        times = times * rng.lognormal(0.0, 0.02, (COUNT, 1)) + rng.exponential(0.05, (COUNT, 1))
        times = times + 0.5 * (rng.random((COUNT, 1)) < 0.2)
    return times.max(axis=1), times[:, 0]


def draw(compute, key):
    """One step of each of many realisations."""
    cells = jnp.arange(COUNT)
    classes = None
    if compute.persistent and compute.every_rank is None:
        classes = draw_classes(compute.persistent, 120, key, COUNT, unit=compute.unit)
        classes = jax.tree.map(jnp.asarray, classes)
    one_of_each = eqx.filter_jit(lambda step: step.draw(key, cells, 0 * cells, classes, size=1))
    return np.asarray(one_of_each(Step(compute, ())).compute)[:, 0]


@pytest.fixture(scope="module")
def node_law():
    """The table of a node: what most of `prepared` takes, made once."""
    compute = Compute(Lognormal(1.0, 0.03), 8, shared=(NODE,))
    return eqx.filter_jit(lambda compute: compute.prepared().unit_law)(compute)


def test_nested_units_against_brute_force(key):
    compute = Compute(Lognormal(1.0, 0.03), 120, shared=(NODE, RACK), job=(JOB,))
    slowest, one = simulate(job=True)
    cells = jnp.arange(4)
    chunks = eqx.filter_jit(lambda step: step.prepared().draw(key, cells, 0 * cells, size=2000).compute)
    drawn = np.asarray(chunks(Step(compute, ()))).ravel()
    assert_same_law(drawn, slowest)
    assert_mean(one, float(compute.mean_of_one()))
    # The control: the same noise of single ranks, not shared within nodes.
    rng = np.random.default_rng(4)
    alone = rng.lognormal(0.0, 0.03, (COUNT, 120)) * rng.lognormal(0.0, 0.05, (COUNT, 120))
    alone = (alone + rng.exponential(0.02, (COUNT, 120))).reshape(COUNT, 3, 40).max(axis=2)
    alone = alone + np.where(rng.random((COUNT, 3)) < 0.1, rng.exponential(0.3, (COUNT, 3)), 0.0)
    alone = alone.max(axis=1) * rng.lognormal(0.0, 0.02, COUNT) + rng.exponential(0.05, COUNT)
    with pytest.raises(AssertionError, match="KS distance"):
        assert_same_law(drawn, alone + 0.5 * (rng.random(COUNT) < 0.2))


def test_every_unit_drawn_agrees(key):
    compute = Compute(Lognormal(1.0, 0.03), 120, shared=(NODE, RACK), job=(JOB,))
    slowest, _ = simulate(job=True)
    assert_same_law(jax.jit(lambda: compute.draw(key, COUNT, method="direct"))(), slowest)


def test_slow_nodes_around_shared_noise(key, node_law):
    # Nothing persistent inside: nodes are alike up to their factor.
    entries = (Persistent("nodes", 8, 0.1, 1.3),)
    compute = Compute(Lognormal(1.0, 0.03), 120, entries, (NODE,), unit_law=node_law)
    rng = np.random.default_rng(5)
    times = rng.lognormal(0.0, 0.03, (COUNT, 15, 8)).max(axis=2)
    times = times * rng.lognormal(0.0, 0.05, (COUNT, 15)) + rng.exponential(0.02, (COUNT, 15))
    times = times * np.where(rng.random((COUNT, 15)) < 0.1, 1.3, 1.0)
    assert_same_law(draw(compute, key), times.max(axis=1))


def test_slow_ranks_inside_shared_noise(key):
    # Nodes differ in how many slow ranks they hold: every rank is drawn.
    entries = (Persistent("ranks", 1, 0.02, 1.6), Persistent("nodes", 8, 0.1, 1.3))
    compute = Compute(Lognormal(1.0, 0.03), 120, entries, (NODE, RACK), (JOB,), every_rank=120)
    slowest, one = simulate(job=True, slow=(0.02, 1.6), persistent_nodes=(0.1, 1.3))
    drawn = draw(compute, key)
    assert_same_law(drawn, slowest)
    assert_mean(one, float(compute.mean_of_one()))


def test_slow_ranks_are_the_same_in_all_steps(key):
    entries = (Persistent("ranks", 1, 0.01, 1.6),)
    compute = Compute(Constant(1.0), 120, entries, (SharedNoise(8, jitter=Constant(0.1)),), every_rank=120)
    cells = jnp.arange(500)
    drawn = eqx.filter_jit(Step.draw)(Step(compute, ()), key, cells, 0 * cells, size=4).compute
    assert float(jnp.max(jnp.ptp(drawn, axis=1))) < 1e-5
    chunks = Step(compute, ()).draw(key, jnp.array([7, 7]), jnp.array([0, 1]), size=4).compute
    np.testing.assert_allclose(chunks, np.asarray(drawn)[7, 0], rtol=1e-6)
    assert_mean((np.asarray(drawn)[:, 0] > 1.5).astype(float), 1 - 0.99**120)


def test_a_job_that_ends_inside_a_node(key):
    # 11 ranks: a node of 8 and one of 3; without slow ranks the second counts as whole.
    shared = (SharedNoise(8, jitter=Exponential(1.0)),)
    exact = eqx.filter_jit(Compute.draw)(Compute(Constant(1.0), 11, shared=shared), key, 20_000)
    assert_mean(exact, 1 + 1.5)


def test_more_ranks_never_shorten_a_step(key, node_law):
    previous = np.zeros(())
    draw_steps = eqx.filter_jit(lambda compute: compute.draw(key, 500))
    rank = Lognormal(1.0, 0.03)
    for ranks in (8, 16, 64, 1024):
        drawn = np.asarray(
            draw_steps(Compute(rank, float(ranks), shared=(NODE,), job=(JOB,), unit_law=node_law))
        )
        assert (drawn >= previous).all()
        previous = drawn


def test_gradients_through_shared_noise(key):
    def mean(sigma, theta):
        noise = SharedNoise(8, spread=Lognormal(1.0, sigma))
        compute = Compute(Lognormal(1.0, theta), 64, shared=(noise,)).prepared()
        return jnp.mean(compute.draw(key, 400))

    point = jnp.asarray(0.05), jnp.asarray(0.03)
    value_and_grad = jax.jit(jax.value_and_grad(mean, argnums=(0, 1)))
    _, found = value_and_grad(*point)
    for index, step in enumerate((2e-3, 1e-3)):
        ends = [
            value_and_grad(*(p + sign * step * (i == index) for i, p in enumerate(point)))[0]
            for sign in (1, -1)
        ]
        assert float(found[index]) == pytest.approx(float(ends[0] - ends[1]) / (2 * step), rel=2e-2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Compute(Constant(1.0), 64, shared=(RACK, NODE)), "expected shared scopes innermost first"),
        (
            lambda: Compute(Constant(1.0), 64, (Persistent("ranks", 1, 0.1),), (NODE,)),
            "expected `every_rank`, the number of ranks",
        ),
        (lambda: SharedNoise(8, pause_probability=-0.1), "pause probability: expected a number >= 0"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ParameterError, match=message):
        make()
