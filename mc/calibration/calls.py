"""From rows of single calls to series: times of one collective on one group of ranks at one size, call after call.

A call ends for all when its last message has come. Where a file has the time of all processes, that is the time; where it
has the times of each, as a timer around the call shows them, the greatest; and where they are of a kernel that also waits for
ranks that come late (NCCL Inspector), the least: it is that of the rank who came last and waited for nobody.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mc.calibration.curves import IS_CALL, parts
from mc.calibration.errors import CalibrationError
from mc.calibration.groups import chosen_from, group_of, placed, ranks_of
from mc.config import ClusterConfig
from mc.config.axes import count
from mc.config.hold_out import HoldOut
from mc.fabric import Ranks, build_cluster
from mc.logs import MeasurementTable

# Fewer calls have no 99 % quantile, nor a tail.
LEAST_CALLS = 20
# Whose times hold waiting for ranks that come late.
_WAITING = "inspector"
# Medians of runs, and calls of one run beyond a few, are never so far apart; units are.
_UNITS, _ODD, _FEW = 100.0, 300.0, 0.05


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
    return any(len(part) for part in parts(table, IS_CALL))


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
        ranks = ranks_of(ranks, where)
        group = group_of(cluster, ranks, nodes, where)
        names = chosen_from(cluster, collective, group, algorithm, algorithms, where)
        times = np.array(calls.times)
        held = np.zeros(len(times), bool)
        if rule is not None:
            held[:] = [
                rule.holds(ranks, size, place, nodes=nodes, file=source, process=process, curve=f"{key}")
                for place, process in enumerate(calls.processes)
            ]
        most = max(most, len(times))
        for mask, found in ((~held, fitted), (held, left)):
            if mask.sum() >= LEAST_CALLS:
                label = f"{collective}, {placed(ranks, nodes)}"
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
        usual = float(np.quantile(each.times, 0.1))
        if np.mean(each.times > _ODD * usual) > _FEW:
            raise CalibrationError(
                f"{each.source}, {each.label}: expected times of one collective that agree; calls of {each.size:.0f} bytes take "
                f"{usual:.3g} s, and more than {100 * _FEW:.0f} % of them {_ODD:.0f} times as long: are all in one unit?"
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


@dataclass
class _Calls:
    """Of one series, in their order: whose time each is (None for all), and seconds."""

    processes: list[int | None]
    times: "array[float]"
    places: dict[Any, int]

    def add(self, call: Any, process: int | None, time: float, *, least: bool) -> None:
        place = None if call is None else self.places.get(call)
        if place is None:
            if call is not None:
                self.places[call] = len(self.times)
            self.processes.append(process)
            self.times.append(time)
        elif (time < self.times[place]) == least:
            self.processes[place], self.times[place] = process, time


_COLUMNS = (
    *("source", "collective", "ranks", "nodes", "algorithm", "protocol", "bytes"),
    *("time_s", "line", "format", "section", "table", "iteration", "process", "in_place"),
)


def _grouped(table: MeasurementTable) -> dict[tuple[Any, ...], _Calls]:
    """The calls of each series."""
    places: dict[str, set[bool]] = {}
    together: set[str] = set()
    for part in parts(table, IS_CALL):
        names = ("source", "in_place", "process")
        for row in part.select(names).group_by(list(names)).aggregate([]).to_pylist():
            own = places.setdefault(row["source"], set())
            if row["in_place"] is not None:
                own.add(row["in_place"])
            if row["process"] is None:
                together.add(row["source"])
    if not places:
        kinds = sorted({str(kind) for kind in table.data.column("kind").unique().to_pylist()})
        raise CalibrationError(
            f"expected times of single calls of collectives, with a column `iteration`; got means, or rows of kind "
            f"{', '.join(kinds) or 'none'}"
        )
    sources: dict[str, str] = {}
    found: dict[tuple[Any, ...], _Calls] = {}
    for part in parts(table, IS_CALL):
        for row in part.select(_COLUMNS).to_pylist():
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
            key = (source, *(row[name] for name in _COLUMNS[1:7]))
            # Tables may count calls anew, and a process has each once.
            of = row["section"] if least else row["table"]
            call = (of, row["iteration"]) if row["process"] is not None else None
            own = found.setdefault(key, _Calls([], array("d"), {}))
            own.add(call, row["process"], row["time_s"], least=least)
    return found
