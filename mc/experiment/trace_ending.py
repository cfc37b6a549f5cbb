"""The end of a step in time: gradients are reduced stage by stage, and then everybody goes on together."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mc.experiment.training_draws import Conditions
from mc.pipeline import Replay
from mc.pipeline.levels import first_forwards, last_gradients
from mc.pipeline.order import Kind
from mc.training import Meeting, ending, reduction
from mc.training.arithmetic import positive

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Reduced:
    """The gradients of one chunk of a stage.

    Attributes:
        chunk: of the stage; −1 for all of them.
        first: when their reduction begins.
        end: when it is over.
        ready: when the slowest replica has the last of them.
        replica: which one that is.
        part: seconds of all buckets.
        begins: when that part of it begins which its end hangs on.
        follows: whether it begins when the reduction before it is over; otherwise when computing is so far.
    """

    chunk: int
    first: float
    end: float
    ready: float
    replica: int
    part: float
    begins: float
    follows: bool


@dataclass(frozen=True)
class End:
    """How a step ends.

    Attributes:
        reduced: what each stage reduces, in the order of time.
        done: when the slowest replica of each stage has computed everything, [stages].
        slowest: which replica that is, [stages].
        late: when each stage is done with both, [stages].
        tail: what follows for all, name to seconds.
        step: the end of it.
    """

    reduced: tuple[tuple[Reduced, ...], ...]
    done: Floats
    slowest: NDArray[np.int64]
    late: Floats
    tail: dict[str, float]
    step: float

    @property
    def stage(self) -> int:
        """The stage that the others wait for."""
        return int(self.late.argmax())

    def hangs_on(self) -> tuple[int, float, list[int]]:
        """What the end hangs on.

        Returns:
            The replica; until when its pipeline decides; and which of the reductions of `stage` follow, in the order of time.
        """
        stage = self.stage
        if self.late[stage] <= self.done[stage]:
            return int(self.slowest[stage]), float(self.done[stage]), []
        mine = self.reduced[stage]
        place = max(index for index, each in enumerate(mine) if each.end == self.late[stage])
        chain = [place]
        while mine[chain[0]].follows and chain[0] > 0:
            chain.insert(0, chain[0] - 1)
        first = mine[chain[0]]
        return first.replica, first.begins, chain


def end_of(met: Conditions, meeting: Meeting, done: Replay, took: Floats) -> End:
    """How the step ends whose pipelines are known.

    Args:
        met: what the step meets.
        meeting: what replicas do together, with idle links.
        done: the pipelines of all replicas.
        took: seconds of operations.
    """
    order, level_of = done.levels.order, done.level_of
    stage = np.arange(order.stages)
    late = met.messages
    added = [np.zeros(order.stages)] * 2 if late is None else [_first(late.reduce), _first(late.gather)]
    blocking = {name: float(seconds) for name, seconds in meeting.blocking.items()}
    if late is not None:
        blocking["links"] = float(np.asarray(late.blocking)[0])
    shared = replace(
        meeting,
        reduce=meeting.reduce + added[0],
        earlier=meeting.earlier + added[0],
        gather=meeting.gather + added[1],
        blocking=blocking,
        free=(np.array(meeting.free, np.float64),),
    )
    last = (order.kind != Kind.IDLE).sum(axis=1) - 1
    gradients = level_of[stage[:, None], last_gradients(order)], stage[:, None]
    ends = done.end[level_of[stage, last], stage]
    starts = done.start[level_of[stage[:, None], first_forwards(order)], stage[:, None]].max(axis=-1)
    ready, passes = done.end[gradients], took[gradients].max(axis=-1)
    over = ending(
        shared,
        makespan=ends.max(),
        end=[ends.max(axis=1)],
        first_start=_by_chunk(starts),
        gradient_end=_by_chunk(ready.max(axis=-1)),
        gradient_duration=_by_chunk(passes),
        across=np.max,
    )
    reduced = tuple(
        _reduced(shared, each, ends[each], float(starts[each, 0]), ready[each], passes[each])
        for each in range(order.stages)
    )
    finished = ends.max(axis=1)
    ended = np.array(
        [max(float(each), *(one.end for one in mine)) for each, mine in zip(finished, reduced, strict=True)]
    )
    gather = positive(float(over.exposed) - float(ended.max() - ends.max()))
    tail = {
        **{f"messages ({name})": seconds for name, seconds in blocking.items()},
        "optimizer": float(shared.optimizer),
        "host": float(shared.fixed),
        "gather parameters": gather,
    }
    return End(reduced, finished, ends.argmax(axis=1), ended, tail, float(over.step))


def _reduced(
    shared: Meeting, stage: int, ends: Floats, start: float, ready: Floats, passes: Floats
) -> tuple[Reduced, ...]:
    """Reductions of a stage, as `ending` has them."""
    reduce, earlier = float(shared.reduce[stage]), float(shared.earlier[stage])
    free, chunks, buckets, end = float(shared.free[0][stage]), len(passes), shared.buckets, float(ends.max())
    if not shared.reduce_hidden:
        total = reduce + shared.earlier_count * earlier
        return (Reduced(-1, end, end + total, end, int(ends.argmax()), total, end, follows=False),)
    found, before = [], 0.0
    for chunk in reversed(range(chunks)):
        last, part = float(ready[chunk].max()), reduce / chunks
        first, over = (float(each) for each in reduction(part, buckets, last, free * passes[chunk], before))
        follows = over == before + part and before > 0.0
        begins = before if follows else min(max(over - part, 0.0), last)
        if over == last + part / buckets:
            begins, follows = last, False
        replica = int(ready[chunk].argmax())
        found.append(Reduced(chunk, first, over, last, replica, part, begins, follows))
        before = over
    if shared.earlier_count:
        period = (end - start) / (shared.earlier_count + 1)
        left = shared.earlier_count * positive(earlier - free * period)
        last = found[-1].ready
        found.append(Reduced(-1, before, before + left, last, found[-1].replica, left, before, follows=True))
    return tuple(found)


def _by_chunk(values: Floats) -> list[list[Floats]]:
    """All stages are one entry."""
    return [[values[:, chunk] for chunk in range(values.shape[1])]]


def _first(values) -> Floats:
    return np.asarray(values, np.float64)[:, 0]
