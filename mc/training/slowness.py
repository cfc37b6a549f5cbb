r"""How much longer an operation takes than it would on chips that are all alike: the slowest rank of a group.

A rank takes f·Z + (J + P)/C times as long as an undisturbed one, with

- f, its persistent factor, drawn once per realisation; times what its kind of chip takes of what the slowest in the
  group does, where there are several;
- Z, the spread, and J, the jitter (seconds), drawn for each operation: one micro-batch through one part of the model;
- P, a pause, so rare that it happens with the given probability in a step: with its part of it in each operation;
- C, the seconds that the operation computes.

The group takes M, what its slowest rank takes. Beside, kernels may differ from one *stretch* to the next: what a rank
computes between two waits for the others, of which an operation has k. In each, rank r is z·f_r/f times as long, and j
seconds longer, with f the largest of the factors. The group waits k times for its slowest, and takes M·K with

    K = 1/k · Σ over k stretches of max over r of (z·f_r/f + j·k/(C·f)),

exact where only kernels and factors differ, and an upper bound, by max a·b ≤ max a · max b, where Z or J do as well.

The law of M·K, with ranks that differ in f alone, is tabulated once for each C, k and combination of factors (a *profile*)
and then drawn with one number per operation, however many ranks the group has (`tables.py`). Where the law is smooth
enough that its quantile is a polynomial in a normal number to 10⁻⁵ (spreads are, pauses are not), that stands in for the
table, seven times as fast. With `direct` every rank is drawn, and each of its stretches, by the laws themselves.
"""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32
from numpy.polynomial import chebyshev
from numpy.typing import NDArray
from scipy import special

from mc.delays import AbstractDelay, with_inverse
from mc.delays.quantiles import KNOTS, at_times, largest_of, quantiles_of, sum_of, total_of
from mc.pipeline import normal_from_word
from mc.training.tables import REACH, QuantileTable, table_of

Floats = NDArray[np.float64]
# Of a profile: a factor, how many ranks have it, and on which kind of chip.
Alike = tuple[float, int, int]

# Normal numbers of 32 bits go up to ±6.34.
_DEEPEST = 6.4
_DEGREES, _AGREEMENT = (9, 13, 17), 1e-5


class KernelNoise(eqx.Module):
    """What makes a rank's stretch longer from one to the next.

    Attributes:
        spread: factor; None for 1.
        jitter: seconds; None for none.
    """

    spread: AbstractDelay | None = None
    jitter: AbstractDelay | None = None


class RankNoise(eqx.Module):
    """What makes a rank's operation longer from one to the next.

    Attributes:
        spread: factor; None for 1.
        jitter: seconds; None for none.
        pause: seconds; None for none.
        pause_probability: of a pause in an operation.
        kernels: of each stretch; None for none.
    """

    spread: AbstractDelay | None = None
    jitter: AbstractDelay | None = None
    pause: AbstractDelay | None = None
    pause_probability: Float[Array, ""] | float = 0.0
    kernels: KernelNoise | None = None

    @property
    def is_random(self) -> bool:
        """Whether there is anything."""
        return any(each is not None for each in (self.spread, self.jitter, self.pause, self.kernels))

    @property
    def adds_seconds(self) -> bool:
        """Whether anything is added to an operation, so that its law depends on how long that is."""
        return self.jitter is not None or self.pause is not None

    def prepared(self) -> "RankNoise":
        """The same with the tables that draws of single ranks read."""
        spread, jitter, pause = (
            None if law is None else with_inverse(law) for law in (self.spread, self.jitter, self.pause)
        )
        kernels = self.kernels
        if kernels is not None:
            laws = (None if law is None else with_inverse(law) for law in (kernels.spread, kernels.jitter))
            kernels = KernelNoise(*laws)
        return RankNoise(spread, jitter, pause, self.pause_probability, kernels)


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


def fit_curve(table: QuantileTable) -> SlownessCurve | None:
    """Polynomials that agree with a table to `_AGREEMENT`; None if there are none, or classes differ."""
    classes = np.asarray(table.times, np.float64)
    if np.any(classes != classes[:1]):
        return None
    times = classes[0]
    odds = np.linspace(-REACH, REACH, times.shape[-1])
    score = -special.ndtri_exp(-np.logaddexp(0.0, odds)) / _DEEPEST
    inside = np.abs(score) <= 1.0
    at, wanted = score[inside], np.log(times[:, inside])
    # Even weight over scores: knots are even in log-odds, which crowd there.
    weight = np.sqrt(np.gradient(at))
    for degree in _DEGREES:
        fit = chebyshev.chebfit(at, wanted.T, degree, w=weight)
        if np.all(np.abs(chebyshev.chebval(at, fit) - wanted) <= _AGREEMENT):
            # Leading coefficients that are exactly 0 are left out: a noise that is one factor has none.
            columns = [chebyshev.cheb2poly(column) for column in fit.T]
            powers = np.stack([np.pad(each, (0, degree + 1 - len(each)))[::-1] for each in columns], axis=1)
            return SlownessCurve(jnp.asarray(powers, jnp.result_type(float)))
    return None


def tabulate_slowness(
    noise: RankNoise,
    seconds: Sequence[float],
    profiles: Sequence[Sequence[Alike]],
    *,
    stretches: Sequence[int] | None = None,
    ratios: Floats | None = None,
) -> QuantileTable:
    """The table of a noise, by class of operations and profile.

    Args:
        noise: of each rank.
        seconds: that an operation computes, per class.
        profiles: the ranks of each kind of group.
        stretches: in which an operation computes, per class; 1 without it.
        ratios: how long each kind of chip computes, over the slowest in the group, [classes, kinds]; 1 without it.
    """
    lengths = np.maximum(np.asarray(seconds, np.float64), 1e-12)
    ranks = _Ranks.of(profiles, np.ones((lengths.size, 1)) if ratios is None else ratios)
    found = _slowest(noise, lengths, ranks)
    kernels = noise.kernels
    if kernels is None:
        return table_of(found)
    counts = np.ones(lengths.size, np.int64) if stretches is None else np.asarray(stretches)
    one = _slowest(RankNoise(kernels.spread, kernels.jitter), lengths / counts, ranks)
    known: dict[bytes, Floats] = {}
    for place in np.ndindex(*found.shape[:2]):
        count, law = int(counts[place[0]]), found[place]
        told = count.to_bytes(8) + one[place].tobytes() + law.tobytes()
        if told not in known:
            total = total_of(one[place], count) / (count * ranks.largest[place])
            known[told] = np.exp(sum_of(np.log(law), np.log(total)))
        found[place] = known[told]
    return table_of(found)


class _Ranks(NamedTuple):
    """The ranks of profiles.

    Attributes:
        factors: that ranks may have, in each class of operations, [classes, factors].
        counts: how many do, [profiles, factors].
        largest: the largest factor that some rank has, [classes, profiles].
    """

    factors: Floats
    counts: Floats
    largest: Floats

    @staticmethod
    def of(profiles: Sequence[Sequence[Alike]], ratios: Floats) -> "_Ranks":
        """From what is said about each profile."""
        told = sorted({(factor, chip) for profile in profiles for factor, _, chip in profile})
        counts = np.zeros((len(profiles), len(told)))
        for row, profile in zip(counts, profiles, strict=True):
            for factor, ranks, chip in profile:
                row[told.index((factor, chip))] += ranks
        factors = np.array([[factor * row[chip] for factor, chip in told] for row in ratios])
        largest = np.where(counts > 0, factors[:, None], 0.0).max(axis=2)
        return _Ranks(factors, counts, largest)


def _slowest(noise: RankNoise, lengths: Floats, ranks: _Ranks) -> Floats:
    """Quantiles of the slowest rank, [classes, profiles, knots]; classes that are alike are worked out once."""
    told = np.column_stack([lengths, ranks.factors]) if noise.adds_seconds else ranks.factors
    _, first, which = np.unique(told, axis=0, return_index=True, return_inverse=True)
    spread, jitter, pause = (
        None if law is None else quantiles_of(law) for law in (noise.spread, noise.jitter, noise.pause)
    )
    even = np.ones(KNOTS) if spread is None else spread
    probability = float(noise.pause_probability)
    found = np.empty((first.size, len(ranks.counts), KNOTS))
    for row, place in zip(found, first, strict=True):
        laws = []
        for factor in ranks.factors[place]:
            law = factor * even
            if jitter is not None:
                law = sum_of(law, jitter / lengths[place])
            if pause is not None and probability > 0:
                law = at_times(law, sum_of(law, pause / lengths[place]), probability)
            laws.append(law)
        row[:] = [largest_of(laws, counts.tolist()) for counts in ranks.counts]
    return found[which.ravel()]


def number_of_profiles(
    factors: np.ndarray, chips: np.ndarray | None = None
) -> tuple[np.ndarray, list[list[Alike]]]:
    """Which combination of factors and kinds of chips each group has, and the combinations.

    Args:
        factors: [..., ranks of a group].
        chips: kinds, likewise; all alike without it.

    Returns:
        Numbers of shape [...], and per number the (factor, ranks, kind of chip) of its groups.
    """
    kinds = np.zeros(1, np.int64) if chips is None else chips
    most = int(kinds.max()) + 1
    values, place = np.unique(factors, return_inverse=True)
    place = place.reshape(factors.shape) * most + kinds
    told, place = np.unique(place, return_inverse=True)
    place = place.reshape(-1, factors.shape[-1])
    counts = np.zeros((place.shape[0], told.size), np.int64)
    np.add.at(counts, (np.arange(place.shape[0])[:, None], place), 1)
    rows, number = np.unique(counts, axis=0, return_inverse=True)
    profiles = [
        [
            (float(values[code // most]), int(count), int(code % most))
            for code, count in zip(told, row, strict=True)
            if count
        ]
        for row in rows
    ]
    return number.reshape(factors.shape[:-1]), profiles
