"""Extrapolated rings against full runs, within the error that they state."""

import jax
import numpy as np
import pytest

from mc.delays import Exponential, GeneralisedPareto, Lognormal, ParameterError
from mc.schedules import build
from mc.timing import Links, completion, program_of
from mc.timing.rings import repeated, ring_completion, ring_round

KEY = jax.random.key(20261202)
LAWS = {
    "exponential": Exponential(1e-6),
    "lognormal": Lognormal(1e-6, 0.5),
    "wide lognormal": Lognormal(1e-6, 1.0),
    "pareto": GeneralisedPareto(1e-6, 0.2),
}


# The two of the heaviest tails once more on a longer way beyond what was run.
@pytest.mark.parametrize(
    ("law", "n"), [*((law, 512) for law in LAWS), ("wide lognormal", 2048), ("pareto", 2048)]
)
def test_extrapolation_stays_within_its_stated_error(law, n):
    links = Links(1e-6, 1e9, (LAWS[law],))
    trials, rounds = 32, 2 * (n - 1)
    one = ring_round(n)
    full = ring_completion(one, rounds, links, 1e3, KEY, trials, most_updates=10**12)
    assert (full.rounds_run, full.relative_error) == (rounds, 0.0)
    part = ring_completion(
        one, rounds, links, 1e3, jax.random.key(5), trials, most_updates=7 * 64 * n * trials
    )
    assert part.rounds_run == 256
    assert part.times.mean() == pytest.approx(full.times.mean(), rel=part.relative_error)
    # What is stated is worth stating.
    assert part.relative_error < 0.1
    assert 0.3 < part.times.std() / full.times.std() < 4


def test_one_slow_link_sets_the_pace():
    n, rounds = 256, 510
    one = ring_round(n, crossing=lambda source, target: (source == 0).astype(int))
    links = Links([1e-6, 5e-6], [1e9, 1e9], (Exponential(1e-7), Exponential(1e-7)))
    full = ring_completion(one, rounds, links, 0.0, KEY, 64, most_updates=10**12)
    part = ring_completion(one, rounds, links, 0.0, KEY, 64, most_updates=7 * 32 * n * 64)
    assert part.rounds_run < rounds
    assert part.times.mean() == pytest.approx(full.times.mean(), rel=part.relative_error)


def test_a_repeated_round_is_the_schedule():
    n = 12
    program = program_of(build("all-gather", "ring", n))
    links = Links(1e-6, 1e9, (Exponential(1e-6),))
    whole = completion(program, links, 1e6, KEY, 50)
    np.testing.assert_array_equal(whole, completion(repeated(ring_round(n), n - 1), links, 1e6, KEY, 50))


def test_only_one_step_repeats():
    program = program_of(build("all-reduce", "halving-doubling", 4))
    with pytest.raises(ParameterError, match="program: expected one step to repeat; got 4"):
        repeated(program, 3)
