r"""How much longer an operation takes than it would on chips that are all alike: the slowest rank of a group.

A rank takes f·Z + (J + P)/C times as long as an undisturbed one, with

- f, its persistent factor, drawn once per realisation;
- Z, the spread, and J, the jitter (seconds), drawn for each operation: one micro-batch through one part of the model;
- P, a pause, so rare that it happens with the given probability in a step: with its part of it in each operation;
- C, the seconds that the operation computes.

The group takes what its slowest rank takes. Its law is that of a maximum over ranks that differ in f alone, which for
each C and each combination of factors (a *profile*) is tabulated once and then drawn with one number per operation,
however many ranks the group has. Tables are even in log-odds between the levels that 32 bits can have, so no search is
needed: a draw costs two logarithms, and looking two numbers up, which takes most of the time. So where the law is smooth
enough that its quantile is a polynomial in a normal number to 10⁻⁵ (spreads are, pauses are not), that
stands in for the table, seven times as fast. With `direct` every rank is drawn, by the laws themselves.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32
from numpy.polynomial import chebyshev
from scipy import special

from mc.delays import (
    AbstractDelay,
    Constant,
    Scaled,
    Shifted,
    Slowest,
    SlowestOf,
    Sum,
    with_inverse,
    with_pauses,
)
from mc.delays.inverse import bisect_bits
from mc.delays.numerics import log_survival_of_odds
from mc.delays.sum import width
from mc.pipeline import normal_from_word

# 32 bits have log-odds up to ±33·log 2.
_REACH = 23.0
_KNOTS = 8193
# And normal numbers up to ±6.34.
_DEEPEST = 6.4
_DEGREES, _AGREEMENT = (9, 13, 17), 1e-5


class RankNoise(eqx.Module):
    """What makes a rank's operation longer from one to the next.

    Attributes:
        spread: factor; None for 1.
        jitter: seconds; None for none.
        pause: seconds; None for none.
        pause_probability: of a pause in an operation.
    """

    spread: AbstractDelay | None = None
    jitter: AbstractDelay | None = None
    pause: AbstractDelay | None = None
    pause_probability: Float[Array, ""] | float = 0.0

    @property
    def is_random(self) -> bool:
        """Whether there is anything."""
        return any(each is not None for each in (self.spread, self.jitter, self.pause))

    @property
    def adds_seconds(self) -> bool:
        """Whether anything is added, so that the law depends on how long an operation is."""
        return self.jitter is not None or self.pause is not None

    def prepared(self) -> "RankNoise":
        """The same with the tables that draws of single ranks read."""
        spread, jitter, pause = (
            None if law is None else with_inverse(law) for law in (self.spread, self.jitter, self.pause)
        )
        return RankNoise(spread, jitter, pause, self.pause_probability)

    def law(
        self, factor: Float[Array, ""], seconds: Float[Array, ""], narrow: tuple[bool, bool] = (True, True)
    ) -> AbstractDelay:
        """The law of a rank with a persistent factor, for an operation of so many seconds.

        Args:
            factor: persistent.
            seconds: that the operation computes.
            narrow: whether jitter, and a pause, vary less than what they are added to.
        """
        law: AbstractDelay = (
            Constant(factor) if self.spread is None else with_inverse(Scaled(self.spread, factor))
        )
        if self.jitter is not None:
            law = _after(law, self.jitter, 1 / seconds, narrow[0])
        if self.pause is not None:
            law = with_pauses(law, self.pause_probability, _after(law, self.pause, 1 / seconds, narrow[1]))
        return law

    def narrow(self, seconds: float) -> tuple[bool, bool]:
        """For `law`: a sum is integrated over its narrower term, which cannot be told while it is traced."""
        spread, jitter, pause = (
            0.0 if law is None else float(width(law)) for law in (self.spread, self.jitter, self.pause)
        )
        return bool(jitter <= seconds * spread), bool(pause <= max(seconds * spread, jitter))


def _after(
    law: AbstractDelay,
    late: AbstractDelay,
    scale: Float[Array, ""],
    is_narrow: bool,  # noqa: FBT001
) -> AbstractDelay:
    """A law with a delay after it, which is scaled."""
    if isinstance(late, Constant):
        return Shifted(law, late.value * scale)
    late = with_inverse(Scaled(late, scale))
    if isinstance(law, Constant):
        return Shifted(late, law.value)
    return with_inverse(Sum(late, law) if is_narrow else Sum(law, late))


class SlownessTable(eqx.Module):
    """Quantiles of the slowest rank of groups, by class of operations and profile.

    Attributes:
        times: [classes, profiles, knots], at log-odds that are even in ±23.
    """

    times: Float[Array, "classes profiles knots"]

    def look_up(
        self, row: Int[Array, "stages batch"], word: UInt32[Array, "stages batch"]
    ) -> Float[Array, "stages batch"]:
        """The quantile of law `row` (class·profiles + profile) at a uniform word."""
        knots = self.times.shape[-1]
        place = (_odds(word) + _REACH) * ((knots - 1) / (2 * _REACH))
        below = jnp.clip(place.astype(jnp.int32), 0, knots - 2)
        part = place - below
        flat = self.times.reshape(-1)
        first = row * knots + below
        low, high = flat[first], flat[first + 1]
        return low + (high - low) * part


class SlownessCurve(eqx.Module):
    """The same, where seconds of operations do not matter, as polynomials in a normal number.

    Attributes:
        coefficients: of the logarithm, the highest power of z/`_DEEPEST` first, [powers, profiles].
    """

    coefficients: Float[Array, "powers profiles"]

    def of_groups(self, profile: Int[Array, "stages batch"]) -> Float[Array, "powers stages batch"]:
        """The polynomials of groups."""
        return self.coefficients[:, profile]


def evaluate_curve(
    coefficients: Float[Array, "powers stages batch"], word: UInt32[Array, "stages batch"]
) -> Float[Array, "stages batch"]:
    """The quantile at a uniform word, from `SlownessCurve.of_groups`."""
    z = normal_from_word(word) * (1 / _DEEPEST)
    found = coefficients[0]
    for each in coefficients[1:]:
        found = found * z + each
    return jnp.exp(found)


def fit_curve(table: SlownessTable) -> SlownessCurve | None:
    """Polynomials that agree with a table of one class to `_AGREEMENT`; None if there are none."""
    times = np.asarray(table.times[0], np.float64)
    odds = np.linspace(-_REACH, _REACH, times.shape[-1])
    score = -special.ndtri_exp(-np.logaddexp(0.0, odds)) / _DEEPEST
    inside = np.abs(score) <= 1.0
    at, wanted = score[inside], np.log(times[:, inside])
    # Even weight over scores: knots are even in log-odds, which crowd there.
    weight = np.sqrt(np.gradient(at))
    for degree in _DEGREES:
        fit = chebyshev.chebfit(at, wanted.T, degree, w=weight)
        if np.all(np.abs(chebyshev.chebval(at, fit) - wanted) <= _AGREEMENT):
            powers = np.stack([chebyshev.cheb2poly(column)[::-1] for column in fit.T], axis=1)
            return SlownessCurve(jnp.asarray(powers, jnp.result_type(float)))
    return None


def tabulate_slowness(
    noise: RankNoise, seconds: Sequence[float], profiles: Sequence[Sequence[tuple[float, int]]]
) -> SlownessTable:
    """The table of a noise.

    Args:
        noise: of each rank.
        seconds: that an operation computes, per class.
        profiles: (factor, how many ranks have it) of each kind of group.
    """
    factors = np.array(sorted({factor for profile in profiles for factor, _ in profile}))
    counts = np.zeros((len(profiles), factors.size))
    for row, profile in zip(counts, profiles, strict=True):
        for factor, ranks in profile:
            row[np.searchsorted(factors, factor)] += ranks
    lengths = np.maximum(np.asarray(seconds, np.float64), 1e-12)
    if not noise.adds_seconds:
        lengths = lengths[:1]
    narrow = [noise.narrow(length) for length in lengths]
    times = np.empty((lengths.size, len(profiles), _KNOTS))
    for each in set(narrow):
        mine = [found == each for found in narrow]
        times[mine] = _tabulate(
            noise, each, jnp.asarray(lengths[mine]), jnp.asarray(factors), jnp.asarray(counts)
        )
    return SlownessTable(jnp.broadcast_to(jnp.asarray(times), (len(seconds), *times.shape[1:])))


@eqx.filter_jit
def _tabulate(
    noise: RankNoise,
    narrow: tuple[bool, bool],
    seconds: Float[Array, " classes"],
    factors: Float[Array, " factors"],
    counts: Float[Array, "profiles factors"],
) -> Float[Array, "classes profiles knots"]:
    levels = log_survival_of_odds(jnp.linspace(-_REACH, _REACH, _KNOTS))

    def of_class(length: Float[Array, ""]) -> Float[Array, "profiles knots"]:
        if factors.size == 1:
            law = noise.law(factors[0], length, narrow)
            return jax.vmap(lambda ranks: with_inverse(Slowest(law, ranks[0])).quantile(levels))(counts)
        laws = jax.vmap(lambda factor: noise.law(factor, length, narrow))(factors)

        def of_profile(ranks: Float[Array, " factors"]) -> Float[Array, " knots"]:
            groups = jax.vmap(Slowest)(laws, ranks)
            return bisect_bits(SlowestOf(groups), levels)

        return jax.lax.map(of_profile, counts)

    return jax.lax.map(of_class, seconds)


def _odds(word: UInt32[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Log-odds of a uniform word, from its nearer end; decreasing words give smaller ones."""
    real = jnp.result_type(float)
    tail = (jnp.minimum(word, ~word).astype(real) + 0.5) * 2.0**-32
    size = jnp.log1p(-tail) - jnp.log(tail)
    return jnp.where(word < jnp.uint32(1 << 31), -size, size)
