r"""What a plan takes at least, by a formula: without laying out its schedule.

Every operation of a stage waits for the forward passes of the parts before it in the model, and is waited for by their
backward passes. With F, I and W the seconds of a micro-batch's forward pass and of its gradients of inputs and of weights, m
micro-batches, and the stage's parts q,

    makespan >= max over stages of  min_q (sum of F before q) + m·sum_q (F + I + W) + min_q (sum of I + W before q),

where gradients of weights may be put off (ZB-H1, DualPipe), the longer of that with I alone at the end and m·sum_q (F + I) in
the middle, and that without the end. For equal stages this is the textbook's: (m + p − 1)(F + B) of GPipe and 1F1B and
m(F + B) + (p − 1)(F + B)/v of interleaved chunks (D. Narayanan et al., SC21, 2.2), so little is lost.

A pass takes no less than its operations and the messages that it waits for, and no less than the messages that move behind
it. To the makespan comes what all wait for once a step: messages that nothing hides, the optimizer, fixed costs. All of
that is monotone in the prices of messages, so with messages that cost nothing it bounds every order of the dimensions at
once; with some of the prices, every order that agrees in these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from mc.config.axes import Axes
from mc.fabric import Cluster, Tier, span
from mc.fabric.protocol import Correction
from mc.parallel import Content, Group, Groups, Plan, contents
from mc.parallel.plan import DUALPIPE
from mc.training.arithmetic import Number
from mc.training.pass_times import Piece
from mc.training.prices import FREE, Price
from mc.transformer import DENSE, MOE, Transformer

Floats = NDArray[np.float64]
# Of which parts of the model consist, in this order.
PIECES = (DENSE, MOE, "embedding", "head")
# Schedules that put gradients of weights off.
_PUT_OFF = ("zb-h1", DUALPIPE)


class FreePrices:
    """Messages that cost nothing."""

    def price(self, collective: str, group: Group, size: Number) -> Price:
        """Nothing."""
        return FREE

    def tier(self, group: Group) -> int:
        """Of no group."""
        return -1


class VolumePrices:
    """What messages cost at least, by the bytes that have to go in or out of each unit of each tier that a group spans.

    If n ranks have q of them in a unit, (n − q)/n of a buffer gets in or out of it, whatever the algorithm, over the q ranks'
    links to the outside; in an all-to-all q such buffers. Of messages between neighbours some cross the outermost tier.
    """

    def __init__(self, cluster: Cluster):
        """Args: cluster, whose links they are."""
        self._cluster = cluster
        self._fastest = [_fastest(tier) for tier in cluster.tiers]
        self._slowness: dict[Axes, Slowness] = {}

    def price(self, collective: str, group: Group, size: Number) -> Price:
        """What a collective of a group costs at least."""
        if not group.axes:
            return FREE
        return Price(0.0, size * getattr(self.slowness(group), _BOUNDED_BY.get(collective, "shared")))

    def tier(self, group: Group) -> int:
        """Of no group."""
        return -1

    def among(self, orders: Sequence[Groups]) -> "ManyVolumes":
        """The same for groups that lie in several orders: arrays."""
        found = {}
        for lying in zip(*orders, strict=True):
            each = [self.slowness(group) for group in lying]
            shared, own, outermost = (np.array(column) for column in zip(*each, strict=True))
            found[lying[0].name] = Slowness(shared, own, outermost)
        return ManyVolumes(found)

    def slowness(self, group: Group) -> "Slowness":
        """Seconds per byte."""
        found = self._slowness.get(group.axes)
        if found is None:
            found = self._slowness[group.axes] = self._slow(group)
        return found

    def _slow(self, group: Group) -> "Slowness":
        size, extents = group.size, span(self._cluster, group.axes) if group.axes else ()
        shared = each = outermost = 0.0
        for place, extent in enumerate(extents):
            outside = sum(self._fastest[other.index] for other in extents[place:])
            inside = extent.most_ranks
            part = (size - inside) / size
            shared = max(shared, part / inside / outside)
            each = max(each, part / outside)
            outermost = 1.0 / outside
        return Slowness(shared, each, outermost)


class ManyVolumes(NamedTuple):
    """Such prices of groups by name, for several orders at once; of others nothing.

    Attributes:
        slowness: by name of the group.
    """

    slowness: dict[str, "Slowness"]

    def price(self, collective: str, group: Group, size: Number) -> Price:
        """What a collective of a group costs at least."""
        found = self.slowness.get(group.name)
        if not group.axes or found is None:
            return FREE
        return Price(0.0, size * getattr(found, _BOUNDED_BY.get(collective, "shared")))

    def tier(self, group: Group) -> int:
        """Of no group."""
        return -1


class Slowness(NamedTuple):
    """Seconds per byte of a buffer, at least.

    Attributes:
        shared: where ranks have or get the same: all-gather, reduce-scatter, all-reduce.
        each: where each has its own: all-to-all.
        outermost: between neighbours.
    """

    shared: Number
    each: Number
    outermost: Number


_BOUNDED_BY = {"all-to-all": "each", "send-recv": "outermost"}


def _fastest(tier: Tier) -> float:
    """Bytes/s of the fastest link of a tier, under the protocol that makes the most of it."""
    factors = [float(each.bandwidth_factor) for each in tier.variations]
    corrected = [
        each for each in jax.tree.leaves(tier.protocols, is_leaf=_is_correction) if _is_correction(each)
    ]
    better = [float(np.max(each.factors)) for each in corrected]
    return float(tier.link.bandwidth) * max([1.0, *factors]) * max([1.0, *better])


def _is_correction(leaf: Any) -> bool:
    return isinstance(leaf, Correction)


@dataclass(frozen=True)
class Skeleton:
    """How many of which pieces each stage has: [stages that differ, pieces].

    Attributes:
        before: that a micro-batch passes before it gets to the stage.
        held: by the stage.
        put_off: whether gradients of weights may be.
    """

    before: Floats
    held: Floats
    put_off: bool


def skeleton(shape: Transformer, plan: Plan) -> Skeleton:
    """Of a plan's pipeline."""
    return _skeleton(contents(shape, plan), plan.schedule)


@lru_cache(maxsize=4096)
def _skeleton(found: tuple[tuple[Content, ...], ...], schedule: str) -> Skeleton:
    rows = np.array(
        [[[each.dense, each.moe, each.is_first, each.is_last] for each in stage] for stage in found],
        np.float64,
    )
    stages, chunks, _ = rows.shape
    stage = np.arange(stages)
    if schedule == DUALPIPE:
        place = np.stack([stage, stages - 1 - stage], axis=1)
        in_order = rows[:, 0]
    else:
        place = stage[:, None] + stages * np.arange(chunks)
        in_order = rows.transpose(1, 0, 2).reshape(-1, len(PIECES))
    summed = np.concatenate([np.zeros((1, len(PIECES))), np.cumsum(in_order, axis=0)])
    before = summed[place.min(axis=1)]
    both = np.unique(np.concatenate([before, rows.sum(axis=1)], axis=1), axis=0)
    return Skeleton(both[:, : len(PIECES)], both[:, len(PIECES) :], schedule in _PUT_OFF)


@dataclass(frozen=True)
class Work:
    """Seconds of pieces, in the order of `PIECES`: [passes, pieces], with an axis behind for several orders.

    Attributes:
        busy: of operations, and of messages that they wait for.
        behind: of messages that move behind layers.
    """

    busy: Floats
    behind: Floats


def work_of(pieces: Mapping[str, Piece]) -> Work:
    """The pieces as arrays."""
    nothing = Piece((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    rows = [pieces.get(name, nothing) for name in PIECES]
    return Work(_stacked([each.busy for each in rows]), _stacked([each.behind for each in rows]))


def _stacked(rows: Sequence[tuple[Number, Number, Number]]) -> Floats:
    numbers = [row[place] for place in range(3) for row in rows]
    each = np.stack(np.broadcast_arrays(*numbers)).astype(np.float64)
    return each.reshape(3, len(rows), *each.shape[1:])


def makespan_bound(bones: Skeleton, work: Work, passes: int) -> Floats:
    """Seconds that a pipeline takes at least, with so many micro-batches through each part; for each order."""
    found = _bound(bones, work.busy, passes)
    if work.behind.any():
        found = np.maximum(found, _bound(bones, work.behind, passes))
    return found


def _bound(bones: Skeleton, work: Floats, passes: int) -> Floats:
    forward, inputs, weights = work
    head = bones.before @ forward
    both = inputs + weights
    whole = head + passes * (bones.held @ (forward + both))
    if bones.put_off:
        early = head + passes * (bones.held @ (forward + inputs)) + bones.before @ inputs
        return np.maximum(whole, early).max(axis=0)
    return (whole + bones.before @ both).max(axis=0)
