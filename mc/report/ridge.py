"""The report of `tailstep ridge`: ridge points and how they moved, or a plan's dimensions against their ridges."""

import math
from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mc.network_roofline import Load, Movement, Point, Ridge
from mc.report.times import duration
from mc.units import Dimension, format_quantity

# Of a tier's bytes, for a row in the table.
_LEAST = 1e-6


def ridges_json(found: Sequence[Ridge], moved: Sequence[Movement]) -> dict[str, Any]:
    """Ridge points and moves as plain data, SI units in the keys."""
    return {
        "ridges": [
            {
                "chip": each.chip,
                "year": each.year,
                "format": each.number_format,
                "wire": each.wire,
                "tier": each.tier,
                "link": each.link,
                "peak_flop_per_s": each.peak,
                "bandwidth_bytes_per_s": each.bandwidth,
                "flop_per_byte": each.per_byte,
                "flop_per_number": each.per_number,
                "over_own_format": each.over_own_format,
            }
            for each in found
        ],
        "movements": [
            {
                "from": each.before.chip,
                "to": each.after.chip,
                "formats": [each.before.number_format, each.after.number_format],
                "tier": each.before.tier,
                "factor": each.factor,
                "ln": {
                    "total": each.total,
                    "silicon": each.silicon,
                    "formats": each.formats,
                    "wires": each.wires,
                },
                "shares": each.shares,
            }
            for each in moved
        ],
    }


def ridges_table(found: Sequence[Ridge], moved: Sequence[Movement]) -> RenderableType:
    """The same for a terminal."""
    table = _table("chip", "format", "tier", "link")
    for name in ("year", "TFLOP/s", "GB/s", "FLOP/byte"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("wire", no_wrap=True)
    for name in ("FLOP/number", "over own format"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in found:
        table.add_row(
            each.chip,
            each.number_format,
            each.tier,
            each.link,
            str(each.year),
            f"{each.peak / 1e12:,.0f}",
            f"{each.bandwidth / 1e9:,.5g}",
            f"{each.per_byte:,.0f}",
            each.wire,
            f"{each.per_number:,.0f}",
            f"{each.over_own_format:g}x",
        )
    parts: list[RenderableType] = [
        Text("Ridge points: peak over bandwidth per direction", style="bold"),
        table,
    ]
    if moved:
        parts += [Text(), _movements(moved)]
    return Group(*parts)


def _movements(moved: Sequence[Movement]) -> RenderableType:
    table = _table("from", "to", "tier")
    for name in (
        "ridge",
        "one format",
        "narrower formats",
        "wires",
        "of the move: one format",
        "formats",
        "wires",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    for each in moved:
        one, other = (f"{at.chip} {at.number_format}" for at in (each.before, each.after))
        factors = (f"{_factor(term)}" for term in (each.silicon, each.formats, -each.wires))
        shares = (f"{100 * share + 0.0:.0f} %" for share in each.shares.values())
        table.add_row(one, other, each.before.tier, f"{each.factor:.3g}x", *factors, *shares)
    title = "How the ridge moved in the fastest format: factors that multiply, shares of its logarithm"
    return Group(Text(title, style="bold"), table)


def _factor(logarithm: float) -> str:
    return f"{math.exp(logarithm):.3g}x"


def load_json(name: str, found: Load) -> dict[str, Any]:
    """A plan's points as plain data, SI units in the keys."""
    return {
        "name": name,
        "points": [_point_json(each) for each in found.points],
        "tiers": [_point_json(each) for each in found.totals],
    }


def _point_json(point: Point) -> dict[str, Any]:
    return {
        "dimension": point.dimension,
        "tier": point.roof.name,
        "flop_per_rank": point.flop,
        "bytes_per_rank": point.bytes,
        "flop_per_byte": point.intensity,
        "ridge_flop_per_byte": point.roof.ridge,
        "over_ridge": point.factor,
        "bound": point.bound,
        "computing_s": point.computing,
        "sending_s": point.sending,
        "slack_s": point.slack,
        "attainable_flop_per_s": point.attainable,
    }


def load_table(name: str, found: Load) -> RenderableType:
    """The same for a terminal."""
    if not found.points:
        return Group(Text(name, style="bold"), Text("One rank alone sends nothing."))
    one = found.points[0]
    table = _table("tier", "", "bound")
    for heading in ("bytes of a rank", "FLOP/byte", "ridge", "over ridge", "sending", "slack"):
        table.add_column(heading, justify="right", no_wrap=True)
    for total in found.totals:
        rows = [
            each for each in found.points if each.roof == total.roof and each.bytes > _LEAST * total.bytes
        ]
        for each in rows + ([total] if len(rows) > 1 else []):
            table.add_row(*_row(each))
        table.add_section()
    computing = (
        f"A rank computes {format_quantity(one.flop, Dimension.COMPUTE, digits=3)} a step, {duration(one.computing)} at its "
        f"peak of {format_quantity(one.roof.peak, Dimension.COMPUTE_RATE, digits=4)}."
    )
    return Group(Text(name, style="bold"), Text(computing), Text(), table, Text(), Text(_verdict(found)))


def _row(point: Point) -> tuple[str, ...]:
    sign = "-" if point.slack < 0 else ""
    return (
        point.roof.name,
        point.dimension,
        point.bound,
        format_quantity(point.bytes, Dimension.SIZE, digits=3),
        f"{point.intensity:,.0f}",
        f"{point.roof.ridge:,.0f}",
        f"{point.factor:.3g}x",
        duration(point.sending),
        sign + duration(abs(point.slack)),
    )


def _verdict(found: Load) -> str:
    tightest = min(found.totals, key=lambda point: point.factor)
    where = f"`{tightest.roof.name}` is the tightest tier: "
    if tightest.bound == "fabric":
        return where + f"fabric-bound, {1 / tightest.factor:.3g} times as long as computing at the peak."
    return where + (
        f"compute-bound, its bytes take {100 / tightest.factor:.3g} % of the computing that could hide them."
    )


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table
