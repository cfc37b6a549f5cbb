"""What is random about a cluster's links: jitter of messages and states that ranks share, tier by tier."""

import bisect

import equinox as eqx
import numpy as np
from numpy.typing import NDArray

from mc.config import ClusterConfig, layout
from mc.config.cluster import ALL_RANKS, EVERY_RANK_ALONE
from mc.delays import AbstractDelay, build_delay, with_inverse
from mc.fabric.build_links import build_incast, build_links
from mc.fabric.incast import Incast
from mc.fabric.link_states import SharedLinks


class LinkNoise(eqx.Module):
    """Randomness of links.

    Attributes:
        jitter: per tier, added to each message, seconds; None for none.
        shared: per tier, the states that its links may be in; None for none.
        incast: per tier, what many senders to one receiver cost; None, or no entry at all, for nothing.
    """

    jitter: tuple[AbstractDelay | None, ...]
    shared: tuple[SharedLinks | None, ...]
    incast: tuple[Incast | None, ...] = ()

    @property
    def is_random(self) -> bool:
        """Whether anything is."""
        return any(each is not None for each in (*self.jitter, *self.shared))

    def prepared(self) -> "LinkNoise":
        """The same with the tables that draws read."""
        laws = tuple(None if law is None else with_inverse(law) for law in self.jitter)
        return LinkNoise(laws, self.shared, self.incast)


def build_link_noise(config: ClusterConfig, ranks: int) -> LinkNoise:
    """What a cluster file says about its links, for a job of `ranks` ranks."""
    return LinkNoise(
        tuple(None if tier.jitter is None else build_delay(tier.jitter) for tier in config.tiers),
        tuple(shared_links(config, index, ranks) for index in range(len(config.tiers))),
        tuple(None if tier.incast is None else build_incast(tier.incast) for tier in config.tiers),
    )


def shared_links(config: ClusterConfig, tier_index: int, ranks: int) -> SharedLinks | None:
    """The states that a tier's links may be in, for a job of `ranks` ranks; None where it has none."""
    tier = config.tiers[tier_index]
    congestion = tier.congestion
    if congestion is None:
        return None
    group = sharing(config, congestion.shared_by, ranks)
    of_job = congestion.growth is None or congestion.growth.of == "job"
    return build_links(
        congestion,
        group=group,
        groups=-(-ranks // group),
        ranks=ranks if of_job else config.size,
        oversubscription=tier.oversubscription,
    )


def sharing(config: ClusterConfig, scope: str, ranks: int) -> int:
    """How many ranks of the job a unit of `scope` holds: 1 for `rank`, all for `all`, those of a tier's unit else."""
    if scope == EVERY_RANK_ALONE:
        return 1
    if scope == ALL_RANKS:
        return ranks
    names = [tier.name for tier in config.tiers]
    starts = layout.first_ranks(config.fan_outs, names.index(scope))
    if isinstance(starts, range):
        return min(starts.step, ranks)
    # Units that differ: as many as there are, of their mean size.
    return -(-ranks // bisect.bisect_left(starts, ranks))


def units_of(config: ClusterConfig, scope: str, ranks: int) -> NDArray[np.int64]:
    """Which unit of `scope` each of the first `ranks` ranks is in, `scope` as for `sharing`."""
    rank = np.arange(ranks)
    if scope == EVERY_RANK_ALONE:
        return rank
    if scope == ALL_RANKS:
        return np.zeros_like(rank)
    starts = layout.first_ranks(config.fan_outs, [tier.name for tier in config.tiers].index(scope))
    return np.searchsorted(np.asarray(starts), rank, side="right") - 1
