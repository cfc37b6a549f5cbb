r"""Replicas that do not exchange in every step: local steps, and exchanges that are late.

A replica that exchanges with nobody takes X = (makespan of its pipeline) + (optimizer) + (messages among its own ranks) + (once per
step). With an exchange every H steps (local SGD; S. Stich, arXiv 1805.09767) it takes H − 1 such steps and one that ends as every
step does without mitigations, where the slowest sum of H is waited for and buckets move behind the last backward pass. So without
noise a step of a round is

    T = ((H − 1)·X + T₁)/H.

An exchange that may be late goes on behind the steps that follow. Its link carries what ranks wait for first, and is free for a
part ρ of the time that they compute. With E its seconds on an idle link and M those that the slowest pipeline works meanwhile, it
takes

    D = min(E/ρ, E + (1 − ρ)·M),

the first where it ends before they do, and the recursion over steps is that of ranks (`mc.step.delayed`), with X for what a rank
takes. Without noise a step is max(X, D).

All that a replica shares it has to itself: state is not sharded among replicas, so nothing is gathered and no gradients are
reduced within one (`mc.config.mitigation_checks`).
"""

from dataclasses import replace

from mc.training.arithmetic import Number, largest, maximum, minimum
from mc.training.evaluate import Breakdown
from mc.training.replicas import Meeting


def alone(meeting: Meeting, makespan: Number, more: Number = 0.0) -> Number:
    """Seconds of a step in which a replica exchanges with no other.

    Args:
        meeting: what replicas do at the end of a step.
        makespan: of a replica's pipeline.
        more: what its own messages of the step take beside.
    """
    return makespan + (meeting.optimizer + meeting.fixed + sum(meeting.blocking.values())) + more


def late_exchange(reduce: Number, free: Number, working: Number) -> Number:
    """Seconds of an exchange that goes on while pipelines work.

    Args:
        reduce: that it takes on an idle link.
        free: part of the time that the link is free while ranks compute, above 0 or 0.
        working: seconds that the slowest pipeline works from one exchange to the next.
    """
    return minimum(reduce / maximum(free, 1e-12), reduce + (1.0 - free) * working)


def seldom(found: Breakdown, steps: int, staleness: int) -> Breakdown:
    """A step without noise, with an exchange every so many steps, which may be late by so many; as it is with 1 and 0.

    What is exposed of the exchange changes, and all else stays.
    """
    if steps == 1 and not staleness:
        return found
    meeting, step = found.meeting, float(found.step)
    exposed = float(found.parts["exposed_communication"]) - sum(map(float, meeting.blocking.values()))
    apart = step - exposed
    if staleness:
        working = steps * float(found.finish.makespan)
        took = largest(late_exchange(float(meeting.reduce), float(free), working) for free in meeting.free)
        changed = max(apart, took / steps)
    else:
        changed = step - exposed * (1.0 - 1.0 / steps)
    less = step - changed
    return replace(
        found,
        step=changed,
        parts=found.parts | {"exposed_communication": found.parts["exposed_communication"] - less},
        exposed=found.exposed | {"dp": found.exposed.get("dp", 0.0) - less},
        bubble_fraction=found.bubble_fraction * step / changed,
    )
