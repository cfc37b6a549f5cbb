"""From rows of single calls to series: times of one collective on one group of ranks at one size, call after call.

A call ends for all when its last message has come. Where a file has the time of all processes, that is the time; where it
has the times of each, as a timer around the call shows them, the greatest; and where they are of a kernel that also waits for
ranks that come late (NCCL Inspector), the least: it is that of the rank who came last and waited for nobody.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mc.calibration.curves import LIBRARY, group_of, usable
from mc.calibration.errors import CalibrationError
from mc.config import ClusterConfig
from mc.config.axes import count
from mc.config.hold_out import HoldOut
from mc.fabric import Ranks, build_cluster
from mc.logs import ENGINE_ALGORITHMS, MeasurementTable

# Fewer calls have no 99 % quantile, nor a tail.
LEAST_CALLS = 20
# Whose times hold waiting for ranks that come late.
_WAITING = "inspector"
_UNITS = 100.0


@dataclass(frozen=True)
class CallSeries:
    """Times of calls that are alike, in their order.

    Attributes:
        collective: which.
        ranks: how many consecutive ranks of the cluster, or their axes.
        algorithms: what the library chose from.
        protocol: that it was told to use, or `auto`.
        size: bytes.
        times: seconds.
        source: the file.
        label: for people.
        nodes: that the ranks were on, if anybody said.
    """

    collective: str
    ranks: Ranks
    algorithms: tuple[str, ...]
    protocol: str
    size: float
    times: NDArray[np.float64]
    source: str = ""
    label: str = ""
    nodes: int | None = None

    @property
    def count(self) -> int:
        """How many ranks take part."""
        return self.ranks if isinstance(self.ranks, int) else count(self.ranks)

    @property
    def alike(self) -> tuple[object, ...]:
        """What series of one law have in common, whichever run they are of."""
        return self.collective, self.ranks, self.algorithms, self.protocol, self.size


def has_calls(table: MeasurementTable) -> bool:
    """Whether a table has times of single calls of collectives."""
    return any(_is_call(row) for row in table.rows())


def calls_of(
    table: MeasurementTable,
    config: ClusterConfig,
    algorithms: Sequence[str] | None = None,
    rule: HoldOut | None = None,
) -> tuple[list[CallSeries], list[CallSeries]]:
    """The series in a table that a cluster can have: those to fit, and those that a rule holds out.

    Out of place where a file has both.

    Args:
        table: what the importers found.
        config: the cluster.
        algorithms: what the library chose from, where rows do not say; NCCL's by default.
        rule: which calls are held out; none by default.

    Raises:
        CalibrationError: there is nothing to fit, or rows contradict the cluster or each other.
    """
    cluster = build_cluster(config)
    groups = _grouped(table)
    fitted, left, most = list[CallSeries](), list[CallSeries](), 0
    for key, calls in groups.items():
        source, collective, ranks, nodes, algorithm, protocol, size = key
        where = f"{source}, {collective}"
        if ranks is None:
            raise CalibrationError(
                f"{where}: expected the number of ranks; the file does not say it, so use --ranks"
            )
        if ranks < 2:
            raise CalibrationError(f"{where}: expected two ranks or more; got {ranks}")
        group = group_of(cluster, ranks, nodes, where)
        if algorithm is not None and algorithm not in ENGINE_ALGORITHMS:
            raise CalibrationError(
                f"{where}: expected an algorithm of {', '.join(ENGINE_ALGORITHMS)}; got {algorithm}"
            )
        asked = LIBRARY if algorithms is None else algorithms
        names = (ENGINE_ALGORITHMS[algorithm],) if algorithm else usable(cluster, collective, group, asked)
        placed = f"{ranks} ranks" + (f" on {nodes} nodes" if nodes is not None else "")
        times = np.array([time for _, time in calls])
        held = np.array(
            [
                rule is not None
                and rule.holds(ranks, size, place, nodes=nodes, file=source, process=process, curve=f"{key}")
                for place, (process, _) in enumerate(calls)
            ]
        )
        most = max(most, len(times))
        for mask, found in ((~held, fitted), (held, left)):
            if mask.sum() >= LEAST_CALLS:
                label = f"{collective}, {placed}"
                found.append(
                    CallSeries(
                        collective,
                        group,
                        names,
                        protocol or "auto",
                        size,
                        times[mask],
                        source,
                        label,
                        nodes,
                    )
                )
    _check(fitted, left, most, rule)
    return fitted, left


def _check(fitted: list[CallSeries], left: list[CallSeries], most: int, rule: HoldOut | None) -> None:
    if not fitted and not left:
        raise CalibrationError(
            f"expected {LEAST_CALLS} calls or more of one collective at one size; got {most} at most"
        )
    if rule is not None and rule.field != "none" and not (fitted and left):
        what = "all of them" if left else "none"
        groups = "; ".join(dict.fromkeys(each.label for each in (*fitted, *left)))
        raise CalibrationError(
            f"hold_out: expected a rule that some calls meet and some do not, {LEAST_CALLS} of a series each; {what} do "
            f"({groups})"
        )
    for each in (*fitted, *left):
        if np.ptp(each.times) == 0:
            raise CalibrationError(
                f"{each.source}, {each.label}: expected times that vary; got {each.times[0]:.3g} s for all "
                f"{len(each.times)} calls of {each.size:.0f} bytes"
            )
    middles: dict[tuple[object, ...], list[tuple[float, CallSeries]]] = {}
    for each in (*fitted, *left):
        middles.setdefault(each.alike, []).append((float(np.median(each.times)), each))
    for own in middles.values():
        (least, one), (most_, other) = min(own, key=lambda x: x[0]), max(own, key=lambda x: x[0])
        if most_ > _UNITS * least:
            raise CalibrationError(
                f"{other.source}, {other.label}: expected times of one collective that agree; medians at {one.size:.0f} bytes go "
                f"from {least:.3g} s, in {one.source}, to {most_:.3g} s: are all in one unit?"
            )


def _is_call(row: dict[str, Any]) -> bool:
    return (
        row["kind"] == "collective"
        and row["collective"] is not None
        and row["bytes"] is not None
        and row["bytes"] > 0
        and row["time_s"] is not None
        and row["iteration"] is not None
        and row["conflict"] is None
    )


def _grouped(table: MeasurementTable) -> dict[tuple[Any, ...], list[tuple[int | None, float]]]:
    """Of each series the calls in their order: whose time each is, and seconds."""
    rows = [row for row in table.rows() if _is_call(row)]
    if not rows:
        kinds = sorted({str(row["kind"]) for row in table.rows()})
        raise CalibrationError(
            f"expected times of single calls of collectives, with a column `iteration`; got means, or rows of kind "
            f"{', '.join(kinds) or 'none'}"
        )
    places: dict[str, set[bool]] = {}
    for row in rows:
        if row["in_place"] is not None:
            places.setdefault(row["source"], set()).add(bool(row["in_place"]))
    sources: dict[str, str] = {}
    together = {row["source"] for row in rows if row["process"] is None}
    found: dict[tuple[Any, ...], dict[Any, list[tuple[int | None, float]]]] = {}
    for number, row in enumerate(rows):
        source = row["source"]
        if row["in_place"] and len(places[source]) == 2:
            continue
        if source in together and row["process"] is not None:
            continue
        if not row["time_s"] > 0:
            raise CalibrationError(
                f"{source}, line {row['line']}: expected a time above 0; got {row['time_s']}"
            )
        least = _WAITING in row["format"]
        if least and row["section"]:
            # Each process has written a file of its own.
            source = sources.setdefault(row["section"], source)
        names = ("collective", "ranks", "nodes", "algorithm", "protocol", "bytes")
        key = (source, *(row[name] for name in names))
        # Tables may count calls anew, and a process has each once.
        table_of = row["section"] if least else row["table"]
        call = (table_of, row["iteration"]) if row["process"] is not None else number
        own = found.setdefault(key, {}).setdefault(call, [])
        own.append((row["process"], row["time_s"] if not least else -row["time_s"]))
    return {key: [_last(own) for own in calls.values()] for key, calls in found.items()}


def _last(times: list[tuple[int | None, float]]) -> tuple[int | None, float]:
    """The process that a call ended with, and its time."""
    process, time = max(times, key=lambda each: each[1])
    return process, abs(time)
