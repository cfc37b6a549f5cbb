"""What an import understood: for people file by file and table by table, for programs JSON."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from mc.errors import printable
from mc.logs import Imported, Prior, UnderstoodFile, UnderstoodTable
from mc.logs.table import LEAST_SIZES
from mc.units import Dimension, format_quantity

# What an operation's heading already says.
_IN_HEADING = ("collective", "ranks", "nodes")
_PRIORS_SHOWN = 12


def imported_json(found: Imported) -> dict[str, Any]:
    """What was understood as plain data."""
    return {
        "rows": len(found.table),
        "files": [
            {
                **asdict(file),
                "rows": file.rows,
                "conflicts": file.conflicts,
                "skipped": {each.reason: asdict(each) for each in file.skipped},
            }
            for file in found.files
        ],
        "priors": [asdict(prior) for prior in found.priors],
        "choices": [asdict(choice) for choice in found.choices],
    }


def imported_text(found: Imported) -> str:
    """What was understood, in lines."""
    lines: list[str] = []
    for file in found.files:
        lines += _file_lines(file)
    lines += _prior_lines(found.priors)
    if found.choices:
        lines.append(f"{_count(len(found.choices), 'choice')} of NCCL's tuner (`--json` lists them)")
    most = found.table.most_sizes()
    if most is not None and most < LEAST_SIZES:
        lines.append(
            f"note: too few sizes for `tailstep calibrate`, which needs {LEAST_SIZES} of one collective on one group of ranks; "
            f"here are {most} at most"
        )
    return "\n".join(map(printable, lines))


def _file_lines(file: UnderstoodFile) -> list[str]:
    wrapping = f" ({'; '.join(file.wrapping)})" if file.wrapping else ""
    lines = [
        f"{file.source}: {file.format}{wrapping}, {_count(file.lines, 'line')}, {_count(file.rows, 'row')}"
    ]
    for table in file.tables:
        lines += _table_lines(table)
    for each in file.skipped:
        where = f", line {each.lines[0]}" if each.lines else ""
        example = f": {each.example}" if each.example else ""
        lines.append(f"  skipped {each.count:,} {each.reason}{where}{example}")
    lines += [f"  {remark}" for remark in file.remarks]
    return lines


def _table_lines(table: UnderstoodTable) -> list[str]:
    lines = [f"  table {table.index}: {', '.join(_heading(table))}"]
    for name in _IN_HEADING:
        if name in table.inferred:
            lines.append(f"    {name}: {table.facts[name]}, {table.inferred[name]}")
    for name, value in table.facts.items():
        if name not in _IN_HEADING:
            lines.append(f"    {name}: {value}, {table.inferred[name]}")
    if table.conflicts:
        rows = _count(table.conflicts, "row")
        lines.append(
            f"    {rows} left out or flagged, as they contradict themselves: {'; '.join(table.conflict_examples)}"
        )
    return lines + [f"    note: {remark}" for remark in table.remarks]


def _heading(table: UnderstoodTable) -> list[str]:
    facts: Mapping[str, Any] = table.facts
    what = facts.get("collective") or table.operation or table.kind
    if table.operation and what != table.operation:
        what = f"{what} ({table.operation})"
    parts = [str(what)]
    ranks, nodes = (_span(table, name) for name in ("ranks", "nodes"))
    if ranks is not None:
        parts.append(f"{ranks} on {nodes}" if nodes is not None else ranks)
    if table.smallest is not None and table.largest is not None:
        ends = [_size(each) for each in dict.fromkeys((table.smallest, table.largest))]
        parts.append(" to ".join(ends))
    return [*parts, _count(table.rows, "row")]


def _span(table: UnderstoodTable, name: str) -> str | None:
    """How many ranks or nodes."""
    if name in table.facts:
        return _count(table.facts[name], name[:-1])
    least, most = table.spans.get(name, (0, 0))
    if not most:
        return None
    return _count(most, name[:-1]) if least == most else f"{least:,} to {most:,} {name}"


def _prior_lines(priors: tuple[Prior, ...]) -> list[str]:
    if not priors:
        return []
    lines = [f"{_count(len(priors), 'prior')} of NCCL's tuning: latency and bandwidth of each way"]
    for prior in priors[:_PRIORS_SHOWN]:
        where = f" of {prior.ranks} ranks" if prior.ranks is not None else ""
        latency = format_quantity(prior.latency_s, Dimension.TIME, digits=3)
        bandwidth = format_quantity(prior.bandwidth_Bps, Dimension.BANDWIDTH, digits=4)
        lines.append(
            f"  {prior.collective}{where}, {prior.algorithm} {prior.protocol}: {latency}, {bandwidth}"
        )
    if len(priors) > _PRIORS_SHOWN:
        lines.append(f"  and {len(priors) - _PRIORS_SHOWN} more (`--json`)")
    return lines


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _size(size: int) -> str:
    exact = format_quantity(size, Dimension.SIZE)
    return exact if len(exact) <= 8 else format_quantity(size, Dimension.SIZE, digits=4)
