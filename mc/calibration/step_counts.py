"""How many chips of a run are slow: one number for all its steps, that a likelihood has to sum over.

With k of n chips slow by a factor s, and F one healthy rank's law, the slowest has

    log F_k(t) = (n - k) log F(t) + k log F(t/s),      f_k/F_k = (n - k) f/F(t) + (k/s) f/F(t/s),

and a run of steps the likelihood sum over k of Binomial(k; n, fraction) times the product over its steps of f_k. Between whole
numbers the logarithm of the summand is concave in k but for the states of links, so its top is found by bisection of its
slope, and the sum goes over every whole number around it: 32 on either side, or, where the summand is wider than that, over
every second, third, ... one, which for a smooth summand is as good (the trapezoidal rule: Trefethen, Weideman, *SIAM Review*
56, 2014). A sum over fixed places misses the one number that many steps of a run single out.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Float, Int

# A stand-in for the logarithm of nothing, which differences can be taken of.
NEVER = -1e6
# Numbers of slow chips that are summed over.
COUNTS = 64
# Standard deviations of the summand that lie between two of them, at most.
_APART = 0.25
# Rows worked on at a time.
_ROWS = 2048


class Counts(NamedTuple):
    """Numbers of slow chips of runs.

    Attributes:
        numbers: of slow chips.
        chances: logarithms of the chance of each, or of those that it stands for, times the likelihood of the run's steps.
    """

    numbers: Float[Array, "runs counts"]
    chances: Float[Array, "runs counts"]


class Rows(NamedTuple):
    """Step times of all runs, as the law of one rank has them; healthy and, if there are any, slow chips along the first axis.

    Attributes:
        log_cdf: of one rank.
        log_hazard: of its density over its distribution function.
        shares: logarithms of the probabilities of what links add.
        run: that each belongs to.
    """

    log_cdf: Float[Array, "factors rows atoms"]
    log_hazard: Float[Array, "factors rows atoms"]
    shares: Float[Array, "rows atoms"]
    run: Int[np.ndarray, " rows"]


def nothing() -> Rows:
    """The rows of runs that were not measured."""
    return Rows(jnp.zeros((2, 0, 1)), jnp.zeros((2, 0, 1)), jnp.zeros((0, 1)), np.zeros(0, int))


def without_slow(rows: Rows, ranks: tuple[int, ...]) -> Float[Array, " runs"]:
    """Log likelihood of the steps of each run where no chip is slow."""
    n = np.array(ranks, float)[rows.run][:, None]
    each = jax.nn.logsumexp(rows.shares + n * rows.log_cdf[0] + np.log(n) + rows.log_hazard[0], axis=-1)
    return jax.ops.segment_sum(each, jnp.asarray(rows.run), len(ranks))


def counts_of(rows: Rows, ranks: tuple[int, ...], fraction: Array) -> Counts:
    """The numbers that matter of each run, and the logarithm of what each adds to the run's likelihood.

    Args:
        rows: none for a run that was not measured.
        ranks: of each run.
        fraction: of slow chips.
    """
    most = jnp.asarray(ranks, float)[None]
    places = jnp.arange(COUNTS, dtype=float)[:, None]
    # The places of the sum are no part of what is differentiated.
    cdf, hazard, states, share = jax.lax.stop_gradient((*rows[:3], fraction))
    steps = _by_run(Rows(cdf, hazard, states, rows.run), len(ranks))

    def log_summand(k: Array) -> Array:
        return _log_binomial(k, most, share) + steps(k, most)

    slope = jax.grad(lambda k: jnp.sum(log_summand(k)))

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) / 2
        rises = slope(middle) > 0
        return jnp.where(rises, middle, low), jnp.where(rises, high, middle)

    times = math.ceil(math.log2(max(ranks))) + 2
    top = jax.lax.fori_loop(0, times, halve, (jnp.zeros_like(most), most))[1]
    # Not beyond either end, nor at 0, where log k has no slope.
    below, above = (jnp.clip(each, 1e-3, most - 1e-3) for each in (top - 0.5, top + 0.5))
    bend = (slope(below) - slope(above)) / jnp.maximum(above - below, 1e-3)
    stride = jnp.maximum(jnp.ceil(_APART / jnp.sqrt(jnp.maximum(bend, 1e-12))), 1.0)
    stride = jnp.minimum(stride, jnp.maximum(jnp.ceil(most / (COUNTS - 1)), 1.0))
    first = jnp.minimum(jnp.round(top) - COUNTS // 2 * stride, most - (COUNTS - 1) * stride)
    numbers = jnp.maximum(first, 0.0) + stride * places
    exists = numbers <= most
    numbers = jnp.minimum(numbers, most)
    chances = _log_binomial(numbers, most, fraction) + _by_run(rows, len(ranks))(numbers, most)
    return Counts(numbers.T, jnp.where(exists, jnp.log(stride) + chances, NEVER).T)


def _log_binomial(k: Array, ranks: Array, fraction: Array) -> Array:
    ways = gammaln(ranks + 1) - gammaln(k + 1) - gammaln(ranks - k + 1)
    return ways + k * jnp.log(fraction) + (ranks - k) * jnp.log1p(-fraction)


def _by_run(rows: Rows, runs: int) -> Callable[[Array, Array], Array]:
    """Log likelihood of the steps of each run given k slow chips of n, [counts, runs] of both; some rows at a time."""
    total = len(rows.run)
    if not total:
        return lambda k, ranks: jnp.zeros_like(k)
    size = min(_ROWS, total)
    pieces = -(-total // size)
    # What is missing from the last piece belongs to no run.
    of_run = np.concatenate([rows.run, np.full(pieces * size - total, runs)]).reshape(pieces, size)

    def cut(leaf: Array, axis: int) -> Array:
        widths = [(0, pieces * size - total if place == axis else 0) for place in range(leaf.ndim)]
        shape = (*leaf.shape[:axis], pieces, size, *leaf.shape[axis + 1 :])
        return jnp.moveaxis(jnp.pad(leaf, widths).reshape(shape), axis, 0)

    cuts = cut(rows.log_cdf, 1), cut(rows.log_hazard, 1), cut(rows.shares, 0), jnp.asarray(of_run)

    def found(k: Array, ranks: Array) -> Array:
        def piece(own: tuple[Array, Array, Array, Array]) -> Array:
            cdf, hazard, shares, run = own
            cdf, hazard, shares = cdf[:, None], hazard[:, None], shares[None]
            place = jnp.minimum(run, runs - 1)
            slow = k[:, place, None]
            healthy = (ranks - k)[:, place, None]
            rate = jnp.logaddexp(log(healthy) + hazard[0], log(slow) + hazard[1])
            each = jax.nn.logsumexp(shares + healthy * cdf[0] + slow * cdf[1] + rate, axis=-1)
            return each @ jax.nn.one_hot(run, runs, dtype=each.dtype)

        return jnp.sum(jax.lax.map(piece, cuts), axis=0)

    return found


def log(value: Array) -> Array:
    """The logarithm, with a number for that of 0, and a slope of 0 there."""
    value = jnp.asarray(value, jnp.result_type(float))
    return jnp.where(value > 0, jnp.log(jnp.where(value > 0, value, 1.0)), NEVER)
