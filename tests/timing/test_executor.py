"""The executor against closed forms, a second implementation, a theorem, and NumPy's own recursion."""

import chex
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from mc.collectives import ALGORITHMS, Machine
from mc.delays import Exponential, Lognormal, ParameterError
from mc.schedules import SCHEDULES, build
from mc.timing import Disturbance, Links, completion, program_of
from tests.stats import assert_law, assert_mean, assert_same_law
from tests.timing import reference

KEY = jax.random.key(20261202)
LATENCY, BANDWIDTH, SIZE = 2e-6, 5e10, 3e7
EVERY = [(collective, name) for collective, known in SCHEDULES.items() for name in known]
# Layouts that need one.
UNITS = {"hierarchical": lambda n: (n // 2, 2), "multi-ring": lambda n: (n // 2, 2)}
# Streams in pieces take the time of the closed form in the limit of many pieces; tested apart.
PIPELINED = {("broadcast", "ring"), ("reduce", "ring"), ("all-reduce", "tree")}


CLOSED = [
    (collective, name)
    for collective, name in EVERY
    if name in ALGORITHMS.get(collective, {}) and (collective, name) not in PIPELINED
]


def schedule_of(collective, name, n, **options):
    if name in UNITS:
        options["units"] = UNITS[name](n)
    return build(collective, name, n, **options)


def both(collective, name, n):
    """Seconds by the executor, and the closed form's cost."""
    schedule = build(collective, name, n, radix=4)
    size = 0.0 if collective == "barrier" else SIZE
    # A rank's bandwidth is that of all its links together.
    links = Links(LATENCY, BANDWIDTH / schedule.ports)
    cost = ALGORITHMS[collective][name].cost(n, size, Machine(LATENCY, BANDWIDTH, 0.0, LATENCY, 4))
    return seconds(schedule, links, size, own_ports=True), cost


def seconds(schedule, links=None, size=SIZE, **options):
    links = Links(LATENCY, BANDWIDTH) if links is None else links
    return float(completion(program_of(schedule, **options), links, size, KEY, 1)[0])


@pytest.mark.parametrize(("collective", "name"), CLOSED)
def test_without_jitter_it_is_the_closed_form(collective, name):
    found, cost = both(collective, name, 16)
    assert found == pytest.approx(float(cost.time), rel=1e-6)


@pytest.mark.parametrize(("collective", "name"), CLOSED)
def test_for_any_number_of_ranks_it_is_at_most_the_closed_form(collective, name):
    # A tree that is not full has ranks that need not wait for a round's end, so it may save a latency a
    # level; everything else takes what the closed form says.
    found, cost = both(collective, name, 27)
    saved = float(cost.latency_time) if name in ("k-ary", "binomial") else 0.0
    assert float(cost.time) * (1 - 1e-6) - saved <= found <= float(cost.time) * (1 + 1e-6)


@pytest.mark.parametrize(("collective", "name"), sorted(PIPELINED))
def test_streams_approach_the_closed_form_with_more_pieces(collective, name):
    # Of a large message, so that a piece takes longer than a latency: ports serve pieces in a fixed order.
    n, size = 16, 3e9
    limit = float(ALGORITHMS[collective][name].cost(n, size, Machine(LATENCY, BANDWIDTH)).time)
    ratios = [seconds(build(collective, name, n, pieces=c), size=size) / limit for c in (8, 64, 512)]
    assert ratios[0] > ratios[1] > ratios[2] > 1 - 1e-6
    # The pipeline fills once: a piece for each rank of the chain, or level of the tree.
    assert ratios[2] < 1 + 4 * n / 512


def test_combining_takes_its_time():
    for name in ("ring", "recursive-doubling", "k-ary", "halving-doubling"):
        machine = Machine(LATENCY, BANDWIDTH, 1e-10, LATENCY, 4)
        links = Links(LATENCY, BANDWIDTH, reduction_time_per_byte=1e-10)
        wanted = float(ALGORITHMS["all-reduce"][name].cost(16, SIZE, machine).time)
        assert seconds(build("all-reduce", name, 16, radix=4), links) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize(("collective", "name"), EVERY)
def test_each_rank_from_any_start_as_a_loop_over_messages_finds_it(collective, name):
    n = 12
    schedule = schedule_of(collective, name, n)
    rng = np.random.default_rng(n)
    start = rng.exponential(2e-4, (n, 3))
    for own_ports in (False, True):
        program = program_of(schedule, own_ports=own_ports)
        links = Links(LATENCY, BANDWIDTH)
        found = completion(program, links, SIZE, KEY, 3, start=start, of="each")
        numbers = {"latency": LATENCY, "bandwidth": BANDWIDTH, "size": SIZE, "own_ports": own_ports}
        for trial in range(3):
            wanted = reference.run(schedule, start[:, trial], **numbers)
            # Times are kept relative to the end of the collective, so that is what rounding is measured by.
            np.testing.assert_allclose(found[:, trial], wanted, atol=1e-6 * wanted.max())


def test_thousands_of_rounds_keep_single_precision():
    n = 1024
    wanted = 2 * (n - 1) * LATENCY + 2 * (n - 1) / n * SIZE / BANDWIDTH
    assert seconds(build("all-reduce", "ring", n)) == pytest.approx(wanted, rel=5e-7)


def test_a_ring_waits_for_its_neighbour_and_not_for_everyone():
    """Last-passage percolation: α + 2θ a round (Rost 1981; Johansson 2000), where barriers give α + θ·H_n."""
    n, theta = 1024, 1e-6
    rounds = 2 * (n - 1)
    program = program_of(build("all-reduce", "ring", n))
    links = Links(LATENCY, BANDWIDTH, (Exponential(theta),))
    each = np.asarray(completion(program, links, 0.0, KEY, 32, of="each"))
    for time in (each.mean(), each.max(0).mean()):
        assert time / rounds == pytest.approx(LATENCY + 2 * theta, rel=0.02)
    barrier = LATENCY + theta * np.sum(1 / np.arange(1, n + 1))
    assert each.max() / rounds < 0.5 * barrier


def test_a_small_ring_has_the_law_of_its_recursion():
    n, trials = 5, 20_000
    rng = np.random.default_rng(7)
    state = np.zeros((n, trials))
    for _ in range(2 * (n - 1)):
        state = np.maximum(state, np.roll(state, 1, 0)) + rng.lognormal(np.log(1e-6), 0.8, state.shape)
    program = program_of(build("all-reduce", "ring", n))
    links = Links(0.0, BANDWIDTH, (Lognormal(1e-6, 0.8),))
    each = completion(program, links, 0.0, KEY, trials, of="each")
    assert_same_law(each[0], state[0])
    assert_same_law(jnp.max(each, 0), state.max(0))
    # A negative control: barriers after each round are another law.
    barrier = rng.lognormal(np.log(1e-6), 0.8, (2 * (n - 1), n, trials)).max(1).sum(0)
    assert stats.ks_2samp(np.asarray(jnp.max(each, 0)), barrier).pvalue < 1e-30


def test_one_message_has_the_law_of_its_jitter():
    program = program_of(build("send-recv", "direct", 2))
    links = Links(0.0, BANDWIDTH, (Exponential(1e-6),))
    times = completion(program, links, 0.0, KEY, 50_000, of="each")
    assert_law(times[0], stats.expon(scale=1e-6).cdf)
    assert_mean(times[1], 1e-6)


def test_tiers_have_their_own_latency_bandwidth_and_jitter():
    # Four ranks, two to a node: recursive doubling crosses the inner tier first, then the outer.
    schedule = build("all-reduce", "recursive-doubling", 4)

    def crossing(source, target):
        return (source // 2 != target // 2).astype(int)

    links = Links([1e-6, 7e-6], [1e11, 1e9], (None, None))
    wanted = 1e-6 + SIZE / 1e11 + 7e-6 + SIZE / 1e9
    assert seconds(schedule, links, crossing=crossing) == pytest.approx(wanted, rel=1e-6)
    jittery = Links([1e-6, 7e-6], [1e11, 1e9], (None, Exponential(1e-3)))
    times = completion(program_of(schedule, crossing=crossing), jittery, 0.0, KEY, 20_000, of="each")
    # Each rank receives across the nodes once, and from a rank whose inner exchange took no random time.
    assert_law(times[0] - 8e-6, stats.expon(scale=1e-3).cdf)


def test_hops_multiply_the_latency():
    schedule = build("send-recv", "direct", 8)
    # Rank 5's message goes three hops; the others' one.
    far = seconds(schedule, hops=lambda source, target: np.where(source == 5, 3, 1))
    assert far == pytest.approx(3 * LATENCY + SIZE / BANDWIDTH, rel=1e-6)


def test_shared_states_slow_down_their_group():
    schedule = build("send-recv", "direct", 4)
    group = np.array([0, 0, 1, 1])
    slowdown = jnp.array([[1.0, 3.0], [2.0, 1.0]])
    delay = jnp.array([[0.0, 5e-6], [0.0, 0.0]])
    states = Disturbance((jnp.asarray(group),), (slowdown,), (delay,))
    each = completion(
        program_of(schedule), Links(LATENCY, BANDWIDTH), SIZE, KEY, 2, disturbance=states, of="each"
    )
    # Rank i receives from rank i − 1, whose link counts.
    factor, wait = slowdown[group[[3, 0, 1, 2]]], delay[group[[3, 0, 1, 2]]]
    np.testing.assert_allclose(each, LATENCY + factor * SIZE / BANDWIDTH + wait, rtol=1e-6)


def test_a_trial_depends_on_its_number_alone():
    program = program_of(build("all-reduce", "ring", 300))
    links = Links(LATENCY, BANDWIDTH, (Exponential(1e-6),))
    start = Exponential(1e-4)
    many = completion(program, links, SIZE, KEY, 1000, start=start, of="each")
    few = completion(program, links, SIZE, KEY, 13, start=start, of="each")
    np.testing.assert_allclose(many[:, :13], few, rtol=1e-6)
    assert np.unique(np.asarray(many[0])).size == 1000


def test_one_kernel_serves_all_sizes_latencies_bandwidths_and_parameters():
    program = program_of(build("all-reduce", "halving-doubling", 8))

    @eqx.filter_jit
    @eqx.debug.assert_max_traces(max_traces=1)
    def run(links, size):
        return completion(program, links, size, KEY, 4)

    for index in range(64):
        links = Links(1e-6 * (index + 1), 1e9 * (index + 1), (Exponential(1e-7 * (index + 1)),))
        run(links, jnp.asarray(2.0**index))


def test_derivatives_are_those_of_finite_differences():
    program = program_of(build("all-reduce", "k-ary", 9, radix=3))

    def mean(numbers):
        latency, bandwidth, theta, size = numbers
        links = Links(latency * 1e-6, bandwidth * 1e9, (Exponential(theta * 1e-6),))
        return jnp.mean(completion(program, links, size * 1e6, KEY, 64)) * 1e6

    at = jnp.array([2.0, 50.0, 3.0, 10.0])
    with jax.enable_x64(True):
        at = jnp.asarray(np.asarray(at), jnp.float64)
        slope = jax.grad(mean)(at)
        for index in range(4):
            step = jnp.zeros(4).at[index].set(1e-6)
            wanted = (mean(at + step) - mean(at - step)) / 2e-6
            np.testing.assert_allclose(slope[index], wanted, rtol=1e-5)
    chex.assert_tree_all_finite(slope)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: completion(p, Links(1e-6, 1e9), 1.0, KEY, 0), "samples: expected a whole number of at"),
        (lambda p: completion(p, Links(1e-6, 1e9), 1.0, KEY, 2.5), "samples: expected a whole number of at"),
        (
            lambda p: completion(p, Links(1e-6, 1e9), -1.0, KEY, 1),
            "size: expected a finite number >= 0; got -1",
        ),
        (
            lambda p: completion(p, Links(1e-6, 1e9), np.nan, KEY, 1),
            "size: expected a finite number >= 0; got nan",
        ),
        (
            lambda p: completion(p, Links(1e-6, 1e9), 1.0, KEY, 1, of="all"),
            "of: expected `slowest` or `each`; got 'all'",
        ),
        (
            lambda p: completion(p, Links(1e-6, 1e9), 1.0, KEY, 1, start=[0.0, 0.0, 0.0, np.nan]),
            "start: expected finite times",
        ),
        (
            lambda p: completion(p, Links(1e-6, 1e9), 1.0, KEY, 2, start=jnp.zeros(3)),
            "start: expected 4 times, or 4 x 2; got an array of shape (3,)",
        ),
        (lambda p: Links([1e-6, 1e-6], [1e9, 1e9]), "expected a latency, a bandwidth and a jitter"),
        (lambda p: Links(1e-6, 0.0), "bandwidth: expected a number > 0; got 0.0"),
    ],
)
def test_mistakes_are_named(call, message):
    program = program_of(build("all-reduce", "ring", 4))
    with pytest.raises(ParameterError) as error:
        call(program)
    assert message in str(error.value)


def test_links_must_know_every_tier_of_the_program():
    program = program_of(build("all-reduce", "ring", 4), crossing=lambda source, target: source * 0 + 1)
    with pytest.raises(ParameterError, match="links: expected 2 tiers, as the program knows; got 1"):
        completion(program, Links(1e-6, 1e9), 1.0, KEY, 1)
