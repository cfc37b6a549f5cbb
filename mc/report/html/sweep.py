"""The report of a sweep: curves along a path, the front of what trades off, the best cells, and those that failed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mc.errors import InputError
from mc.report.html.honesty import at, plain_points
from mc.report.html.page import Details, Page, Picture, Section, Table
from mc.report.html.provenance import provenance
from mc.report.pictures.base import number_text
from mc.report.pictures.sweep import MOST_CURVES, RANKS, curves_of, doubling_lines, front_panel, sweep_panels
from mc.report.sweep import HEAVY, Objective, column_text, heading_of, ordered, pareto
from mc.sweep.store import check_part, parts_in, read_manifest
from mc.sweep.table import OK, UNIT

_SHOWN = 20
_MEAN, _TAIL, _TOKENS = "step_time_mean_s", "step_time_p99_s", "tokens_per_s"
_SAID = (
    "Every cell is a run, with what that assumes: ranks are independent given what they share, there are tiers and no "
    "routes, and no interval knows whether a machine is like its description.",
    "Cells met common random numbers unless the sweep asked for their own: differences between cells are better known than either.",
    "The best of many cells is best partly by luck where their intervals overlap; rank it again with more samples.",
)


@dataclass(frozen=True)
class SweepRecord:
    """A sweep as it was kept.

    Attributes:
        manifest: says what it is.
        table: a row for each cell that is there, without histograms.
        paths: columns that change.
    """

    manifest: Mapping[str, Any]
    table: pa.Table
    paths: tuple[str, ...]

    def unit(self, path: str) -> str:
        """Of a path's quantities; empty for plain numbers and words."""
        return ((self.table.schema.field(path).metadata or {}).get(UNIT.encode()) or b"").decode()

    def texts(self, row: Mapping[str, Any]) -> dict[str, str]:
        """What each path is in a row."""
        found = {}
        for path in self.paths:
            value = row[path]
            unit = self.unit(path)
            text = number_text(value) if isinstance(value, float) else str(value)
            found[path] = f"{text} {unit}" if unit else text
        return found


def read_sweep(folder: Path) -> SweepRecord:
    """Reads the folder of a sweep; parts that are not whole, or of another sweep, are left out.

    Raises:
        InputError: there is no sweep in it, or none of its cells.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise InputError(f"{folder}: expected the folder of a sweep; got no readable manifest.json in it")
    parts = parts_in(folder)
    good = [
        path
        for batch, path in parts.items()
        if check_part(path, batch, str(manifest["sweep_hash"])) is not None
    ]
    if not good:
        raise InputError(
            f"{folder}: expected cells of the sweep; got none: `tailstep sweep --resume` goes on with it"
        )
    tables = [pq.read_table(path) for path in good]
    table = pa.concat_tables(
        [each.drop_columns([name for name in HEAVY if name in each.column_names]) for each in tables]
    )
    table = table.sort_by("cell")
    names = table.column_names
    return SweepRecord(manifest, table, tuple(names[names.index("cell") + 1 : names.index("status")]))


def sweep_page(record: SweepRecord, origin: str = "") -> Page:
    """The page of a sweep."""
    manifest, table = record.manifest, record.table
    failed = table.filter(pa.array([each != OK for each in table.column("status").to_pylist()]))
    missing = int(manifest.get("cells", table.num_rows)) - table.num_rows
    samples = int(np.sum(table.column("samples").to_numpy()))
    facts = [
        ("cells", f"{table.num_rows:,}"),
        ("steps drawn", f"{samples:,}" if samples else "none: without noise"),
        ("failed", f"{failed.num_rows:,}"),
        ("missing", f"{missing:,}"),
        *((path, f"{points:,} points") for path, points in (manifest.get("axes") or {}).items()),
    ]
    sections = [*_curves(record), _front(record), _best(record)]
    if failed.num_rows:
        rows = [(str(row["cell"]), str(row["error"])) for row in failed.slice(0, _SHOWN).to_pylist()]
        sections.append(Section("Cells that failed", tables=[Table(("cell", "reason"), rows, words=True)]))
    sections.append(plain_points(_SAID))
    experiment = Details("The experiment, without the sweep", _plain(manifest.get("experiment")))
    block = Details("The sweep", _plain(manifest.get("sweep")))
    sections.append(provenance(manifest, experiment, block))
    description = str(at(manifest, "experiment", "description") or "").strip()
    return Page("sweep", str(manifest.get("name") or "sweep"), description, facts, sections, origin)


def _curves(record: SweepRecord) -> list[Section]:
    numbers = {
        path: len(set(record.table.column(path).to_pylist()))
        for path in record.paths
        if pa.types.is_floating(record.table.schema.field(path).type)
    }
    numbers = {path: count for path, count in numbers.items() if count > 1}
    if not numbers:
        return []
    path = RANKS if RANKS in numbers else max(numbers, key=lambda each: numbers[each])
    curves = curves_of(record.table, record.paths, path, record.texts)
    if not 0 < len(curves) <= MOST_CURVES:
        return []
    captions = (
        "Median of the step, and dashed its 99th percentile.",
        "Efficiency: what a chip computes that waits for nobody, over the step; dotted, what waiting for the slowest "
        "takes.",
        "Throughput of twice the chips, of 2; the dashed line is where doubling stops paying.",
    )
    panels = sweep_panels(path, curves, record.unit(path))
    pictures = [Picture(panel, caption) for panel, caption in zip(panels, captions, strict=False)]
    return [Section(f"Along {path}", text=doubling_lines(path, curves), pictures=pictures)]


def _front(record: SweepRecord) -> Section:
    """What trades off: chips against tokens/s where both are there, else the mean against the tail."""
    table = record.table
    many = len(set(table.column("ranks").drop_null().to_pylist())) > 1
    if many and table.column(_TOKENS).null_count < table.num_rows:
        objectives = (Objective("ranks"), Objective(_TOKENS, maximise=True))
    else:
        objectives = (Objective(_MEAN), Objective(_TAIL))
    front = table.take(pa.array(pareto(table, objectives)))
    names = tuple(heading_of(each.column) for each in objectives)
    text = f"{front.num_rows:,} of {table.num_rows:,} cells are beaten by none in both {names[0]} and {names[1]}."
    shown = Picture(
        front_panel(table, front, objectives),
        "Every cell, and the front of those that no other beats in both.",
    )
    return Section(
        "Pareto front",
        text=[text],
        pictures=[shown],
        tables=[_rows(record, front.slice(0, _SHOWN), objectives)],
    )


def _best(record: SweepRecord) -> Section:
    objective = Objective(_MEAN)
    best = record.table.take(pa.array(ordered(record.table, objective)[:_SHOWN]))
    return Section("Shortest mean step", tables=[_rows(record, best, (objective,))])


def _rows(record: SweepRecord, table: pa.Table, objectives: Sequence[Objective]) -> Table:
    columns = tuple(
        dict.fromkeys(
            (
                *(each.column for each in objectives),
                _MEAN,
                "step_time_p50_s",
                _TAIL,
                "efficiency",
                "straggler_share",
            )
        )
    )
    rows = []
    for row in table.to_pylist():
        values = record.texts(row)
        rows.append(
            (
                str(row["cell"]),
                *(values[path] for path in record.paths),
                *(column_text(name, row[name]) for name in columns),
            )
        )
    return Table(("cell", *record.paths, *map(heading_of, columns)), rows)


def _plain(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
