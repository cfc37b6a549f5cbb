"""A step of a transformer in time: the pipeline that everybody waited for, stage by stage, and the end where replicas meet.

Of all replicas' pipelines the one is shown whose operations the end of the step hangs on. In a pass computing and messages among
the ranks of a stage alternate layer by layer; the trace draws what it computes first, then what it waits for, then the host.
"""

from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
from numpy.typing import NDArray

from mc.experiment.trace_ending import End, Reduced, end_of
from mc.experiment.trace_slices import COMMUNICATION, COMPUTE, HOST, WAIT, Slices
from mc.experiment.training_draws import Conditions, TrainingDraws
from mc.pipeline import Kind, Replay, levels_of, replay
from mc.results import Slice
from mc.training import Operations, Realisation, disturbed, operations

_LETTERS = {Kind.FORWARD: "F", Kind.BACKWARD: "B", Kind.INPUT: "I", Kind.WEIGHT: "W", Kind.JOINT: "F"}
_PASSES = {
    Kind.FORWARD: "forward",
    Kind.BACKWARD: "backward",
    Kind.INPUT: "gradients of inputs",
    Kind.WEIGHT: "gradients of weights",
    Kind.JOINT: "forward and backward",
}
# Lanes.
_COMPUTE, _RANKS, _SENDS, _GRADIENTS, _WAITS = "compute", "messages of ranks", "sends", "gradients", "waits"

# A level and a stage.
_Place = tuple[int, int]


def training_slices(draws: TrainingDraws, realisation: int, sample: int) -> Slices:
    """What happens in a step."""
    met = draws.conditions(realisation, sample // draws.call).only(sample % draws.call)
    quiet = draws.step.quiet
    plan = quiet.plan
    levels = levels_of(plan.schedule, plan.pp, plan.micro_batches, plan.chunks)
    drawn = _operations(draws, met)
    took = drawn.computing + drawn.waiting + drawn.host
    done = replay(levels, took, transfer=drawn.transfer, late=drawn.late)
    end = end_of(met, quiet.breakdown.meeting, done, took)
    return _Picture(draws, realisation, drawn, done, end).slices


def _operations(draws: TrainingDraws, met: Conditions) -> Operations:
    """Of all replicas, in double precision."""
    step, method = draws.step, draws.method

    @eqx.filter_jit
    def found(work, noise, sent, realisation: Realisation, key, sample) -> Operations:
        now = disturbed(step.timetable, work, noise, sent, realisation, key, sample, method=method)
        return operations(step.timetable, now)

    kept = met.kept
    realisation = Realisation(kept.profile, kept.factor, kept.load, met.links)
    drawn = found(step.work, step.noise, step.sent, realisation, met.key, met.sample)
    return jax.tree.map(lambda each: np.asarray(each, np.float64) if eqx.is_array(each) else each, drawn)


class _Picture:
    """The slices of one step: of the pipeline that the end hangs on, by stage."""

    def __init__(self, draws: TrainingDraws, realisation: int, drawn: Operations, done: Replay, end: End):
        """Draws everything."""
        self._draws, self._drawn, self._done, self._end = draws, drawn, done, end
        self._order, self._level_of = done.levels.order, done.level_of
        self._replica, self._until, self._chain = end.hangs_on()
        self._factor = draws.step.factor[realisation][:, self._replica]
        self._members = draws.step.quiet.lockstep.members[:, self._replica]
        stages = self._order.stages
        self.slices = Slices({**{each: self._track(each) for each in range(stages)}, stages: "all stages"})
        self._passes: dict[_Place, Slice] = {}
        for stage in range(stages):
            self._add_passes(stage)
        self._messages = self._add_messages()
        self._reductions = [self._add_reductions(stage) for stage in range(stages)]
        self._add_waits()
        tail = self._add_tail()
        self.slices.critical = [*self._path(), *tail]
        self.slices.waited_for = (
            f"stage {end.stage} of pipeline {self._replica} ({_ranks(self._members[end.stage])})"
        )

    def _track(self, stage: int) -> str:
        text = f"stage {stage}: {_ranks(self._members[stage])}"
        slowest = int(self._factor[stage].argmax())
        if self._factor[stage][slowest] <= 1.0:
            return text
        return f"{text}; rank {self._members[stage][slowest]} takes {self._factor[stage][slowest]:.3g} times as long"

    def _add_passes(self, stage: int) -> None:
        done, drawn, replica = self._done, self._drawn, self._replica
        for position, operation in enumerate(self._order.sequence(stage)):
            level = int(self._level_of[stage, position])
            place = level, stage, replica
            kind = Kind(operation.kind)
            name = self._named(_LETTERS[kind], operation.micro_batch, operation.chunk)
            if kind is Kind.JOINT:
                name += " " + self._named("B", operation.back_micro_batch, operation.back_chunk)
            start, computing, waiting = (
                float(each[place]) for each in (done.start, drawn.computing, drawn.waiting)
            )
            about = {
                "pass": _PASSES[kind],
                "micro_batch": operation.micro_batch,
                "computing_s": computing,
                "waiting_s": waiting,
                "host_s": float(drawn.host[place]),
                "undisturbed_s": self._undisturbed(kind, stage, operation.chunk),
            }
            self._passes[level, stage] = self.slices.add(
                Slice(name, stage, _COMPUTE, start, float(done.end[place]), COMPUTE, about)
            )
            begun = start + computing
            self.slices.add(
                Slice(f"messages of {name}", stage, _RANKS, begun, begun + waiting, COMMUNICATION)
            )

    def _named(self, letter: str, micro_batch: int, chunk: int) -> str:
        return f"{letter}{micro_batch}" + (f".{chunk}" if self._order.chunks > 1 else "")

    def _undisturbed(self, kind: Kind, stage: int, chunk: int) -> float:
        work = self._draws.step.work
        mix = 0 if work.mix is None else int(work.mix[stage, self._replica])
        at = mix, int(kind), stage, chunk
        columns = work.plain, work.routed, work.waiting, work.routing, work.host
        return float(sum(float(column[at]) for column in columns))

    def _add_messages(self) -> dict[tuple[_Place, int], Slice]:
        """Messages between stages, by who waits for them."""
        done, levels, replica = self._done, self._done.levels, self._replica
        found: list[tuple[tuple[_Place, int], Slice]] = []
        for level, stage in self._passes:
            for which in range(len(levels.source)):
                source, sender = (
                    int(levels.source[which, level, stage]),
                    int(levels.sender[which, level, stage]),
                )
                if source < 0:
                    continue
                sent = self._passes[source, sender]
                crossing = done.crossing[levels.route[which, level, stage], replica]
                arrived = done.left[source, sender, replica] + crossing
                name = f"{sent.name} to stage {stage}"
                found.append(
                    (
                        ((level, stage), which),
                        Slice(name, sender, _SENDS, sent.end, float(arrived), COMMUNICATION, {"to": stage}),
                    )
                )
        return self._in_lanes(found)

    def _in_lanes(self, found: list[tuple[tuple[_Place, int], Slice]]) -> dict[tuple[_Place, int], Slice]:
        """Messages that are on their way at once go into lanes of their own."""
        free: dict[int, list[float]] = {}
        placed = {}
        for key, one in sorted(found, key=lambda each: (each[1].start, each[1].end)):
            lanes = free.setdefault(one.track, [])
            lane = next((index for index, until in enumerate(lanes) if until <= one.start), len(lanes))
            lanes[lane : lane + 1] = [one.end]
            placed[key] = self.slices.add(one if lane == 0 else replace(one, lane=f"{_SENDS} {lane + 1}"))
        return placed

    def _add_reductions(self, stage: int) -> list[tuple[Reduced, Slice]]:
        found = []
        for each in self._end.reduced[stage]:
            name = "reduce gradients" + (
                f" of chunk {each.chunk}" if each.chunk >= 0 and self._order.chunks > 1 else ""
            )
            about = {"waits_for_pipeline": each.replica, "ready_s": each.ready, "link_s": each.part}
            one = Slice(name, stage, _GRADIENTS, each.first, each.end, COMMUNICATION, about)
            found.append((each, self.slices.add(one)))
        return found

    def _add_waits(self) -> None:
        """Between the passes of a stage, and at its end."""
        done, levels, replica = self._done, self._done.levels, self._replica
        for (level, stage), one in self._passes.items():
            position = int(levels.position[level, stage])
            before = 0.0
            if position:
                before = float(done.free[int(self._level_of[stage, position - 1]), stage, replica])
            which = int(done.decided[level, stage, replica])
            if which >= 0:
                sender = self._passes[
                    int(levels.source[which, level, stage]), int(levels.sender[which, level, stage])
                ]
                name = f"waits for {sender.name} of stage {sender.track}"
                self.slices.add(Slice(name, stage, _WAITS, before, one.start, WAIT, {"for": sender.track}))
        stage, last = self._end.stage, float(self._end.late.max())
        for each in range(self._order.stages):
            name = f"waits for stage {stage} of pipeline {self._replica}"
            late = max(self._last(each).end, *(one.end for _, one in self._reductions[each]))
            self.slices.add(Slice(name, each, _WAITS, late, last, WAIT, {"for": stage}))

    def _last(self, stage: int) -> Slice:
        return self._passes[self._last_place(stage)]

    def _last_place(self, stage: int) -> _Place:
        return int(self._level_of[stage].max()), stage

    def _add_tail(self) -> list[Slice]:
        at, found = float(self._end.late.max()), []
        for name, seconds in self._end.tail.items():
            category = {"optimizer": COMPUTE, "host": HOST}.get(name, COMMUNICATION)
            one = Slice(name, self._order.stages, "step", at, at + seconds, category)
            if seconds > 0:
                found.append(self.slices.add(one))
                at = one.end
        return found

    def _path(self) -> list[Slice]:
        """The critical path from its start to where all stages are done."""
        found = self._before()
        mine = self._reductions[self._end.stage]
        for index in self._chain:
            each, one = mine[index]
            found.append(replace(one, start=each.begins, end=each.end))
        return found

    def _before(self) -> list[Slice]:
        """Of the pipeline, up to where its end, or a reduction, hangs on it."""
        done, levels, replica = self._done, self._done.levels, self._replica
        until, found = self._until, []
        level, stage = self._last_place(self._end.stage)
        while True:
            one = self._passes[level, stage]
            position = int(levels.position[level, stage])
            before = int(self._level_of[stage, position - 1]) if position else -1
            if one.start >= until > 0.0 and position:
                # The reduction began during an earlier pass.
                level = before
                continue
            if one.end < until:
                found.append(Slice("waits for other pipelines", stage, _WAITS, one.end, until, WAIT))
            found.append(replace(one, end=min(one.end, until)))
            which = int(done.decided[level, stage, replica])
            if which >= 0:
                message = self._messages[(level, stage), which]
                found.append(replace(message, end=one.start))
                level, stage = int(levels.source[which, level, stage]), message.track
            elif position:
                gone = self._passes[before, stage]
                if one.start > gone.end:
                    found.append(replace(self._sent_by(before, stage), start=gone.end, end=one.start))
                level = before
            else:
                break
            until = self._passes[level, stage].end
        return [each for each in found[::-1] if each.end > each.start]

    def _sent_by(self, level: int, stage: int) -> Slice:
        """The message that held a stage."""
        levels = self._done.levels
        mine = [
            message
            for ((at, receiver), which), message in self._messages.items()
            if (levels.source[which, at, receiver], levels.sender[which, at, receiver]) == (level, stage)
        ]
        return max(mine, key=lambda message: message.end)


def _ranks(members: NDArray[np.int64]) -> str:
    ordered = sorted(int(each) for each in members)
    if len(ordered) == 1:
        return f"rank {ordered[0]}"
    if ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"ranks {ordered[0]}-{ordered[-1]}"
    shown = ", ".join(map(str, ordered[:4]))
    return f"ranks {shown}" + (f", ... ({len(ordered)})" if len(ordered) > 4 else "")
