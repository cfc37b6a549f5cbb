"""The law of a step's time on n ranks, from an experiment, as a likelihood sees it.

    T = exchange(n) + E + M,    M the slowest of n ranks,

with what an idle exchange takes, and what states of links add: one of a few fixed times, whose probabilities the
slowest group has. Jitter of links, microseconds beside what ranks wait for, counts with its mean. Which chips are slow
does not change from step to step, so their number is one unknown for all steps of a run (`step_counts.py`): a thousand steps
say little more about the share of slow chips than ten.

All comes from the log survival of one rank, by the builders of `tailstep run` on traced numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from mc.calibration.errors import CalibrationError
from mc.calibration.parameters import Parameters
from mc.calibration.step_counts import NEVER, Counts, Rows, counts_of, log, nothing, without_slow
from mc.calibration.step_table import law_at, table_of
from mc.collectives.stages import Stage
from mc.config import ExperimentConfig
from mc.delays import AbstractDelay, Discrete, Slowest, build_delay
from mc.experiment import build
from mc.experiment.build import stages_of
from mc.fabric import build_cluster
from mc.step import Step

_HALVINGS = 40
_LIKELIHOOD = "expected an experiment whose step times have a likelihood"


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

    @property
    def _is_costly(self) -> bool:
        """Whether the law of one rank is that of a sum."""
        noise = self.config.cluster.noise
        return noise.pauses is not None or (noise.spread is not None and noise.jitter is not None)

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
            jnp.stack([jnp.pad(share, (0, most - len(share)), constant_values=NEVER) for _, share in links]),
            None if slow is None else slow.fraction,
            None if slow is None else slow.slowdown,
        )

    def log_likelihood(self, z: Array, times: Sequence[Array]) -> Array:
        """Of the step times of each run, [runs]; traceable."""
        return jax.nn.logsumexp(self.with_counts(z, times).chances, axis=1)

    def with_counts(self, z: Array, times: Sequence[Array]) -> Counts:
        """What each number of slow chips adds to the likelihood of each run; traceable.

        Of a run without times it is the chance of the number alone.
        """
        pieces = self._pieces(z)
        run = np.repeat(np.arange(len(times)), [len(each) for each in times])
        if not len(run):
            return self._counts(pieces, None)
        since = jnp.concatenate(list(times)) - pieces.exchange[run]
        factors = _factors(pieces)
        at = (since[:, None] - pieces.added[run])[None] / factors[:, None, None]
        if self._is_costly:
            log_cdf, log_hazard = table_of(pieces.rank, since, at, factors)(at)
        else:
            log_cdf, log_hazard = law_at(pieces.rank, at)
        log_hazard = log_hazard - jnp.log(factors)[:, None, None]
        return self._counts(pieces, Rows(log_cdf, log_hazard, pieces.shares[run], run))

    def _counts(self, pieces: _Pieces, rows: Rows | None) -> Counts:
        if pieces.fraction is not None:
            return counts_of(nothing() if rows is None else rows, self.ranks, pieces.fraction)
        alone = jnp.zeros((len(self.ranks), 1))
        return Counts(alone, alone if rows is None else without_slow(rows, self.ranks)[:, None])

    @cached_property
    def quantiles(self) -> Callable[[Array, Array, Counts], Array]:
        """Seconds for coordinates, levels, and the chances of numbers of slow chips (`with_counts`), [runs, levels].

        By bisection of the logarithm of the time.
        """

        @jax.jit
        def found(z: Array, levels: Array, counts: Counts) -> Array:
            pieces = self._pieces(z)
            total = jax.nn.logsumexp(counts.chances, axis=1, keepdims=True)
            weights = Counts(counts.numbers, counts.chances - total)
            low = jnp.log(jnp.maximum(pieces.exchange, 1e-12))[:, None] + jnp.zeros_like(levels)[None]

            def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
                below, above = ends
                middle = (below + above) / 2
                early = self._log_cdf(pieces, jnp.exp(middle), weights) < jnp.log(levels)[None]
                return jnp.where(early, middle, below), jnp.where(early, above, middle)

            return jnp.exp(jax.lax.fori_loop(0, _HALVINGS, halve, (low, low + 20.0))[1])

        return found

    @cached_property
    def counts_of_nobody(self) -> Callable[[Array], Counts]:
        """The chances of numbers of slow chips in runs that were not measured."""
        return jax.jit(lambda z: self._counts(self._pieces(z), None))

    def _log_cdf(self, pieces: _Pieces, times: Array, weights: Counts) -> Array:
        """Of one step of each run, [runs, points]."""
        left = times[:, :, None] - (pieces.exchange[:, None] + pieces.added)[:, None, :]
        at = left[None] / _factors(pieces)[:, None, None, None]
        cdf = jnp.maximum(pieces.rank.log_cdf(jnp.where(at > 0, at, 1.0)), NEVER)
        cdf = jnp.where(at > 0, cdf, NEVER)[:, :, None]
        # [runs, counts, points, atoms]
        k = weights.numbers[:, :, None, None]
        ranks = jnp.asarray(self.ranks, float)[:, None, None, None]
        given = (ranks - k) * cdf[0] + k * cdf[-1] + pieces.shares[:, None, None, :]
        return jax.nn.logsumexp(weights.chances[:, :, None] + jax.nn.logsumexp(given, axis=-1), axis=1)


def _factors(pieces: _Pieces) -> Array:
    one = jnp.ones(())
    return one[None] if pieces.slowdown is None else jnp.stack([one, pieces.slowdown])


def check_steps(config: ExperimentConfig, ranks: Sequence[int]) -> None:
    """Refuses what has no likelihood here.

    Raises:
        CalibrationError: with what stands in the way.
    """
    check_barrier(config, ranks)
    noise, before = config.cluster.noise, _LIKELIHOOD
    if noise.transient is not None:
        raise CalibrationError(f"cluster.noise.transient: {before}; got noise that ranks share")
    if noise.spread is None and noise.jitter is None:
        raise CalibrationError(
            "cluster.noise: expected a `spread` or a `jitter`, which a likelihood of step times needs; got neither"
        )
    for tier in config.cluster.tiers:
        if tier.congestion is not None and tier.congestion.remembers:
            raise CalibrationError(
                f"cluster.tiers.{tier.name}.congestion: {before}; got links that remember their state"
            )


def has_likelihood(config: ExperimentConfig) -> bool:
    """Whether steps of ranks that wait for each other have one: not where ranks share noise, or links remember."""
    links = [tier.congestion for tier in config.cluster.tiers if tier.congestion is not None]
    return config.cluster.noise.transient is None and not any(each.remembers for each in links)


def check_barrier(config: ExperimentConfig, ranks: Sequence[int]) -> None:
    """Refuses experiments whose steps do not wait for the slowest of ranks alone, or on too few.

    Raises:
        CalibrationError: with what stands in the way.
    """
    noise, most, before = config.cluster.noise, max(ranks, default=0), _LIKELIHOOD
    if config.model.transformer is not None:
        raise CalibrationError(f"model: {before} (`compute` and `exchange`); got a transformer")
    if most > config.cluster.size:
        raise CalibrationError(
            f"expected at most the {config.cluster.size} ranks of {config.cluster.name}; got {most}: "
            "`--set cluster.tiers.NAME.fan_out=...` makes it larger"
        )
    if noise.persistent is not None:
        raise CalibrationError(f"cluster.noise.persistent: {before}; got more than `slow_chips`")
    if any(config.mitigations.model_dump(exclude_defaults=True).values()):
        raise CalibrationError(f"mitigations: {before}; got steps that do not wait for all")


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
    power = groups * log(cdf)
    before = jnp.concatenate([jnp.full(1, -jnp.inf), power[:-1]])
    gap = jnp.minimum(before - power, 0.0)
    # log(e^power − e^before), with a slope where they are equal.
    return values, power + log(-jnp.expm1(jnp.where(jnp.isfinite(gap), gap, NEVER)))
