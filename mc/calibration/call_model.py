"""The law of a collective's time from call to call, as a cluster's random links have it, and what a fit minimises.

    T = u·idle + E,    E = what the links of each tier add: states that ranks share, and jitter of each rank's message,

by `congestion_law`, which `tailstep run` draws from. Idle times and transfers are those of the cluster as it is; since they are
off by more than noise is wide, each series has a factor u of its own on both, believed to bring the idle time near the series'
least times. So noise is fitted to how times scatter, and not to how long they are.

Where one tier's links are random and their law has no jumps, E has a survival function S in closed form: a call that a clock of
resolution δ showed at t has the probability S(t − δ/2) − S(t + δ/2), that of the slowest of all groups of ranks. Where several tiers
add up, or states add fixed times and nothing else varies, the law is known by weighted points, and what is minimised is the
continuous ranked probability score (Gneiting, Raftery 2007), in units of that which the measured times have among themselves.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from numpy.typing import NDArray

from mc.calibration.calls import CallSeries
from mc.calibration.errors import CalibrationError
from mc.calibration.parameters import Parameters
from mc.collectives.candidates import candidates
from mc.collectives.phases import phases_of
from mc.config import ClusterConfig, TierConfig
from mc.config.cluster import ALL_RANKS, EVERY_RANK_ALONE
from mc.delays import AbstractDelay, Discrete, Shifted, Slowest, build_delay
from mc.document import StrictModel
from mc.exchange import congestion_law
from mc.fabric import LinkStates, build_cluster, sharing

# Of the prior of a series' own factor, in its logarithm.
FACTOR_SPREAD = 0.5
# Where the idle time is believed to lie among a series' times.
_LEAST = 0.02
# A time that no figure allows costs so much, and more the further off it is.
_NEVER = -60.0
# Points of a law that is drawn from, of one tier and of each of several.
_POINTS, _FEW_POINTS = 512, 48
_RESOLUTION = 1e-3


class _Placed(NamedTuple):
    """What a series meets on the tiers whose links are random; the tiers are those of its structure, in their order."""

    idle: float
    transfers: tuple[float, ...]
    groups: tuple[tuple[int, int], ...]
    doublings: tuple[float, ...]


class CallData(NamedTuple):
    """Times of several series of one structure, one after the other; a batch of it is a batch of fits."""

    times: Float[Array, " calls"]
    series: Int[Array, " calls"]
    resolution: Float[Array, " series"]
    scale: Float[Array, " series"]


@dataclass(frozen=True, eq=False)
class CallModel:
    """Times of series of calls on a cluster with free figures of its links' noise.

    Attributes:
        config: the cluster.
        parameters: what is free: figures of `jitter` and `congestion` alone.
        series: what was measured.
    """

    config: ClusterConfig
    parameters: Parameters
    series: tuple[CallSeries, ...]

    def __post_init__(self) -> None:
        for path in (path for each in self.parameters.items for path in each.paths):
            if not is_noise(path):
                raise CalibrationError(
                    f"{path}: expected a figure of links' `jitter` or `congestion` beside others of these; fit the rest to mean "
                    "times first, in a fit of its own"
                )
        # Before anything is traced.
        _ = self.placed

    @cached_property
    def placed(self) -> tuple[tuple[tuple[int, ...], _Placed], ...]:
        """Of each series the random tiers it meets, and what it meets there."""
        return tuple(_place(self.config, each) for each in self.series)

    @cached_property
    def structures(self) -> dict[tuple[int, ...], list[int]]:
        """Places of the series that meet noise on the same tiers."""
        found: dict[tuple[int, ...], list[int]] = {}
        for place, (tiers, _) in enumerate(self.placed):
            found.setdefault(tiers, []).append(place)
        return found

    def is_closed(self, tiers: tuple[int, ...]) -> bool:
        """Whether what these tiers add together has a survival function without jumps."""
        return len(tiers) == 1 and _is_smooth(self.config.tiers[tiers[0]])

    @cached_property
    def centers(self) -> NDArray[np.float64]:
        """Logarithms of the factors that the series are believed to have."""
        least = [float(np.quantile(each.times, _LEAST)) for each in self.series]
        return np.log(np.array(least) / [each.idle for _, each in self.placed])

    @property
    def size(self) -> int:
        """How many coordinates: of the parameters, then of the series."""
        return len(self.parameters) + len(self.series)

    def factors(self, z: Array) -> Array:
        """What each series' idle time and transfers are multiplied by."""
        return jnp.exp(jnp.asarray(self.centers) + FACTOR_SPREAD * z[len(self.parameters) :])

    def data(self, times: Sequence[NDArray[np.float64]] | None = None) -> list[CallData]:
        """What the loss looks at, one for each structure; other times than the measured ones for simulations."""
        found = []
        for places in self.structures.values():
            own = [self.series[place].times if times is None else times[place] for place in places]
            count = [len(each) for each in own]
            found.append(
                CallData(
                    jnp.asarray(np.concatenate(own)),
                    jnp.asarray(np.repeat(np.arange(len(places)), count)),
                    jnp.asarray([resolution(each) for each in own]),
                    jnp.asarray([_own_score(each) for each in own]),
                )
            )
        return found

    def scores(self, z: Array, data: Sequence[CallData]) -> list[Array]:
        """Of every call what it adds to the loss: minus its log likelihood, or its score; traceable."""
        config = self.parameters.into(self.config, z[: len(self.parameters)])
        factors, found = self.factors(z), []
        for (tiers, places), own in zip(self.structures.items(), data, strict=True):
            idle, law = self._laws(config, tiers, places, factors[np.array(places)])
            if self.is_closed(tiers):
                found.append(-_log_likelihood(law, own, idle))
            else:
                points, weights = jax.vmap(functools.partial(self._points, law))(jnp.arange(len(places)))
                ends = np.cumsum([0, *(len(self.series[place].times) for place in places)])
                parts = [
                    _crps(points[k], weights[k], own.times[ends[k] : ends[k + 1]] - idle[k]) / own.scale[k]
                    for k in range(len(places))
                ]
                found.append(jnp.concatenate(parts))
        return found

    def loss(self, z: Array, data: Sequence[CallData]) -> Array:
        """Minus the log posterior of coordinates, up to a constant, or what stands for it; traceable."""
        return sum((jnp.sum(each) for each in self.scores(z, data)), jnp.sum(z**2) / 2)

    def quantiles(self, z: Array, levels: Array) -> Array:
        """Seconds, [series, levels]; traceable."""
        config = self.parameters.into(self.config, z[: len(self.parameters)])
        factors = self.factors(z)
        found: list[Any] = [None] * len(self.series)
        for tiers, places in self.structures.items():
            idle, law = self._laws(config, tiers, places, factors[np.array(places)])
            if self.is_closed(tiers):
                added = jax.vmap(lambda place, law=law: law(place)[0].quantile(jnp.log1p(-levels)))(
                    jnp.arange(len(places))
                )
            else:
                points, weights = jax.vmap(functools.partial(self._points, law))(jnp.arange(len(places)))
                added = jax.vmap(lambda x, w: _weighted_quantiles(x, w, levels))(points, weights)
            for place, row in zip(places, idle[:, None] + added, strict=True):
                found[place] = row
        return jnp.stack(found)

    def _laws(
        self, config: ClusterConfig, tiers: tuple[int, ...], places: list[int], factors: Array
    ) -> tuple[Array, Callable[[Array], list[AbstractDelay]]]:
        """Idle times of some series, and a function from the place among them to what each tier adds."""
        own = [self.placed[place][1] for place in places]
        idle = factors * np.array([each.idle for each in own])
        transfers = factors[:, None] * np.array([each.transfers for each in own]).reshape(len(own), -1)
        groups = jnp.asarray(np.array([each.groups for each in own], float).reshape(len(own), -1, 2))
        doublings = jnp.asarray(np.array([each.doublings for each in own]).reshape(len(own), -1))

        def law(place: Array) -> list[AbstractDelay]:
            return [
                _added(
                    config.tiers[tier],
                    transfers[place, number],
                    groups[place, number],
                    doublings[place, number],
                )
                for number, tier in enumerate(tiers)
            ]

        return idle, law

    def _points(self, law: Callable[[Array], list[AbstractDelay]], place: Array) -> tuple[Array, Array]:
        """What all tiers add together to the series at a place, as points with weights, in order."""
        laws = law(place)
        count = _POINTS if len(laws) == 1 else _FEW_POINTS
        points, weights = jnp.zeros(1), jnp.ones(1)
        for each in laws:
            own, shares = _pointed(each, count)
            points = (points[:, None] + own[None]).ravel()
            weights = (weights[:, None] * shares[None]).ravel()
        order = jnp.argsort(points)
        return points[order], weights[order]


def is_noise(path: str) -> bool:
    """Whether a path below a cluster leads to noise of links."""
    keys = path.split(".")
    return keys[0] == "tiers" and len(keys) > 2 and keys[2] in ("jitter", "congestion")


def resolution(times: NDArray[np.float64]) -> float:
    """What a clock tells apart: the least gap between times, but at least a thousandth of their spread."""
    gaps = np.diff(np.unique(times))
    spread = float(np.subtract(*np.quantile(times, (0.75, 0.25)))) or float(np.ptp(times))
    return max(float(gaps.min()) if len(gaps) else 0.0, _RESOLUTION * spread)


def _own_score(times: NDArray[np.float64]) -> float:
    """Half the mean difference of two of these times: the score of their own law."""
    ordered, count = np.sort(times), len(times)
    return max(float(np.sum((2 * np.arange(1, count + 1) - count - 1) * ordered)) / count**2, 1e-300)


def _place(config: ClusterConfig, series: CallSeries) -> tuple[tuple[int, ...], _Placed]:
    cluster = build_cluster(config)
    found = [
        stages
        for name in series.algorithms
        for stages in candidates(
            cluster, series.collective, series.ranks, name, series.protocol
        ).flat.values()
    ]
    priced = [phases_of(cluster, stages, series.size) for stages in found]
    times = [float(sum(phase.cost.time for phase in phases)) for phases in priced]
    phases = priced[int(np.argmin(times))]
    random = [phase for phase in phases if _is_random(config.tiers[phase.tier_index])]
    if not random:
        names = ", ".join(dict.fromkeys(phase.tier_name for phase in phases))
        raise CalibrationError(
            f"{series.label}: expected `jitter` or `congestion` on the links it is booked on ({names}); the cluster has none there: "
            f"`--set tiers.{phases[-1].tier_name}.jitter='{{family: lognormal, median: 1 us, sigma: 0.5}}'` gives it some"
        )
    tiers = [config.tiers[phase.tier_index] for phase in random]
    placed = _Placed(
        min(times),
        tuple(float(phase.bandwidth_time + phase.reduction_time) for phase in random),
        tuple(_groups(config, tier, series) for tier in tiers),
        tuple(_doublings(config, tier, series) for tier in tiers),
    )
    return tuple(phase.tier_index for phase in random), placed


def _is_random(tier: TierConfig) -> bool:
    return tier.jitter is not None or tier.congestion is not None


def _is_smooth(tier: TierConfig) -> bool:
    """Whether every state of a tier has randomness of its own."""
    if tier.jitter is not None:
        return True
    states = () if tier.congestion is None else tier.congestion.states
    return bool(states) and all(isinstance(state.delay, StrictModel) for state in states)


def _groups(config: ClusterConfig, tier: TierConfig, series: CallSeries) -> tuple[int, int]:
    """How many ranks share a link's state, and how many such groups there are."""
    if tier.congestion is None:
        return 1, series.count
    where = f"tiers.{tier.name}.congestion"
    spread = tier.congestion.spread
    if tier.congestion.transition is not None or (spread is not None and spread.paths > 1):
        raise CalibrationError(
            f"{where}: expected states with a `probability` each, of one path; got a `transition` matrix or a `spread`"
        )
    scope = tier.congestion.shared_by
    if not isinstance(series.ranks, int) and scope not in (EVERY_RANK_ALONE, ALL_RANKS):
        raise CalibrationError(
            f"{series.label}: expected full nodes, since states are shared by `{scope}`; got a part of the ranks of each"
        )
    group = sharing(config, scope, series.count)
    return group, -(-series.count // group)


def _doublings(config: ClusterConfig, tier: TierConfig, series: CallSeries) -> float:
    growth = None if tier.congestion is None else tier.congestion.growth
    if growth is None:
        return 0.0
    ranks = series.count if growth.of == "job" else config.size
    return float(np.log2(ranks / growth.at_ranks)) * growth.per_doubling


def _added(tier: TierConfig, transfer: Array, groups: Array, doublings: Array) -> AbstractDelay:
    """What a tier's links add to a transfer of so many seconds."""
    jitter = None if tier.jitter is None else build_delay(tier.jitter)
    group, count = groups
    states = None if tier.congestion is None else tier.congestion.states
    if states is None:
        law = congestion_law(transfer, group=group, groups=count, jitter=jitter)
        assert law is not None
        return law
    slowdowns = [
        state.slowdown if state.load is None else 1 / (1 - state.load * tier.oversubscription)
        for state in states
    ]
    laws = [state.delay if isinstance(state.delay, StrictModel) else None for state in states]
    fixed = [state.delay if own is None else 0.0 for state, own in zip(states, laws, strict=True)]
    random = tuple(None if own is None else build_delay(own) for own in laws)
    what = LinkStates(
        jnp.stack([jnp.asarray(each, float) for each in slowdowns]),
        jnp.stack([jnp.asarray(each, float) for each in fixed]),
        random if any(each is not None for each in random) else (),
    )
    # More ranks raise the odds of not being in the first state.
    odds = jnp.where(np.arange(len(states)) > 0, jnp.exp(doublings), 1.0)
    shares = odds * jnp.stack([jnp.asarray(state.probability, float) for state in states])
    shares = shares / jnp.sum(shares)
    law = congestion_law(
        transfer, group=group, groups=count, probabilities=shares, states=what, jitter=jitter
    )
    assert law is not None
    return law


def _log_likelihood(
    laws: Callable[[Array], list[AbstractDelay]], data: CallData, idle: Array
) -> Float[Array, " calls"]:
    """Log P of what the clock showed, call by call."""

    def one(time: Array, place: Array) -> Array:
        (law,) = laws(place)
        half = data.resolution[place] / 2
        late = Shifted(law, idle[place])
        begun, done = late.log_survival(jnp.stack([time - half, time + half]))
        gap = jnp.minimum(done - begun, 0.0)
        possible = jnp.isfinite(begun) & (gap < 0)
        found = begun + jnp.log(-jnp.expm1(jnp.where(possible, gap, -1.0)))
        far = jnp.abs(jnp.log(time / idle[place])) * -100.0 + _NEVER
        return jnp.where(possible, jnp.logaddexp(jnp.where(possible, found, 0.0), far), far)

    return jax.vmap(one)(data.times, data.series)


def _pointed(law: AbstractDelay, count: int) -> tuple[Array, Array]:
    """A law as points with weights: its fixed values, or quantiles of evenly spaced levels."""
    if isinstance(law, Slowest) and isinstance(law.delay, Discrete):
        states = law.delay
        order = jnp.argsort(states.values)
        below = jnp.minimum(jnp.cumsum(states.probabilities[order]), 1.0) ** law.ranks
        return states.values[order], jnp.diff(below, prepend=0.0)
    levels = (np.arange(count) + 0.5) / count
    return law.quantile(jnp.log1p(-jnp.asarray(levels))), jnp.full(count, 1 / count)


def _crps(points: Array, weights: Array, measured: Array) -> Array:
    """E|X − y| − E|X − X′|/2 of a law of points in order, for each y."""
    upto, sums = jnp.cumsum(weights), jnp.cumsum(weights * points)
    spread = jnp.sum(weights * points * (2 * upto - weights - 1))
    place = jnp.searchsorted(points, measured, side="right")
    below, sum_below = (jnp.concatenate([jnp.zeros(1), each])[place] for each in (upto, sums))
    return measured * (2 * below - 1) + sums[-1] - 2 * sum_below - spread


def _weighted_quantiles(points: Array, weights: Array, levels: Array) -> Array:
    place = jnp.searchsorted(jnp.cumsum(weights), levels * (1 - 1e-12))
    return points[jnp.minimum(place, points.size - 1)]
