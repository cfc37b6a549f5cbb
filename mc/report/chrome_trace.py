"""A step in time as Chrome's trace events, which Perfetto reads.

Complete events (`ph: X`) in microseconds; a process per track and a thread per lane, since slices of one thread must nest.
Process 0 is the critical path. The slices that it goes through have the category `critical` beside their own; where it goes
from one lane to another an arrow leads (flow events, `ph: s` and `f`).

Trace Event Format, Google 2016: docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

import itertools
from collections.abc import Iterator
from typing import Any

from mc.results import Slice, Trace

CRITICAL = "critical"
_MICROSECONDS = 1e6


def chrome_trace(trace: Trace) -> dict[str, Any]:
    """The trace as an object for JSON."""
    lanes = _lanes(trace)
    on_path = {_key(one) for one in trace.critical}
    events = [*_names(trace, lanes)]
    for one in trace.slices:
        events.append(
            _event(one, one.track + 1, lanes[one.track, one.lane], is_critical=_key(one) in on_path)
        )
    for one in trace.critical:
        events.append(_event(one, 0, 0, is_critical=True))
    events += _arrows(trace, lanes)
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {
            "experiment": trace.name,
            "step": trace.quantile,
            "quantile_s": trace.quantile_s,
            "sampled_step_s": trace.sampled_s,
            "step_s": trace.step_s,
            "realisation": trace.realisation,
            "sample": trace.sample,
            "seed": trace.seed,
            "config_hash": trace.config_hash,
            "waited_for": trace.waited_for,
        },
    }


def _key(one: Slice) -> tuple[int, str, str]:
    return one.track, one.lane, one.name


def _lanes(trace: Trace) -> dict[tuple[int, str], int]:
    """A number for each lane of a track, in the order in which they are met."""
    found: dict[tuple[int, str], int] = {}
    of_track: dict[int, int] = {}
    for one in trace.slices:
        if (one.track, one.lane) not in found:
            found[one.track, one.lane] = of_track.get(one.track, 0)
            of_track[one.track] = of_track.get(one.track, 0) + 1
    return found


def _names(trace: Trace, lanes: dict[tuple[int, str], int]) -> Iterator[dict[str, Any]]:
    tracks = {0: "critical path"} | {track + 1: name for track, name in trace.tracks.items()}
    for track, name in tracks.items():
        yield {"ph": "M", "name": "process_name", "pid": track, "tid": 0, "args": {"name": name}}
        yield {"ph": "M", "name": "process_sort_index", "pid": track, "tid": 0, "args": {"sort_index": track}}
    for (track, lane), number in lanes.items():
        yield {"ph": "M", "name": "thread_name", "pid": track + 1, "tid": number, "args": {"name": lane}}


def _event(one: Slice, process: int, thread: int, *, is_critical: bool) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": one.name,
        "cat": f"{one.category},{CRITICAL}" if is_critical else one.category,
        "pid": process,
        "tid": thread,
        "ts": one.start * _MICROSECONDS,
        "dur": (one.end - one.start) * _MICROSECONDS,
        "args": dict(one.about),
    }


def _arrows(trace: Trace, lanes: dict[tuple[int, str], int]) -> Iterator[dict[str, Any]]:
    """From the middle of a slice of the path to the middle of the next, where that is on another lane."""
    shown = [one for one in trace.critical if (one.track, one.lane) in lanes]
    for number, pair in enumerate(itertools.pairwise(shown)):
        if pair[0].track == pair[1].track and pair[0].lane == pair[1].lane:
            continue
        for phase, one in zip(("s", "f"), pair, strict=True):
            yield {
                "ph": phase,
                "id": number,
                "name": "critical path",
                "cat": CRITICAL,
                "pid": one.track + 1,
                "tid": lanes[one.track, one.lane],
                "ts": (one.start + one.end) / 2 * _MICROSECONDS,
                **({"bp": "e"} if phase == "f" else {}),
            }
