"""What a schedule costs in rounds and bytes, counted message by message.

These are the counts of the closed forms (`mc.collectives`), in units of the buffer. Rounds count on the
longest path one after the other, so what they carry and combine is the sum over the rounds of the busiest
rank's. A pipelined schedule has that sum too, which depends on the number of pieces; its closed form is the
limit of many, in which the busiest rank is busy all the time: the totals of that rank.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from mc.schedules.schedule import Schedule


@dataclass(frozen=True, eq=False)
class ScheduleCounts:
    """Counts; bytes in units of the buffer.

    Attributes:
        rounds: that have a message other than a hand-over to an attached switch.
        sent: float64[ranks], what each rank sends.
        received: float64[ranks], what each rank receives.
        carried: sum over the rounds of what the busiest port of a rank takes in or gives out, without what
            streams on while it arrives.
        combined: sum over the rounds of what the busiest rank combines.
        busiest_port: what the busiest port of a rank takes in or gives out in all.
        busiest_combined: what the busiest rank combines in all.
    """

    rounds: int
    sent: np.ndarray
    received: np.ndarray
    carried: float
    combined: float
    busiest_port: float
    busiest_combined: float


def counts(schedule: Schedule, *, own_ports: bool = False) -> ScheduleCounts:
    """Count.

    Args:
        schedule: any.
        own_ports: count each of a node's ports (`schedule.port`) for itself; else they are one.
    """
    n, ports = schedule.ranks, schedule.ports if own_ports else 1
    shares = schedule.shares

    def per_rank(node: np.ndarray, part: slice, weight: np.ndarray) -> np.ndarray:
        """[ranks, ports]."""
        key = node[part].astype(np.int64) * ports + (schedule.port[part] if own_ports else 0)
        # Switches are counted as well, and cut off.
        return np.bincount(key, weight, schedule.nodes * ports).reshape(-1, ports)[:n]

    totals = {name: np.zeros((n, ports)) for name in ("sent", "received", "out", "in", "combined")}
    carried = combined = 0.0
    rounds = 0
    bounds = np.searchsorted(schedule.round, np.arange(schedule.rounds + 1))
    for low, high in itertools.pairwise(bounds):
        if low == high:
            continue
        part = slice(int(low), int(high))
        share = shares[part]
        timed = share * ~schedule.cut_through[part]
        each = {
            "sent": per_rank(schedule.source, part, share),
            "received": per_rank(schedule.target, part, share),
            "out": per_rank(schedule.source, part, timed),
            "in": per_rank(schedule.target, part, timed),
            "combined": per_rank(schedule.target, part, share * schedule.combine[part]),
        }
        for name, value in each.items():
            totals[name] += value
        carried += max(each["out"].max(), each["in"].max())
        combined += each["combined"].sum(1).max()
        rounds += not bool(np.all(schedule.attached[part]))
    return ScheduleCounts(
        rounds=rounds,
        sent=totals["sent"].sum(1),
        received=totals["received"].sum(1),
        carried=float(carried),
        combined=float(combined),
        busiest_port=float(max(totals["out"].max(), totals["in"].max())),
        busiest_combined=float(totals["combined"].sum(1).max()),
    )
