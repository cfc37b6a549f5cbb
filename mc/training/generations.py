"""Chips of several kinds in one job, and what a plan makes of them.

Ranks lie where the plan puts them, on whatever chip is there. Groups in lockstep that have the same kinds of chips are
alike: their set of kinds is a *mix*. A pass of a group computes as long as on its slowest kind, and waits for each
dimension as long as the one that waits longest does; the host of the slowest counts where chips are done before it. A
pipeline runs through groups of different mixes, replicas differ likewise, and where they meet all wait for the slowest.
A chip that computes f times longer than it says has f times lower efficiencies, and kernels that take f times longer to
start; its peaks, and its host, stay.

What is taken from the cluster as a whole: a message costs as much as in the group where it takes longest, and the
optimizer as long as on the slowest kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mc.config import ClusterConfig
from mc.parallel import Plan
from mc.training.arithmetic import largest, positive
from mc.training.efficiency import Chip, build_chip
from mc.training.evaluate import Breakdown, evaluate
from mc.training.lockstep import Lockstep
from mc.training.pass_times import FORWARD, INPUT, PASSES, SPLIT, WEIGHT, PartTimes, PassTime, Times
from mc.training.prices import AbstractPrices, Price
from mc.training.replicas import ending, optimizer_time
from mc.training.times import times_of
from mc.transformer import Transformer

# Ranks of one kind are as many that nothing tells apart.
Kinds = tuple[int, ...]


@dataclass(frozen=True)
class Generations:
    """Which chips the groups of a plan have.

    Attributes:
        chips: of each kind.
        kind: of each rank, [stages, replicas, ranks].
        mixes: the sets of kinds that occur together in a group.
        mix: of each group, [stages, replicas].
    """

    chips: tuple[Chip, ...]
    kind: NDArray[np.int64]
    mixes: tuple[Kinds, ...]
    mix: NDArray[np.int64]

    @property
    def columns(self) -> NDArray[np.int64]:
        """The mixes that pipelines run through, each pipeline that differs once, [pipelines, stages]."""
        return np.unique(self.mix.T, axis=0)


@dataclass(frozen=True)
class MixedTimes:
    """The passes of a plan.

    Attributes:
        by_kind: on each kind of chip alone.
        by_mix: of groups with each mix.
    """

    by_kind: tuple[Times, ...]
    by_mix: tuple[Times, ...]


def generations(config: ClusterConfig, together: Lockstep) -> Generations:
    """The chips of a plan's groups.

    Raises:
        ChipError: a chip lacks a number that a transformer needs.
    """
    chips: list[Chip] = []
    of_rank: list[NDArray[np.int64]] = []
    for count, chip, slowdown in config.chip_runs(together.members.size):
        found = slowed(build_chip(chip), slowdown)
        if found not in chips:
            chips.append(found)
        of_rank.append(np.full(count, chips.index(found)))
    kind = np.concatenate(of_rank)[together.members]
    holds = np.stack([(kind == each).any(axis=-1) for each in range(len(chips))], axis=-1)
    rows, mix = np.unique(holds.reshape(-1, len(chips)), axis=0, return_inverse=True)
    mixes = tuple(tuple(np.flatnonzero(row).tolist()) for row in rows)
    return Generations(tuple(chips), kind, mixes, mix.reshape(kind.shape[:-1]))


def slowed(chip: Chip, factor: float) -> Chip:
    """A chip on which every operation takes so many times longer."""
    if factor == 1.0:
        return chip
    reached = chip.efficiency
    slower = replace(
        reached,
        matmul={name: part / factor for name, part in reached.matmul.items()},
        attention=reached.attention / factor,
        memory=reached.memory / factor,
        kernel=reached.kernel * factor,
    )
    return replace(chip, efficiency=slower)


def times_of_mixes(found: Generations, plan: Plan, shape: Transformer, prices: AbstractPrices) -> MixedTimes:
    """The passes on each kind of chip, and of groups with each mix.

    Raises:
        ChipError: a chip does not have a format of the plan.
    """
    by_kind = tuple(times_of(plan, shape, chip, prices) for chip in found.chips)
    apart = plan.schedule in SPLIT
    by_mix = tuple(_of_mix([by_kind[kind] for kind in mix], apart) for mix in found.mixes)
    return MixedTimes(by_kind, by_mix)


def _of_mix(times: Sequence[Times], apart: bool) -> Times:  # noqa: FBT001
    if len(times) == 1:
        return times[0]
    parts = tuple(
        tuple(slowest_part(alike, apart) for alike in zip(*stages, strict=True))
        for stages in zip(*(each.parts for each in times), strict=True)
    )
    return Times(parts, _dearest([each.transfer for each in times]), times[0].step)


def _dearest(transfers: Sequence[tuple[Price, Price]]) -> tuple[Price, Price]:
    forward, backward = (max(way, key=lambda price: price.seconds) for way in zip(*transfers, strict=True))
    return forward, backward


def slowest_part(parts: Sequence[PartTimes], apart: bool) -> PartTimes:  # noqa: FBT001
    """The passes of a group from those on each of its kinds of chips; gradients `apart` are passes of their own."""
    found = {name: _slowest([getattr(part, name) for part in parts]) for name in PASSES}
    passes = [(FORWARD,), (INPUT,), (WEIGHT,)] if apart else [(FORWARD,), (INPUT, WEIGHT)]
    for names in passes:
        # The host launches what belongs together at once.
        longest = largest(sum(getattr(part, name).seconds for name in names) for part in parts)
        busy = sum(found[name].seconds for name in names)
        found[names[0]] = replace(found[names[0]], host=positive(longest - busy))
    return PartTimes(*found.values())


def _slowest(passes: Sequence[PassTime]) -> PassTime:
    """A pass without the host."""
    slow = max(passes, key=lambda one: one.compute)
    waiting = {name: largest(one.waiting.get(name, 0.0) for one in passes) for name in slow.waiting}
    return replace(slow, waiting=waiting, host=0.0)


def evaluate_mixes(
    found: Generations,
    times: MixedTimes,
    plan: Plan,
    shape: Transformer,
    prices: AbstractPrices,
    *,
    attention: float = 1.0,
) -> Breakdown:
    """The step without noise; its parts are those of the pipeline that takes longest."""
    chip = found.chips[0]
    transfer = _dearest([each.transfer for each in times.by_mix])
    runs = [
        evaluate(
            plan, shape, chip, prices, attention=attention, times=_of_column(times, column.tolist(), transfer)
        )
        for column in found.columns
    ]
    if len(found.chips) == 1:
        return runs[0]
    longest = max(runs, key=lambda run: float(run.finish.makespan))
    shared = replace(
        longest.meeting,
        optimizer=max(float(optimizer_time(plan, shape, each)) for each in found.chips),
        fixed=max(float(each.efficiency.step) for each in found.chips),
        free=tuple(min(each) for each in zip(*(run.meeting.free for run in runs), strict=True)),
    )

    def slowest(name: str):
        return np.max([getattr(run.finish, name) for run in runs], axis=0).tolist()

    over = ending(
        shared,
        makespan=float(longest.finish.makespan),
        end=slowest("end"),
        first_start=slowest("first_start"),
        gradient_end=slowest("gradient_end"),
        gradient_duration=slowest("gradient_duration"),
    )
    blocking = sum(shared.blocking.values())
    more = over.exposed + blocking - longest.parts["exposed_communication"]
    parts = longest.parts | {
        "host": longest.parts["host"] + shared.fixed - longest.meeting.fixed,
        "exposed_communication": over.exposed + blocking,
        "optimizer": shared.optimizer,
    }
    exposed = longest.exposed | {"dp": longest.exposed.get("dp", 0.0) + more}
    return replace(
        longest,
        step=over.step,
        parts=parts,
        exposed={name: seconds for name, seconds in exposed.items() if seconds},
        bubble_fraction=longest.parts["bubble"] / over.step,
        meeting=shared,
    )


def _of_column(times: MixedTimes, mixes: Sequence[int], transfer: tuple[Price, Price]) -> Times:
    """The passes of a pipeline whose stages have these mixes."""
    stages = tuple(times.by_mix[mix].parts[stage] for stage, mix in enumerate(mixes))
    return Times(stages, transfer, times.by_mix[0].step)
