"""What disturbs a stage of a model that serves, pass by pass.

All ranks of a stage wait for each other at each message, so a pass takes

    work(F)·M·U + messages + tokens(F) + lateness + (c − 1)·bytes + d·(number of messages),

with M what the slowest rank takes and its slowest stretches do (`mc.training.slowness`; one draw by the law of the
maximum, however many ranks there are), U what the slowest unit of a scope takes, F the load of the busiest rank
(`mc.training.routing`), lateness the sum over messages of the latest rank's jitter (`mc.training.lateness`), and c and d
the worst state among the links of each tier. With `direct` every rank is drawn, and each stretch and message.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray
from numpy.typing import NDArray

from mc.delays import AbstractDelay, Slowest, with_inverse
from mc.fabric import SharedLinks
from mc.inference.passes import Pass
from mc.random import draw_levels, stream
from mc.training import LoadLaw, RankNoise, build_lateness, number_of_profiles, tabulate_slowness
from mc.training.work import Sampling

Floats = NDArray[np.float64]
# Points at which a pass is worked out as a function of the load.
_LOADS = 33
# Ranks x stretches x passes that are drawn at once.
_AT_ONCE = 1 << 24


@dataclass(frozen=True)
class SharedNoise:
    """What all ranks of a unit have in common in a pass.

    Attributes:
        units: that a stage lies in.
        spread: factor; None for 1.
        seconds: added; none for nothing, each with the probability that it is.
    """

    units: int
    spread: AbstractDelay | None
    seconds: tuple[tuple[AbstractDelay, float], ...]


@dataclass(frozen=True)
class DisturbedLinks:
    """A tier whose links disturb messages.

    Attributes:
        index: of the tier.
        jitter: of a rank's message; None for none.
        links: with their states; None for links without.
    """

    index: int
    jitter: AbstractDelay | None
    links: SharedLinks | None


@dataclass(frozen=True)
class Disturbances:
    """All that disturbs the passes of a replica.

    Attributes:
        rank: each rank's own noise in a pass.
        factor: persistent factors, [realisations, stages, ranks].
        shared: by units.
        load: the law of each stage's load; empty where all ranks have the same.
        tiers: whose links disturb messages.
    """

    rank: RankNoise
    factor: Floats
    shared: tuple[SharedNoise, ...]
    load: tuple[LoadLaw | None, ...]
    tiers: tuple[DisturbedLinks, ...]

    @property
    def remembers(self) -> bool:
        """Whether passes of one realisation have something in common."""
        return (
            bool(np.ptp(self.factor) > 0)
            or any(law is not None for law in self.load)
            or any(each.links is not None and each.links.chain.remembers for each in self.tiers)
        )


@dataclass(frozen=True)
class StageTimes:
    """Seconds of passes, [stages, realisations, passes].

    Attributes:
        ranks: with what disturbs ranks.
        loads: and the load of the busiest.
        links: and links.
    """

    ranks: Floats
    loads: Floats
    links: Floats


def draw_stages(
    passes: Sequence[Pass], found: Disturbances, key: PRNGKeyArray, count: int, method: Sampling
) -> StageTimes:
    """So many passes of each stage in each realisation.

    Args:
        passes: of the stages.
        found: what disturbs them.
        key: of all draws.
        count: passes.
        method: `exact`, or `direct` for every rank.
    """
    realisations = found.factor.shape[0]
    shape = (realisations, count)
    states = [_states(tier, key, shape) for tier in found.tiers]
    drawn: list[tuple[Floats, Floats, Floats]] = []
    for index, stage in enumerate(passes):
        own = stream(key, f"stage {index}")
        slow, added = _ranks(stage, found, index, own, shape, method)
        load = _load(found.load[index] if found.load else None, own, shape)
        work, rest = _by_load(stage, load)
        alone = stage.at()
        plain = alone.work.seconds * slow + added + (alone.seconds - alone.work.seconds)
        with_loads = work * slow + added + rest
        late = np.zeros(shape)
        for tier, state in zip(found.tiers, states, strict=True):
            late += _late(stage, load, tier, state, own, found.factor.shape[2], method)
        drawn.append((plain, with_loads, with_loads + late))
    return StageTimes(*(np.stack(each) for each in zip(*drawn, strict=True)))


def _levels(key: PRNGKeyArray, name: str, shape: tuple[int, ...]) -> Array:
    return draw_levels(stream(key, name), shape)


def _words(key: PRNGKeyArray, name: str, shape: tuple[int, ...]) -> Array:
    return jax.random.bits(stream(key, name), shape, jnp.uint32)


def _ranks(
    stage: Pass, found: Disturbances, index: int, key: PRNGKeyArray, shape: tuple[int, int], method: Sampling
) -> tuple[Floats, Floats]:
    """A factor on operations, and seconds beside."""
    seconds, stretches = stage.at().work.seconds, stage.waits
    slow, added = np.ones(shape), np.zeros(shape)
    factor = found.factor[:, index]
    if found.rank.is_random or np.any(factor != 1.0):
        if method == "direct":
            slow = _every_rank(found.rank, seconds, stretches, factor, key, shape[1])
        else:
            number, profiles = number_of_profiles(factor)
            table = tabulate_slowness(found.rank, [seconds], profiles, stretches=[stretches])
            column = jnp.broadcast_to(jnp.asarray(number, jnp.int32)[:, None], shape)
            drawn = table.look_up(jnp.zeros((1, 1), jnp.int32), column, _words(key, "ranks", shape))
            slow = np.asarray(drawn, np.float64)
    for place, each in enumerate(found.shared):
        if each.spread is not None:
            slow = slow * _slowest(each.spread, each.units, key, f"unit {place}", shape)
        for number, (law, probability) in enumerate(each.seconds):
            name = f"unit {place} seconds {number}"
            if probability >= 1:
                added = added + _slowest(law, each.units, key, name, shape)
                continue
            # How many units pause, and the longest of their pauses.
            uniform = np.exp(np.asarray(_levels(key, f"{name} chance", (*shape, each.units)), np.float64))
            pauses = (uniform < probability).sum(axis=-1)
            longest = Slowest(with_inverse(law), jnp.asarray(pauses, jnp.result_type(float)))
            added = added + np.asarray(longest.quantile(_levels(key, name, shape)), np.float64)
    return slow, added


def _slowest(law: AbstractDelay, units: int, key: PRNGKeyArray, name: str, shape: tuple[int, int]) -> Floats:
    drawn = Slowest(with_inverse(law), float(units)).quantile(_levels(key, name, shape))
    return np.asarray(drawn, np.float64)


def _every_rank(
    noise: RankNoise, seconds: float, stretches: int, factor: Floats, key: PRNGKeyArray, count: int
) -> Floats:
    prepared = noise.prepared()
    size = max(1, min(count, _AT_ONCE // factor.shape[1]))
    rows = []
    for realisation, own in enumerate(factor):
        pieces = []
        for piece in range(-(-count // size)):
            which = jax.random.fold_in(stream(key, f"every rank {realisation}"), piece)
            found = _direct(prepared, jnp.asarray(own), jnp.asarray(seconds), which, stretches, size)
            pieces.append(np.asarray(found, np.float64))
        rows.append(np.concatenate(pieces)[:count])
    return np.stack(rows)


@eqx.filter_jit
def _direct(
    noise: RankNoise, factor: Array, seconds: Array, key: PRNGKeyArray, stretches: int, size: int
) -> Array:
    shape = (size, factor.size)
    took = jnp.broadcast_to(factor, shape)
    if noise.spread is not None:
        took = took * noise.spread.quantile(_levels(key, "spread", shape))
    if noise.jitter is not None:
        took = took + noise.jitter.quantile(_levels(key, "jitter", shape)) / seconds
    if noise.pause is not None:
        pauses = _levels(key, "chance", shape) <= jnp.log(noise.pause_probability)
        took = took + jnp.where(pauses, noise.pause.quantile(_levels(key, "pause", shape)), 0.0) / seconds
    slowest, kernels = jnp.max(took, axis=1), noise.kernels
    if kernels is None:
        return slowest
    largest = jnp.max(factor)

    def stretch(index: Array, total: Array) -> Array:
        own = jax.random.fold_in(stream(key, "stretches"), index)
        one = jnp.broadcast_to(factor / largest, shape)
        if kernels.spread is not None:
            one = one * kernels.spread.quantile(_levels(own, "spread", shape))
        if kernels.jitter is not None:
            jitter = kernels.jitter.quantile(_levels(own, "jitter", shape))
            one = one + jitter * stretches / (seconds * largest)
        return total + jnp.max(one, axis=1)

    return slowest * jax.lax.fori_loop(0, stretches, stretch, jnp.zeros(size)) / stretches


def _load(law: LoadLaw | None, key: PRNGKeyArray, shape: tuple[int, int]) -> Floats:
    """The load of the busiest rank, over the mean."""
    if law is None:
        return np.ones(shape)
    kept = with_inverse(law.persistent).quantile(_levels(key, "popularity", (shape[0], 1)))
    now = with_inverse(law.transient).quantile(_levels(key, "load", shape))
    return np.maximum(np.asarray(kept, np.float64) * np.asarray(now, np.float64), 1.0)


def _by_load(stage: Pass, load: Floats) -> tuple[Floats, Floats]:
    """Seconds of operations and of the rest under loads: linear between points that are worked out."""
    most = float(load.max())
    points = np.linspace(1.0, max(most, 1.0 + 1e-9), _LOADS if most > 1 else 2)
    found = [stage.at(float(point)) for point in points]
    work = np.array([each.work.seconds for each in found])
    rest = np.array([each.seconds for each in found]) - work
    return np.interp(load, points, work), np.interp(load, points, rest)


@dataclass(frozen=True)
class _States:
    """The worst state that the links of a tier are in, pass by pass."""

    slowdown: Floats
    delay: Floats
    place: NDArray[np.int64]
    queueing: tuple[AbstractDelay | None, ...]


def _states(tier: DisturbedLinks, key: PRNGKeyArray, shape: tuple[int, int]) -> _States:
    links = tier.links
    if links is None:
        return _States(np.ones(shape), np.zeros(shape), np.zeros(shape, np.int64), (None,))
    states = links.states
    queueing = states.queueing or (None,) * states.states
    slowdowns, delays = (np.asarray(each, np.float64) for each in (states.slowdowns, states.delays))
    waits = delays + [0.0 if law is None else float(law.mean()) for law in queueing]
    order = np.argsort(waits, kind="stable")
    present = links.chain.counts(stream(key, f"links {tier.index}"), links.groups, *shape) > 0
    place = (present[..., order] * (1 + np.arange(order.size))).max(axis=-1) - 1
    return _States(
        np.where(present, slowdowns, 1.0).max(axis=-1),
        np.where(present, delays, 0.0).max(axis=-1),
        place,
        tuple(queueing[state] for state in order),
    )


def _late(
    stage: Pass,
    load: Floats,
    tier: DisturbedLinks,
    states: _States,
    key: PRNGKeyArray,
    ranks: int,
    method: Sampling,
) -> Floats:
    """Seconds that a tier's links add to the messages of a pass."""
    at = stage.at()
    count, seconds = at.sent.crossing.get(tier.index, (0.0, 0.0))
    tokens, moved = at.tokens.crossing.get(tier.index, (0.0, 0.0))
    messages = round(count + tokens)
    if not messages:
        return np.zeros(load.shape)
    late = (states.slowdown - 1) * (seconds + at.shown * moved * load) + messages * states.delay
    lateness = build_lateness(tier.jitter, states.queueing, ranks, [messages])
    if lateness is None:
        return late
    name, shape = f"late {tier.index}", load.shape
    counts, state = jnp.full(shape, messages), jnp.asarray(states.place, jnp.int32)
    if method == "exact":
        drawn = lateness.draw(counts, state, _words(key, name, shape))
    else:
        own = stream(key, name)
        drawn = lateness.draw_each(
            counts, state, lambda source: draw_levels(jax.random.fold_in(own, source), shape)
        )
    return late + np.asarray(drawn, np.float64)
