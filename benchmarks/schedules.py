"""Schedules in time: message updates per second, against an event simulator, and what does not grow.

The event simulator is SimPy: every rank is a process that waits for its left neighbour's message, the usual
way to write such a ring by hand.
"""

from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import simpy

from benchmarks.measure import Finding, at_least, at_most, best_of, ratio, seconds
from mc.delays import Exponential, Lognormal
from mc.random import draw_levels
from mc.schedules import build
from mc.timing import Links, SwitchTier, completion, program_of, round_trip_law

_KEY = jax.random.key(0)


def run(*, quick: bool) -> Iterator[Finding]:
    """The targets of the (max, +) executor and of the law of a tree of switches."""
    trials, repeats = (64, 3) if quick else (1000, 5)
    yield from _ring(trials, repeats)
    yield _halving_doubling(100 if quick else 1000)
    yield _switch_tree(repeats, 1 << (14 if quick else 18))
    yield _sizes()


def _ring(trials: int, repeats: int) -> Iterator[Finding]:
    n = 512
    program = program_of(build("all-reduce", "ring", n))
    links = Links(1e-6, 1e11, (Exponential(1e-6),))
    messages = 2 * (n - 1) * n

    def ours() -> jax.Array:
        return completion(program, links, 64e6, _KEY, trials)

    rate = messages * trials / best_of(ours, repeats=repeats) / 1e6
    note = f"{trials:,} samples, exponential jitter on each of {messages:,} messages"
    yield at_least("ring of 512: message updates", rate, "M/s", 30, note)
    one = seconds(lambda: _simpy_ring(n))
    gain = one / (best_of(ours, repeats=repeats) / trials)
    yield at_least("ring of 512: a sample, against SimPy", gain, "x", 50, f"SimPy takes {one:.2g} s for one")


def _halving_doubling(trials: int) -> Finding:
    def cold() -> jax.Array:
        program = program_of(build("all-reduce", "halving-doubling", 4096))
        links = Links(1e-6, 1e11, (Lognormal(1e-6, 0.5),))
        return completion(program, links, 64e6, _KEY, trials)

    note = f"{trials:,} jittered samples of 64 MB on 4,096 ranks, with building and compiling"
    return at_most("halving/doubling of 4,096", seconds(cold), "s", 5, note)


def _switch_tree(repeats: int, count: int) -> Finding:
    def sampler(ranks: int):
        @jax.jit
        def draws(law):
            return law.quantile(draw_levels(_KEY, (count,)))

        def run() -> jax.Array:
            # With the law, which is built anew for each parameter set.
            law = round_trip_law([SwitchTier(ranks, 64, Exponential(1e-6))], ranks)
            assert law is not None
            return draws(law)

        return run

    growth = ratio(sampler(10**6), sampler(10**3), repeats=repeats)
    note = f"law and {count:,} draws from it, switches of radix 64"
    return at_most("in-network: time(N = 1e6) / time(N = 1e3)", growth, "x", 3, note)


def _sizes() -> Finding:
    program = program_of(build("all-reduce", "recursive-doubling", 32))
    traced = []

    @eqx.filter_jit
    def times(links: Links, size: jax.Array) -> jax.Array:
        traced.append(size)
        return completion(program, links, size, _KEY, 16)

    for size in np.geomspace(1e3, 1e9, 64):
        links = Links(1e-6 * size**0.01, 1e11 + size, (Exponential(1e-6),))
        times(links, jnp.asarray(size))
    note = "and as many latencies and bandwidths"
    return at_most("compilations for 64 sizes", len(traced), "", 1, note)


def _simpy_ring(n: int) -> float:
    world = simpy.Environment()
    rng = np.random.default_rng(0)
    rounds = 2 * (n - 1)
    # One event for each rank and round: done with it.
    done = [[world.event() for _ in range(rounds)] for _ in range(n)]

    def rank(index: int):
        for step in range(rounds):
            if step:
                yield done[index - 1][step - 1]
            yield world.timeout(1e-6 + 64e6 / n / 1e11 + rng.exponential(1e-6))
            done[index][step].succeed()

    for index in range(n):
        world.process(rank(index))
    world.run()
    return world.now
