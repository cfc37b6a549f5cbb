"""The report of `tailstep scale`: a row for each size, and where doubling stops paying."""

import itertools
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mc.estimate import Estimate
from mc.report.times import duration

if TYPE_CHECKING:
    from mc.experiment.scale import ScalePoint, ScaleResult


def scale_json(found: "ScaleResult") -> dict[str, Any]:
    """The result as plain data, SI units in the keys; `null` for a bound that is not there."""
    stop = found.stop
    return {
        "name": found.name,
        "cluster": found.cluster,
        "model": found.model,
        "mode": found.mode,
        "samples": found.samples,
        "worth": found.worth,
        "points": [_point_json(point) for point in found.points],
        "left_out": [{"chips": chips, "reason": reason} for chips, reason in found.left_out],
        "stops_paying": None
        if stop is None
        else {
            "from": found.points[stop - 1].chips,
            "to": found.points[stop].chips,
            "doubling": _estimate_json(found.points[stop].doubling),
        },
        "doublings_with_failures": list(found.with_failures) or None,
    }


def _point_json(point: "ScalePoint") -> dict[str, Any]:
    times = point.times
    return {
        "chips": point.chips,
        "dp": point.replicas,
        "micro_batches": point.micro_batches,
        "global_batch": point.global_batch,
        "outermost_fan_out": point.enlarged,
        "step_time_s": {
            "mean": _estimate_json(times.mean),
            "p50": _estimate_json(times.p50),
            "p99": _estimate_json(times.p99),
        },
        "work": point.work,
        "tokens_per_s": point.tokens_per_s,
        "mfu": point.mfu,
        "efficiency": point.efficiency,
        "straggler_share": _estimate_json(times.straggler),
        "exposed_s": times.exposed,
        "doubling": _estimate_json(point.doubling),
        "goodput": point.goodput,
        "memory_bytes": point.memory,
        "memory_problem": point.problem,
    }


def _estimate_json(found: Estimate | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    return {
        name: number if math.isfinite(number) else None
        for name, number in (("value", found.value), ("low", found.low), ("high", found.high))
    }


def scale_table(found: "ScaleResult") -> RenderableType:
    """The result for a terminal."""
    lines = [
        Text(found.name, style="bold"),
        Text(f"{found.model} on {found.cluster}: {_kept(found)}"),
        Text(),
    ]
    notes = [*_notes(found)]
    verdicts = [Text(each, style="bold") for each in (_verdict(found), _with_failures(found)) if each]
    return Group(*lines, _rows(found), Text(), *verdicts, *notes)


def _kept(found: "ScaleResult") -> str:
    first = found.points[0]
    how = f", {found.samples:,} steps of each size" if found.samples else ", without noise"
    if first.micro_batches is None:
        kept = "what a rank computes" if found.mode == "weak" else "what all ranks compute together"
    elif found.mode == "weak":
        kept = f"the {first.micro_batches:,} micro-batches of a replica"
    else:
        kept = f"the global batch of {first.global_batch:,} sequences"
    return f"{found.mode} scaling keeps {kept}{how}"


def _rows(found: "ScaleResult") -> Table:
    points = found.points
    is_cut = points[0].replicas is not None
    columns: list[tuple[str, list[str]]] = [("chips", [f"{each.chips:,}" for each in points])]
    if is_cut:
        columns.append(("dp", [f"{each.replicas:,}" for each in points]))
        kept, name = ("global_batch", "batch") if found.mode == "weak" else ("micro_batches", "micro-batches")
        columns.append((name, [f"{getattr(each, kept):,}" for each in points]))
    columns.append(("step", [duration(each.times.mean.value) for each in points]))
    if found.samples:
        columns.append(("p50", [_duration(each.times.p50) for each in points]))
        columns.append(("p99", [_duration(each.times.p99) for each in points]))
    if is_cut:
        columns.append(("tokens/s", [_count(each.tokens_per_s) for each in points]))
    else:
        throughput = [each.work / each.times.mean.value for each in points]
        columns.append(("throughput", [f"{_count(each / throughput[0])}x" for each in throughput]))
    if any(each.mfu is not None for each in points):
        columns.append(("MFU", [_percent(each.mfu) for each in points]))
    columns.append(("efficiency", [_percent(each.efficiency) for each in points]))
    if found.samples:
        stragglers = [None if each.times.straggler is None else each.times.straggler.value for each in points]
        columns.append(("stragglers", [_percent(share) for share in stragglers]))
    columns.append(("exposed", [_percent(each.times.exposed / each.times.mean.value) for each in points]))
    if any(each.goodput is not None for each in points):
        columns.append(("goodput", [_percent(each.goodput) for each in points]))
    if is_cut:
        columns.append(("memory", [_memory(each) for each in points]))
    doubled = ["" if each.doubling is None else f"{each.doubling.value:.3f}x" for each in points]
    columns.append(("a doubling brings", doubled))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name, cells in columns:
        width = max(len(name), *map(len, cells))
        table.add_column(name, justify="right", no_wrap=True, min_width=width)
    for row in zip(*(cells for _, cells in columns), strict=True):
        table.add_row(*row)
    return table


def _verdict(found: "ScaleResult") -> str:
    if len(found.points) < 2:
        return "One size alone says nothing of scaling."
    stop, points = found.stop, found.points
    if stop is None:
        least = min(each.doubling.value for each in points if each.doubling is not None)
        gaps = any(after.chips != 2 * before.chips for before, after in itertools.pairwise(points))
        mean = " on average" if gaps else ""
        return (
            f"Up to {points[-1].chips:,} chips every doubling brings {found.worth:g}x or more{mean}, the least "
            f"{least:.3f}x."
        )
    before, after = points[stop - 1], points[stop]
    doubling = after.doubling
    assert doubling is not None
    brings = f"{_next(before, after)} {doubling.value:.3f}x, less than {found.worth:g}x"
    text = f"Doubling stops paying at {before.chips:,} chips: {brings}"
    if doubling.high < found.worth:
        return f"{text}."
    high = f"{doubling.high:.3f}x" if math.isfinite(doubling.high) else "anything"
    return f"{text}; with so few samples it may be {doubling.low:.3f}x to {high}."


def _next(before: "ScalePoint", after: "ScalePoint") -> str:
    if after.chips == 2 * before.chips:
        return "the next brings"
    return f"on the way to {after.chips:,} one brings on average"


def _with_failures(found: "ScaleResult") -> str:
    """The verdict on the throughput of days, of which failures take a part."""
    doublings = found.with_failures
    if not doublings:
        return ""
    for (point, after), brought in zip(itertools.pairwise(found.points), doublings, strict=True):
        if brought < found.worth:
            part = f"of the time {_percent(point.goodput)} goes forward, then {_percent(after.goodput)}"
            brings = f"{_next(point, after)} {brought:.3f}x, since {part}"
            return f"With failures doubling stops paying at {point.chips:,} chips: {brings}."
    return (
        f"With failures every doubling brings {found.worth:g}x or more, too, the least {min(doublings):.3f}x."
    )


def _notes(found: "ScaleResult") -> Iterator[Text]:
    points = found.points
    larger = [(each.chips, each.enlarged) for each in points if each.enlarged is not None]
    if larger:
        (first, least), (last, most) = larger[0], larger[-1]
        units = f"{least:,} units" if least == most else f"{least:,} to {most:,} units"
        sizes = f"{first:,} chips" if first == last else f"{first:,} to {last:,} chips"
        yield Text(
            f"The cluster is too small for {sizes}: its outermost tier, `{found.outermost}`, was given {units} "
            f"instead of {found.units:,}."
        )
    if any(each.problem is not None for each in points):
        yield Text(
            "* does not fit into a chip's memory and could not run; `tailstep explain` says what would help"
        )
    # Larger and larger sizes have the same reason, with other numbers.
    for _, group in itertools.groupby(
        found.left_out, key=lambda each: re.sub(r"[0-9][0-9.,]*", "#", each[1])
    ):
        (chips, reason), *others = group
        alike = all(each == reason for _, each in others)
        likewise = ", ".join(f"{each:,}" for each, _ in others)
        sizes = f"{chips:,}, {likewise}" if others and alike else f"{chips:,}"
        rest = "" if alike else f"; {likewise} likewise"
        yield Text(f"left out {sizes}: {reason}{rest}")


def _memory(point: "ScalePoint") -> str:
    if point.memory is None:
        return ""
    return f"{point.memory / 1e9:.1f} GB{' ' if point.problem is None else '*'}"


def _duration(found: Estimate | None) -> str:
    return "" if found is None else duration(found.value)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _count(number: float | None) -> str:
    if number is None:
        return ""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
