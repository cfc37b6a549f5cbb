"""Persistent slowness: what is drawn once for a realisation of the cluster and then stays, step after step.

Each unit of a scope (a chip, a node, a rack) has a factor: slow with a probability, or spread by a law. A rank's
factor is the product over the units that it lies in. Given the factors, what matters for the slowest rank is how many
ranks have which factor, not where they are. So a realisation is a short list of *classes*: a factor and a
count. From the outermost scope to the innermost each class is split:

- a fraction that is slow: binomially, slow nodes within slow racks and within healthy ones. Exact.
- a spread: by order statistics. The 32 slowest units are classes of their own, drawn exactly; the units behind them are
  taken together in runs, each a fifth as long as its distance from the top, and a whole run has the factor of its
  middle unit, again drawn exactly (successive beta spacings, David and Nagaraja 2003, section 2.5). The error is
  that within a run: a tenth of an octave in the survival of the factor, and none among the slowest 32. With two
  spreads, 8 and half an octave.

Under one seed, more ranks never mean fewer of a kind or faster ones, rank for rank in descending order.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray
from numpy.typing import NDArray
from scipy import special

from mc.delays import AbstractDelay, ParameterError
from mc.delays.checks import scalar
from mc.random import binomial_counts, draw_levels, stream

# (units on their own, length of a run as a part of its start), by the number of spreads.
_RUNS = {1: (32, 0.19), 2: (8, 0.5)}


class Persistent(eqx.Module):
    """A factor that each unit of `unit` ranks keeps.

    Attributes:
        name: names the random stream.
        unit: ranks per unit.
        fraction: probability that a unit is slow; None with a spread.
        slowdown: factor of a slow unit, at least 1.
        spread: the law of the factor; None with a fraction.
    """

    name: str = eqx.field(static=True)
    unit: int = eqx.field(static=True)
    fraction: Float[Array, ""] | None = eqx.field(
        converter=lambda value: None if value is None else scalar("slow fraction", minimum=0.0)(value),
        default=None,
    )
    slowdown: Float[Array, ""] = eqx.field(converter=scalar("slowdown", minimum=1.0), default=1.0)
    spread: AbstractDelay | None = None

    def __check_init__(self):
        """A unit holds ranks, and is either slow or spread."""
        if self.unit < 1:
            raise ParameterError(f"unit: expected at least one rank; got {self.unit}")
        if (self.fraction is None) == (self.spread is None):
            raise ParameterError("expected either a fraction or a spread of persistent slowness")

    def mean(self) -> Float[Array, ""]:
        """Mean factor of a unit."""
        if self.spread is not None:
            return self.spread.mean()
        assert self.fraction is not None
        return 1 + self.fraction * (self.slowdown - 1)

    def factor(self, choice: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """The factor by `choice`: of a fraction, whether a unit is slow (0 or 1); of a spread, its log-survival."""
        if self.spread is not None:
            return self.spread.quantile(choice)
        return jnp.where(choice > 0, self.slowdown, jnp.ones_like(self.slowdown))


class Classes(eqx.Module):
    """The ranks of realisations, by their factor.

    Attributes:
        choices: what `Persistent.factor` takes, for each class and persistent entry.
        counts: how many units each class has, in units of so many ranks as `draw_classes` was told.
        fixed: a further factor of each class that nobody draws, of its kind of chip; None for 1.
    """

    choices: Float[ArrayLike, "*cells classes entries"]
    counts: Float[ArrayLike, "*cells classes"]
    fixed: Float[ArrayLike, "*cells classes"] | None = None


def draw_classes(
    persistent: tuple[Persistent, ...],
    ranks: int,
    key: PRNGKeyArray,
    realisations: int,
    *,
    unit: int = 1,
    kinds: tuple[tuple[int, float], ...] = (),
) -> Classes:
    """The classes of each realisation.

    Args:
        persistent: innermost scope first.
        ranks: of the job; a unit of which it fills a part counts as one.
        key: root key of the run.
        realisations: how many to draw.
        unit: ranks per unit in which classes are counted; at most that of `persistent[0]`.
        kinds: (ranks, factor) of kinds of chips, each filling units of its own; none if all are alike.

    Returns:
        Classes with a leading axis of realisations.

    Raises:
        ParameterError: more than two spreads.
    """
    spreads = sum(entry.spread is not None for entry in persistent)
    if spreads > max(_RUNS):
        raise ParameterError(f"expected at most two persistent spreads; got {spreads}")
    outer = persistent[-1].unit if persistent else unit
    kinds = kinds or ((ranks, 1.0),)
    numbers, kept = (np.array(column, np.float64) for column in zip(*kinds, strict=True))
    counts = np.tile(np.ceil(numbers / outer), (realisations, 1))
    choices: list[NDArray[np.float64]] = []
    for entry in reversed(persistent):
        counts = _in_units(counts, outer, entry.unit, ranks)
        outer = entry.unit
        # Classes first: another class leaves the levels of the others alone.
        own = stream(key, entry.name)
        if entry.spread is None:
            levels = np.asarray(draw_levels(own, counts.shape[::-1]), np.float64).T
            slow = binomial_counts(levels, counts, float(entry.fraction or 0.0))
            split, choice = np.stack([counts - slow, slow], axis=2), np.array([0.0, 1.0])
        else:
            split, choice = _in_runs(own, counts, ranks // entry.unit + 1, *_RUNS[spreads])
        choice = np.broadcast_to(choice, split.shape)
        parts = split.shape[2]
        choices = [np.repeat(earlier, parts, axis=1) for earlier in choices]
        choices.insert(0, choice.reshape(realisations, -1))
        kept = np.repeat(kept, parts)
        counts = split.reshape(realisations, -1)
    counts = _in_units(counts, outer, unit, ranks)
    columns = np.stack(choices, axis=-1) if choices else np.zeros((*counts.shape, 0))
    return Classes(columns, counts, np.broadcast_to(kept, counts.shape) if len(kinds) > 1 else None)


def _in_units(counts: NDArray[np.float64], outer: int, inner: int, ranks: int) -> NDArray[np.float64]:
    """The same classes in smaller units, ⌈ranks / inner⌉ in all: the largest class gives what the last unit lacks."""
    finer = counts * max(1, -(-outer // inner))
    excess = finer.sum(axis=1) - max(1, -(-ranks // inner))
    largest = np.argmax(finer, axis=1)
    finer[np.arange(len(finer)), largest] -= np.maximum(excess, 0)
    return finer


def _in_runs(
    key: PRNGKeyArray, counts: NDArray[np.float64], most: int, alone: int, length: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Splits each class into its slowest units and runs of the others; the log-survivals of their factors."""
    starts = list(range(min(alone, most)))
    while starts[-1] + 1 < most and (following := _end(starts[-1], alone, length)) < most:
        starts.append(following)
    ends = [_end(start, alone, length) for start in starts]
    realisations, classes = counts.shape
    shape = (len(starts), classes, realisations)
    levels = np.asarray(draw_levels(key, shape), np.float64).transpose(2, 1, 0)
    split = np.stack(
        [np.clip(counts - start, 0, end - start) for start, end in zip(starts, ends, strict=True)], axis=2
    )
    survivals = np.empty_like(split)
    before, position = np.zeros_like(counts), np.zeros_like(counts)
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        # The middle unit of the run, or of the part of it that is filled, counted from 1.
        middle = np.where(counts > start, start + np.ceil((np.minimum(counts, end) - start) / 2), np.nan)
        # U of that position, given U of the one before: the rest of the interval, times a beta.
        gap, behind = middle - position, counts - middle + 1
        share = special.betaincinv(gap, behind, np.exp(levels[..., place]))
        filled = np.isfinite(middle)
        before = np.where(filled, before + (1 - before) * np.where(filled, share, 0.0), before)
        position = np.where(filled, middle, position)
        survivals[..., place] = before
    # Of a class without units nobody asks, as long as its factor is a number.
    survivals = np.where(survivals > 0, survivals, 0.5)
    return split, np.log(np.minimum(survivals, 1 - 2.0**-53))


def _end(start: int, alone: int, length: float) -> int:
    return start + 1 if start < alone else start + max(1, int(start * length))


def factors(persistent: tuple[Persistent, ...], classes: Classes) -> Float[Array, " classes"]:
    """Each class's factor in one realisation: the product over the entries, and its kind of chip."""
    choices = jnp.asarray(classes.choices)
    if classes.fixed is None:
        product = jnp.ones(choices.shape[0], jnp.result_type(float))
    else:
        product = jnp.asarray(classes.fixed, jnp.result_type(float))
    for place, entry in enumerate(persistent):
        product = product * entry.factor(choices[:, place])
    return product


def place_factors(entry: Persistent, ranks: int, key: PRNGKeyArray) -> Float[Array, " units"]:
    """The factor of every unit of an entry, unit by unit; unit i's depends on the key and on i."""
    levels = draw_levels(stream(key, entry.name), (max(1, -(-ranks // entry.unit)),))
    if entry.spread is not None:
        return entry.spread.quantile(levels)
    assert entry.fraction is not None
    positive = entry.fraction > 0
    limit = jnp.where(positive, jnp.log(jnp.where(positive, entry.fraction, 1.0)), -jnp.inf)
    return jnp.where(levels <= limit, entry.slowdown, jnp.ones_like(entry.slowdown))


def innermost_first(entries: tuple[Persistent, ...]) -> tuple[Persistent, ...]:
    """Sorted by scope, smallest units first; entries of one scope keep their order."""
    return tuple(sorted(entries, key=lambda entry: entry.unit))
