"""The rule of the executor, written down a second time: one trial, message by message, in float64.

Dictionaries and a loop over rows; slow, and with nothing in common with the dense arrays of the executor but
the rule itself.
"""

import numpy as np

from mc.schedules import Schedule


def run(
    schedule: Schedule,
    start: np.ndarray,
    *,
    latency: float,
    bandwidth: float,
    size: float,
    own_ports: bool = False,
) -> np.ndarray:
    """When each rank is done."""
    ready: dict[tuple[int, int], float] = {}
    for lane in range(schedule.lanes):
        for node in range(schedule.nodes):
            ready[node, lane] = start[node] if node < schedule.ranks else -np.inf
    leaving: dict[object, float] = {}
    entering: dict[object, float] = {}
    for index in range(schedule.rounds):
        if index in schedule.joins:
            for node in range(schedule.nodes):
                latest = max(ready[node, lane] for lane in range(schedule.lanes))
                ready |= {(node, lane): latest for lane in range(schedule.lanes)}
        messages: dict[tuple[int, int, int, int, int, int], float] = {}
        late: set[tuple[int, int, int, int, int, int]] = set()
        for row in np.flatnonzero(schedule.round == index):
            key = tuple(
                int(getattr(schedule, name)[row])
                for name in ("slot", "source", "target", "source_lane", "target_lane", "port")
            )
            held = 0.0 if schedule.cut_through[row] else float(schedule.shares[row]) * size / bandwidth
            messages[key] = messages.get(key, 0.0) + held
            if not schedule.attached[row]:
                late.add(key)
        after = dict(ready)
        for key in sorted(messages):
            _, source, target, source_lane, target_lane, port = key
            out, into = ((node, port if own_ports else 0) for node in (source, target))
            begin = ready[source, source_lane]
            if schedule.rendezvous:
                begin = max(begin, ready[target, target_lane])
            if source < schedule.ranks:
                begin = max(begin, leaving.get(out, -np.inf))
            if target < schedule.ranks:
                begin = max(begin, entering.get(into, -np.inf))
            gone = begin + messages[key]
            leaving[out] = entering[into] = gone
            arrived = gone + (latency if key in late else 0.0)
            after[target, target_lane] = max(after[target, target_lane], arrived)
        ready = after
    return np.array([max(ready[i, lane] for lane in range(schedule.lanes)) for i in range(schedule.ranks)])
