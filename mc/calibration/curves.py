"""From rows of measurements to curves: times of one collective on one group of ranks, over sizes.

A row says how many ranks on how many nodes took part (`groups.py`). What contradicts the cluster, or itself, is refused and not
fitted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from numpy.typing import NDArray

from mc.calibration.errors import CalibrationError
from mc.calibration.groups import chosen_from, group_of, placed, ranks_of
from mc.config import ClusterConfig
from mc.config.hold_out import HoldOut
from mc.fabric import Cluster, Ranks, build_cluster
from mc.logs import MeasurementTable

# Fewer sizes do not make a curve, and times at one size that differ by more than this no measurement.
_LEAST_SIZES, _CONTRADICTION = 3, 5.0
# A larger message never takes so much less time, but once by chance; units do.
_UNITS, _MOST_ROWS, _PART = 100.0, 200_000, 1 << 14
_COLLECTIVE = (
    (ds.field("kind") == "collective")
    & ds.field("collective").is_valid()
    & (ds.field("bytes") > 0)
    & ds.field("time_s").is_valid()
    & ds.field("conflict").is_null()
)
_IS_MEAN = _COLLECTIVE & ds.field("iteration").is_null() & ds.field("process").is_null()
IS_CALL = _COLLECTIVE & ds.field("iteration").is_valid()


@dataclass(frozen=True)
class Curve:
    """Measured times.

    Attributes:
        collective: which.
        ranks: how many consecutive ranks of the cluster, or their axes.
        algorithms: what the library chose from.
        protocol: that it was told to use, or `auto`.
        sizes: bytes, rising, each once.
        times: seconds; the median where a size was measured more than once.
        label: for people.
        sources: files.
    """

    collective: str
    ranks: Ranks
    algorithms: tuple[str, ...]
    protocol: str
    sizes: NDArray[np.float64]
    times: NDArray[np.float64]
    label: str
    sources: tuple[str, ...] = ()


def has_curves(table: MeasurementTable) -> bool:
    """Whether a table has mean times of collectives."""
    return any(len(part) for part in parts(table, _IS_MEAN))


def parts(table: MeasurementTable, which: ds.Expression) -> Iterator[pa.Table]:
    """The rows of a table that meet a condition, some thousands at a time: files may have millions."""
    for batch in table.data.to_batches(max_chunksize=_PART):
        yield pa.Table.from_batches([batch]).filter(which)


def curves_of(
    table: MeasurementTable, config: ClusterConfig, algorithms: Sequence[str] | None = None
) -> list[Curve]:
    """The curves in a table that a cluster can have.

    Out of place where a file has both: that is what collectives in training do.

    Args:
        table: what the importers found.
        config: the cluster.
        algorithms: what the library chose from, where rows do not say; NCCL's by default.

    Raises:
        CalibrationError: there is nothing to fit, or rows contradict the cluster or each other.
    """
    cluster = build_cluster(config)
    found = [_curve(cluster, key, each, algorithms) for key, each in _groups(table).items()]
    curves = [each for each in found if len(each.sizes) >= _LEAST_SIZES]
    if not curves:
        most = max(len(each.sizes) for each in found)
        raise CalibrationError(
            f"expected a curve of {_LEAST_SIZES} sizes or more; got {most}: a single point fixes no latency and bandwidth"
        )
    return curves


def split_curves(
    table: MeasurementTable, config: ClusterConfig, rule: HoldOut, algorithms: Sequence[str] | None = None
) -> tuple[list[Curve], list[Curve]]:
    """Curves to fit, and curves to be scored on: of one group of ranks there may be both.

    Args:
        table: what the importers found.
        config: the cluster.
        rule: which rows are held out.
        algorithms: as for `curves_of`.

    Raises:
        CalibrationError: as `curves_of` does; or the rule leaves nothing to fit, or holds nothing out.
    """
    # All rows first, for what contradicts itself.
    curves = curves_of(table, config, algorithms)
    if rule.field == "none":
        return curves, []
    cluster, fitted, left = build_cluster(config), list[Curve](), list[Curve]()
    for key, rows in _groups(table).items():
        places = {size: place for place, size in enumerate(sorted({row["bytes"] for row in rows}))}
        if len(places) < _LEAST_SIZES:
            continue
        parts: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
        for row in rows:
            place = places[row["bytes"]]
            ranks, nodes, file = row["ranks"], row["nodes"], row["source"]
            parts[rule.holds(ranks, row["bytes"], place, nodes=nodes, file=file, curve=f"{key[:3]}")].append(
                row
            )
        if parts[0]:
            fitted.append(_curve(cluster, key, parts[0], algorithms))
        if parts[1]:
            own = _curve(cluster, key, parts[1], algorithms)
            left.append(replace(own, label=f"{own.label}, held out"))
    if not left or not fitted:
        what = "all of them" if left else "none"
        raise CalibrationError(
            f"hold_out: expected a rule that some rows meet and some do not; {what} do ({_ranges(curves)})"
        )
    few = [each for each in fitted if len(each.sizes) >= _LEAST_SIZES]
    if not few:
        most = max(len(each.sizes) for each in fitted)
        raise CalibrationError(
            f"hold_out: expected a rule that leaves a curve of {_LEAST_SIZES} sizes or more to be fitted; got {most}"
        )
    return few, left


def _ranges(curves: Sequence[Curve]) -> str:
    groups = "; ".join(dict.fromkeys(curve.label for curve in curves))
    sizes = np.concatenate([curve.sizes for curve in curves])
    files = ", ".join(dict.fromkeys(source for curve in curves for source in curve.sources))
    return f"{groups}; {sizes.min():.0f} to {sizes.max():.0f} bytes; {files}"


def _groups(table: MeasurementTable) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Rows of one collective, group of ranks, algorithm and protocol."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    rows: list[dict[str, Any]] = []
    for part in parts(table, _IS_MEAN):
        rows += part.to_pylist()
        if len(rows) > _MOST_ROWS:
            raise CalibrationError(f"expected at most {_MOST_ROWS:,} mean times; got more")
    if not rows:
        kinds = sorted({str(kind) for kind in table.data.column("kind").unique().to_pylist()})
        what = f"rows of kind {', '.join(kinds)}" if kinds else "no rows"
        raise CalibrationError(f"expected mean times of collectives over sizes; got {what}")
    both = {bool(row["in_place"]) for row in rows if row["in_place"] is not None} == {True, False}
    for row in rows:
        if both and row["in_place"]:
            continue
        key = (row["collective"], row["ranks"], row["nodes"], row["algorithm"], row["protocol"])
        groups.setdefault(key, []).append(row)
    return groups


def _curve(
    cluster: Cluster, key: tuple[Any, ...], rows: list[dict[str, Any]], algorithms: Sequence[str] | None
) -> Curve:
    collective, ranks, nodes, algorithm, protocol = key
    where = f"{rows[0]['source']}, line {rows[0]['line']}"
    ranks = ranks_of(ranks, where)
    group = group_of(cluster, ranks, nodes, where)
    sizes, times = _medians(rows)
    if len(times) >= _LEAST_SIZES and np.ptp(times) == 0 and sizes[-1] >= 16 * sizes[0]:
        raise CalibrationError(
            f"{where}: expected times that grow with the size; got {times[0]:.3g} s for all {len(times)} sizes"
        )
    later = np.minimum.accumulate(times[::-1])[::-1]
    odd = np.flatnonzero(times > _UNITS * later)
    if len(odd) > 1:
        raise CalibrationError(
            f"{where}: expected times that grow with the size; got {times[odd[0]]:.3g} s for {sizes[odd[0]]:.0f} bytes, and "
            f"{later[odd[0]]:.3g} s for more: are all in one unit?"
        )
    names = chosen_from(cluster, collective, group, algorithm, algorithms, where)
    forced = "".join(f", {each}" for each in (algorithm, protocol) if each is not None)
    sources = tuple(dict.fromkeys(row["source"] for row in rows))
    return Curve(
        collective,
        group,
        names,
        protocol or "auto",
        sizes,
        times,
        f"{collective}, {placed(ranks, nodes)}{forced}",
        sources,
    )


def _medians(rows: list[dict[str, Any]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sizes and their median times; objects to times at one size that cannot be of one thing."""
    at: dict[float, list[dict[str, Any]]] = {}
    for row in rows:
        if not row["time_s"] > 0:
            raise CalibrationError(
                f"{row['source']}, line {row['line']}: expected a time above 0; got {row['time_s']}"
            )
        at.setdefault(float(row["bytes"]), []).append(row)
    sizes = np.array(sorted(at))
    times = []
    for size in sizes:
        own = sorted(at[size], key=lambda row: row["time_s"])
        least, most = own[0], own[-1]
        if most["time_s"] > _CONTRADICTION * least["time_s"]:
            raise CalibrationError(
                f"{most['source']}, line {most['line']}: expected times at {size:.0f} bytes that agree; got "
                f"{most['time_s']:.3g} s and, in {least['source']}, line {least['line']}, {least['time_s']:.3g} s: fit "
                "these files apart, or leave one out"
            )
        times.append(float(np.median([row["time_s"] for row in own])))
    return sizes, np.array(times)
