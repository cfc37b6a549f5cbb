"""The law of a step's time on n ranks, from an experiment, as a likelihood sees it.

    T = exchange(n) + E + M,    M the slowest of n ranks,

with what an idle exchange takes, and what states of links add: one of a few fixed times, whose probabilities the
slowest group has. Jitter of links, microseconds beside what ranks wait for, counts with its mean. Given k slow chips of n, log F(t)
of M is (n − k)·log F₁(t) + k·log F₁(t/s). Which chips are slow does not change from step to step, so k is one unknown number for
all steps of a run, and the likelihood of the run is a sum over k of that of all its steps together: a thousand steps
say little more about the share of slow chips than ten.

All comes from the log survival of one rank, by the builders of `tailstep run` on traced numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray
from scipy import special

from mc.calibration.errors import CalibrationError
from mc.calibration.parameters import Parameters
from mc.collectives.stages import Stage
from mc.config import ExperimentConfig
from mc.delays import AbstractDelay, Discrete, Slowest, build_delay
from mc.experiment import build
from mc.experiment.build import stages_of
from mc.fabric import build_cluster
from mc.step import Step

# A stand-in for the logarithm of nothing, which differences can be taken of.
_NEVER = -1e6
# How many numbers of slow chips are looked at.
_COUNTS = 64
# Of the table of one rank's law, of each kind.
_POINTS = 96
_HALVINGS = 40


@dataclass(frozen=True)
class StepRun:
    """Step times of one run: of one job, on the same chips throughout.

    Attributes:
        ranks: that wait for each other.
        times: seconds.
        source: the file.
    """

    ranks: int
    times: NDArray[np.float64]
    source: str = ""


class _Pieces(NamedTuple):
    """One rank's law; per run the exchange, and what links add with the logarithm of its probability, [runs, atoms]."""

    rank: AbstractDelay
    exchange: Float[Array, " runs"]
    added: Float[Array, "runs atoms"]
    shares: Float[Array, "runs atoms"]
    fraction: Array | None
    slowdown: Array | None


@dataclass(frozen=True, eq=False)
class StepModel:
    """Step times of some runs as an experiment with free figures has them.

    Attributes:
        config: the experiment.
        parameters: what is free.
        ranks: of each run.
    """

    config: ExperimentConfig
    parameters: Parameters
    ranks: tuple[int, ...]

    def __post_init__(self) -> None:
        check_steps(self.config, self.ranks)
        for path in (path for each in self.parameters.items for path in each.paths):
            if path.startswith("cluster.tiers.") and "jitter" in path.split("."):
                raise CalibrationError(
                    f"{path}: expected another figure than that of links' jitter, which counts with its mean"
                )
        # Before anything is traced.
        _ = self._jitter

    @cached_property
    def _sized(self) -> list[tuple[ExperimentConfig, Sequence[Stage]]]:
        """The experiment on so many ranks, and how its exchange is carried out there."""
        found = []
        quiet = [tier.model_copy(update={"jitter": None}) for tier in self.config.cluster.tiers]
        cluster = self.config.cluster.model_copy(update={"tiers": tuple(quiet)})
        for count in self.ranks:
            plan = self.config.plan.model_copy(update={"ranks": count})
            sized = self.config.model_copy(update={"plan": plan, "cluster": cluster})
            found.append((sized, stages_of(sized, build_cluster(cluster))))
        return found

    @cached_property
    def _jitter(self) -> NDArray[np.float64]:
        """Mean seconds that the slowest message of each phase is late by jitter, of each run."""
        laws = {
            tier.name: build_delay(tier.jitter)
            for tier in self.config.cluster.tiers
            if tier.jitter is not None
        }
        found = []
        for ranks, (config, chosen) in zip(self.ranks, self._sized, strict=True):
            tiers = [phase.name.split(":")[0] for phase in build(config, chosen).step.phases]
            found.append(sum(float(Slowest(laws[name], ranks).mean()) for name in tiers if name in laws))
        return np.array(found)

    def _pieces(self, z: Array) -> _Pieces:
        steps = [build(self.parameters.into(config, z), stages).step for config, stages in self._sized]
        links = [_added(step) for step in steps]
        most = max(len(added) for added, _ in links)
        compute = steps[0].compute
        slow = compute.persistent[0] if compute.persistent else None
        return _Pieces(
            compute.rank,
            jnp.stack([_idle(step) for step in steps]) + self._jitter,
            jnp.stack([jnp.pad(added, (0, most - len(added))) for added, _ in links]),
            jnp.stack([jnp.pad(share, (0, most - len(share)), constant_values=_NEVER) for _, share in links]),
            None if slow is None else slow.fraction,
            None if slow is None else slow.slowdown,
        )

    def log_likelihood(self, z: Array, times: Sequence[Array]) -> Array:
        """Of the step times of each run, [runs]; traceable."""
        return jax.nn.logsumexp(self.with_counts(z, times), axis=1)

    def with_counts(self, z: Array, times: Sequence[Array]) -> Float[Array, "runs counts"]:
        """Log of the chance of each number of slow chips in each run, and of its step times given it; traceable.

        Of a run without times it is the chance of the number alone.
        """
        pieces = self._pieces(z)
        ends = np.cumsum([0, *(len(each) for each in times)])
        run = np.repeat(np.arange(len(times)), np.diff(ends))
        since = jnp.concatenate(list(times)) - pieces.exchange[run]
        factors = _factors(pieces)
        at = (since[:, None] - pieces.added[run])[None] / factors[:, None, None]
        log_cdf, log_hazard = _table(pieces.rank, since, at, factors)(at)
        log_hazard = log_hazard - jnp.log(factors)[:, None, None]
        found = []
        for place, ranks in enumerate(self.ranks):
            rows = slice(ends[place], ends[place + 1])
            share, cdf, hazard = pieces.shares[place][None], log_cdf[:, None, rows], log_hazard[:, None, rows]
            log_shares = self._count_shares(pieces)[place]
            if pieces.fraction is None:
                row = share[None] + ranks * cdf[0] + np.log(ranks) + hazard[0]
                each = jnp.sum(jax.nn.logsumexp(row, axis=-1), axis=-1)
            else:
                k = jnp.asarray(self._counts[place])[:, None, None]
                together = (ranks - k) * cdf[0] + k * cdf[1]
                rate = jnp.logaddexp(_log(ranks - k) + hazard[0], _log(k) + hazard[1])
                each = jnp.sum(jax.nn.logsumexp(share[None] + together + rate, axis=-1), axis=-1)
            found.append(log_shares + each)
        return jnp.stack(found)

    @cached_property
    def quantiles(self) -> Callable[[Array, Array, Array], Array]:
        """Seconds for coordinates, levels, and logarithms of the chances of numbers of slow chips (`with_counts`), [runs, levels].

        By bisection of the logarithm of the time.
        """

        @jax.jit
        def found(z: Array, levels: Array, chances: Array) -> Array:
            pieces = self._pieces(z)
            weights = chances - jax.nn.logsumexp(chances, axis=1, keepdims=True)
            low = jnp.log(jnp.maximum(pieces.exchange, 1e-12))[:, None] + jnp.zeros_like(levels)[None]

            def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
                below, above = ends
                middle = (below + above) / 2
                early = self._log_cdf(pieces, jnp.exp(middle), weights) < jnp.log(levels)[None]
                return jnp.where(early, middle, below), jnp.where(early, above, middle)

            return jnp.exp(jax.lax.fori_loop(0, _HALVINGS, halve, (low, low + 20.0))[1])

        return found

    @cached_property
    def counts_of_nobody(self) -> Callable[[Array], Array]:
        """Logarithms of the chances of numbers of slow chips in runs that were not measured, [runs, counts]."""
        return jax.jit(lambda z: self._count_shares(self._pieces(z)))

    def _log_cdf(self, pieces: _Pieces, times: Array, weights: Array) -> Array:
        """Of one step of each run, [runs, points]."""
        left = times[:, :, None] - (pieces.exchange[:, None] + pieces.added)[:, None, :]
        at = left[None] / _factors(pieces)[:, None, None, None]
        cdf = jnp.maximum(pieces.rank.log_cdf(jnp.where(at > 0, at, 1.0)), _NEVER)
        cdf = jnp.where(at > 0, cdf, _NEVER)
        found = []
        for place, ranks in enumerate(self.ranks):
            own, share = cdf[:, place][:, None], pieces.shares[place][None, None]
            if pieces.fraction is None:
                found.append(jax.nn.logsumexp(share + ranks * own[0], axis=-1)[0])
                continue
            k = jnp.asarray(self._counts[place])[:, None, None]
            given = jax.nn.logsumexp(share + (ranks - k) * own[0] + k * own[1], axis=-1)
            found.append(jax.nn.logsumexp(weights[place][:, None] + given, axis=0))
        return jnp.stack(found)

    @cached_property
    def _counts(self) -> NDArray[np.float64]:
        """Numbers of slow chips, [runs, counts], evenly in their roots: as binomial laws are wide."""
        return np.stack([_rooted(np.linspace(0, np.sqrt(ranks), _COUNTS)) for ranks in self.ranks])

    def _count_shares(self, pieces: _Pieces) -> Array:
        """Logarithms of the chances of numbers of slow chips and of those around them, [runs, counts]."""
        if pieces.fraction is None:
            return jnp.zeros((len(self.ranks), 1))
        ranks, counts = np.array(self.ranks, float)[:, None], self._counts
        middle = (counts[:, 1:] + counts[:, :-1]) / 2
        # A number that comes twice has no room the second time.
        ends = np.concatenate([np.full_like(ranks, -0.5), middle, ranks + 0.5], axis=1)
        again = np.diff(counts, axis=1, prepend=-1.0) == 0
        ways = special.gammaln(ranks + 1) - special.gammaln(counts + 1) - special.gammaln(ranks - counts + 1)
        room = np.where(again, 1.0, np.maximum(np.diff(ends, axis=1), 0.5))
        chance = counts * jnp.log(pieces.fraction) + (ranks - counts) * jnp.log1p(-pieces.fraction)
        shares = jnp.where(again, _NEVER, np.log(room) + ways + chance)
        return shares - jax.nn.logsumexp(shares, axis=1, keepdims=True)


def _factors(pieces: _Pieces) -> Array:
    one = jnp.ones(())
    return one[None] if pieces.slowdown is None else jnp.stack([one, pieces.slowdown])


def _rooted(roots: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.round(roots**2)


def check_steps(config: ExperimentConfig, ranks: Sequence[int]) -> None:
    """Refuses what has no likelihood here.

    Raises:
        CalibrationError: with what stands in the way.
    """
    noise, most = config.cluster.noise, max(ranks, default=0)
    before = "expected an experiment whose step times have a likelihood"
    if config.model.transformer is not None:
        raise CalibrationError(f"model: {before} (`compute` and `exchange`); got a transformer")
    if most > config.cluster.size:
        raise CalibrationError(
            f"expected at most the {config.cluster.size} ranks of {config.cluster.name}; got {most}: "
            "`--set cluster.tiers.NAME.fan_out=...` makes it larger"
        )
    if noise.transient is not None:
        raise CalibrationError(f"cluster.noise.transient: {before}; got noise that ranks share")
    if noise.persistent is not None:
        raise CalibrationError(f"cluster.noise.persistent: {before}; got more than `slow_chips`")
    if any(config.mitigations.model_dump(exclude_defaults=True).values()):
        raise CalibrationError(f"mitigations: {before}; got steps that do not wait for all")
    if noise.spread is None and noise.jitter is None:
        raise CalibrationError(
            "cluster.noise: expected a `spread` or a `jitter`, which a likelihood of step times needs; got neither"
        )
    for tier in config.cluster.tiers:
        if tier.congestion is not None and tier.congestion.remembers:
            raise CalibrationError(
                f"cluster.tiers.{tier.name}.congestion: {before}; got links that remember their state"
            )


def _idle(step: Step) -> Array:
    queueing = sum((phase.queueing for phase in step.phases), jnp.zeros(()))
    return step.transfer() + step.latency_floor() + queueing


def _added(step: Step) -> tuple[Array, Array]:
    """What the links of all phases add together, and the logarithms of its probabilities."""
    added, shares = jnp.zeros(1), jnp.zeros(1)
    for phase in step.phases:
        if phase.excess is None:
            continue
        if not isinstance(phase.excess, Slowest) or not isinstance(phase.excess.delay, Discrete):
            raise CalibrationError(
                f"{phase.name}: expected states of links that add a fixed time each; got others"
            )
        own, log_shares = _slowest_state(phase.excess.delay, phase.excess.ranks)
        added = (added[:, None] + own[None]).ravel()
        shares = (shares[:, None] + log_shares[None]).ravel()
    return added, shares


def _slowest_state(states: Discrete, groups: Array) -> tuple[Array, Array]:
    """Times that the slowest of some groups may have, and the logarithms of their probabilities."""
    order = jnp.argsort(states.values)
    values, weights = states.values[order], (states.probabilities / jnp.sum(states.probabilities))[order]
    cdf = jnp.minimum(jnp.cumsum(weights), 1.0).at[-1].set(1.0)
    power = groups * _log(cdf)
    before = jnp.concatenate([jnp.full(1, -jnp.inf), power[:-1]])
    gap = jnp.minimum(before - power, 0.0)
    # log(e^power − e^before), with a slope where they are equal.
    return values, power + _log(-jnp.expm1(jnp.where(jnp.isfinite(gap), gap, _NEVER)))


def _table(
    rank: AbstractDelay, since: Array, at: Array, factors: Array
) -> Callable[[Array], tuple[Array, Array]]:
    """Log F of one rank, and the logarithm of its slope, at the times `at`, from a table of both.

    Between points log(−log F) is a cubic with the right values and slopes at both ends: it is nearly straight in the tail, where
    the slowest of many are. Points lie where the data lie, and evenly from the first to the last.
    """
    levels = np.linspace(0, 1, _POINTS)
    placed = jnp.quantile(jax.lax.stop_gradient(since), levels)
    frozen = jax.lax.stop_gradient(at)
    even = frozen.min() + (frozen.max() - frozen.min()) * levels
    fixed = jax.lax.stop_gradient(factors)
    points = jnp.sort(jnp.concatenate([even, (placed[None] / fixed[:, None]).ravel()]))
    # Never two at one place.
    points = jnp.maximum(points, 1e-9) * (1 + 1e-9 * jnp.arange(points.size))
    log_cdf, slope = jax.jvp(rank.log_cdf, (points,), (jnp.ones_like(points),))
    lost = ~((log_cdf < 0) & (log_cdf > _NEVER))
    log_cdf = jnp.where(lost, jnp.where(log_cdf >= 0, -1e-300, _NEVER), log_cdf)
    depth = jnp.log(-log_cdf)
    steep = jnp.where(lost, 0.0, slope / log_cdf)

    def read(at: Array) -> tuple[Array, Array]:
        place = jnp.clip(jnp.searchsorted(points, at) - 1, 0, points.size - 2)
        low, gap = points[place], points[place + 1] - points[place]
        share = jnp.clip((at - low) / gap, 0.0, 1.0)
        rise = depth[place + 1] - depth[place]
        first, last = gap * steep[place], gap * steep[place + 1]
        # Hermite's cubic, and its slope.
        third, second = first + last - 2 * rise, 3 * rise - 2 * first - last
        value = depth[place] + share * (first + share * (second + share * third))
        falls = -(first + share * (2 * second + share * 3 * third)) / gap
        return -jnp.exp(value), value + _log(falls)

    return read


def _log(value: Any) -> Array:
    value = jnp.asarray(value, jnp.result_type(float))
    return jnp.where(value > 0, jnp.log(jnp.where(value > 0, value, 1.0)), _NEVER)
