"""Operations and messages of a step as tables, which noise is drawn on.

Tables are [mixes, kinds, stages, chunks]: mixes of chips in a group, kinds of passes, parts of the model.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mc.experiment.quiet_step import QuietStep
from mc.experiment.training_links import DisturbedTier
from mc.parallel import messages
from mc.pipeline import by_kind
from mc.training import LoadLaw, Sent, Times, Work, crossings, table_of
from mc.training.crossings import Crossing
from mc.training.pass_times import PASSES, ROUTED, PassTime

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Classes:
    """Operations that noise treats alike.

    Attributes:
        seconds: that they compute.
        stretches: in which.
        ratios: how long each kind of chip does, over the slowest in the group, [classes, kinds of chips].
        group: class of each operation, [mixes, kinds, stages, chunks].
    """

    seconds: Floats
    stretches: NDArray[np.int64]
    ratios: Floats
    group: NDArray[np.int64]


def _table(times: Times, value) -> Floats:
    return np.asarray(table_of(times, value), np.float64)


def classes_of(quiet: QuietStep, known: NDArray[np.int64] | None) -> Classes:
    """Operations of equal times are alike; or those that are `known` to be."""
    less = quiet.mean_attention - 1.0

    def computing(times: Times) -> Floats:
        return _table(times, lambda one: one.compute + less * one.attention)

    whole = np.stack([computing(each) for each in quiet.times.by_mix])
    parts = np.stack([computing(each) for each in quiet.times.by_kind], axis=-1)
    waits = np.stack([_table(each, lambda one: one.exchanges) for each in quiet.times.by_mix])
    stretches = np.maximum(np.round(waits), 1.0)
    ratios = np.ones((*whole.shape, parts.shape[-1]))
    for mix, kinds in enumerate(quiet.chips.mixes):
        chosen = list(kinds)
        own = np.maximum(whole[mix], 1e-12)[..., None]
        ratios[mix][..., chosen] = np.where(own > 1e-12, parts[..., chosen] / own, 1.0)
    if known is None:
        told = np.concatenate(
            [np.round(whole, 9)[..., None], stretches[..., None], np.round(ratios, 6)], axis=-1
        )
        _, first, group = np.unique(
            told.reshape(-1, told.shape[-1]), axis=0, return_index=True, return_inverse=True
        )
    else:
        _, first, group = np.unique(known, return_index=True, return_inverse=True)
    return Classes(
        seconds=whole.ravel()[first],
        stretches=stretches.ravel()[first].astype(np.int64),
        ratios=ratios.reshape(-1, ratios.shape[-1])[first],
        group=group.reshape(whole.shape),
    )


def work_of(
    quiet: QuietStep,
    classes: Classes,
    tiers: tuple[DisturbedTier, ...],
    layers: NDArray[np.int64],
    loads: tuple[LoadLaw, ...],
) -> Work:
    """Seconds of operations."""
    mixes, less = quiet.times.by_mix, quiet.mean_attention - 1.0

    def table(value) -> Floats:
        return np.stack([_table(each, value) for each in mixes])

    # Tokens to experts take so many seconds whatever the busiest rank gets, and so many more with its load; by the mean
    # loads, which are the same for all classes.
    ranks, nodes = (loads[0].mean, loads[0].nodes) if loads else (1.0, 1.0)

    def growing(one: PassTime) -> float:
        return one.growing(ranks, nodes)

    def steady(one: PassTime) -> float:
        return one.tokens(ranks, nodes) - ranks * growing(one)

    def waiting(one: PassTime) -> float:
        return sum(one.waiting.values()) - one.tokens() + steady(one)

    # What crosses tiers is told by part and pass, so tables are made of the passes with where they are.
    across = crossings(quiet.plan, quiet.shape, quiet.prices)

    def of_tier(value) -> Floats:
        def one(times: Times) -> Floats:
            columns = [
                [
                    [value(getattr(part, name), found[name]) for part, found in zip(*stage, strict=True)]
                    for stage in zip(times.parts, across, strict=True)
                ]
                for name in PASSES
            ]
            return np.asarray(by_kind(len(times.parts), len(times.parts[0]), *columns), np.float64)

        return np.stack([one(each) for each in mixes])

    def bytes_on(tier: int, *, grows: bool) -> Floats:
        def seconds(one: PassTime, found: Crossing) -> float:
            tokens = found.bytes_on(one, tier, lambda name: name == ROUTED) / max(one.tokens(), 1e-300)
            if grows:
                return tokens * growing(one)
            return found.bytes_on(one, tier, lambda name: name != ROUTED) + tokens * steady(one)

        return of_tier(seconds)

    shape = classes.group.shape
    crossing = [[bytes_on(each.index, grows=grows) for grows in (False, True)] for each in tiers]
    waited = [of_tier(lambda _, found, tier=each.index: found.waited.get(tier, 0.0)) for each in tiers]
    mix = quiet.chips.mix
    return Work(
        plain=jnp.asarray(table(lambda one: one.compute - one.routed + less * one.attention)),
        routed=jnp.asarray(table(lambda one: one.routed)),
        attention=jnp.asarray(table(lambda one: one.attention)),
        waiting=jnp.asarray(table(waiting)),
        routing=jnp.asarray(table(growing)),
        host=jnp.asarray(table(lambda one: one.host)),
        crossing=jnp.asarray(np.array(crossing).reshape(len(tiers), 2, *shape)),
        messages=jnp.asarray(np.round(np.array(waited).reshape(len(tiers), *shape)), jnp.int32),
        group=jnp.asarray(classes.group, jnp.int32),
        layers=jnp.asarray(layers, jnp.int32),
        mix=jnp.asarray(mix, jnp.int32) if len(mixes) > 1 else None,
    )


def sent_of(quiet: QuietStep, tiers: tuple[DisturbedTier, ...]) -> Sent | None:
    """Messages between stages."""
    plan = quiet.plan
    if plan.pp == 1:
        return None
    place_of = {tier.index: place for place, tier in enumerate(tiers)}
    crossing, counts = np.zeros((len(tiers), 2)), [0] * len(tiers)
    for message in messages(quiet.shape, plan):
        place = place_of.get(quiet.prices.tier(message.group))
        if message.per != "chunk" or place is None:
            continue
        way = ("forward", "backward").index(message.where)
        crossing[place, way] += float(
            quiet.prices.price(message.collective, message.group, message.bytes).bandwidth
        )
        # As many each way.
        counts[place] += way == 0
    seconds = [float(price.seconds) for price in quiet.breakdown.times.transfer]
    return Sent(jnp.asarray(seconds), jnp.asarray(crossing), tuple(counts), not plan.overlap.pipeline)


def message_counts(work: Work, sent: Sent | None, place: int) -> list[int]:
    """Numbers of messages that follow one another on a disturbed tier."""
    counts = np.unique(np.asarray(work.messages[place])).tolist()
    return counts if sent is None else [*counts, sent.messages[place]]
