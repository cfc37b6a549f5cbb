"""From files to one table: each is recognised by its content, read, and reported on."""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mc.logs.errors import LogError
from mc.logs.formats import FORMATS, Found, recognise
from mc.logs.hints import Hints
from mc.logs.nccl_tuning import Prior
from mc.logs.sink import Sink
from mc.logs.source import Source, open_source
from mc.logs.table import MeasurementTable, TableBuilder, is_table, read_table
from mc.logs.tuner import Choice
from mc.logs.understood import UnderstoodFile, UnderstoodTable

# What the report calls a table that an import has written.
IMPORTED = "tailstep"
# `0,127` among whatever is between columns.
_DECIMAL_COMMA = re.compile(r"(?<![\d.])\d+,\d+(?![\d.])")


@dataclass(frozen=True)
class Imported:
    """What several files hold.

    Attributes:
        table: the measurements of all of them.
        priors: what NCCL itself expects, where a log says so.
        choices: what tables of NCCL's tuner plugin ask for.
        files: what was understood of each.
    """

    table: MeasurementTable
    priors: tuple[Prior, ...]
    choices: tuple[Choice, ...]
    files: tuple[UnderstoodFile, ...]


def read_logs(
    paths: Iterable[str | os.PathLike[str]],
    hints: Hints | None = None,
    *,
    format: str | None = None,
    advance: Callable[[int], None] | None = None,
    most: int | None = None,
) -> Imported:
    """Reads files of measurements.

    Args:
        paths: the files; a table that an import has written is taken as it is.
        hints: what is known of all of them from outside.
        format: a name of `FORMATS`; None recognises each file by its content.
        advance: is told how many more bytes have been read.
        most: rows that all files together may have; None for any number.

    Raises:
        LogError: files cannot be used; the text says why, in a line for each.
    """
    hints = hints or Hints()
    builder, files = TableBuilder(most), list[UnderstoodFile]()
    priors, choices = list[Prior](), list[Choice]()
    if format is not None and format not in FORMATS:
        raise LogError(f"unknown format `{format}`; expected one of {', '.join(FORMATS)}")
    problems: list[str] = []
    for path in paths:
        try:
            if format is None and is_table(path):
                files.append(_imported(path, builder))
                continue
            source = open_source(path, advance)
            sink = Sink(source, hints, builder, format or recognise(source))
            found = _read(source, sink)
        except LogError as error:
            # All that is wrong is said at once.
            problems.append(str(error))
            continue
        priors.extend(found.priors)
        choices.extend(found.choices)
        files.append(sink.finish())
    if problems:
        raise LogError(*problems)
    return Imported(builder.finish(), tuple(priors), tuple(choices), tuple(files))


def _imported(path: str | os.PathLike[str], builder: TableBuilder) -> UnderstoodFile:
    """Takes in a table that an import has written."""
    table = read_table(path)
    if not len(table):
        raise LogError(f"{os.fspath(path)}: expected measurements; got a table without rows")
    builder.extend(table)
    files = len(set(table.column("source")))
    said = f"{len(table):,} rows of {files} file{'' if files == 1 else 's'}, imported before"
    kinds = dict.fromkeys(table.column("kind"))
    tables = tuple(_summary(index, kind, table.where(kind=kind)) for index, kind in enumerate(kinds, 1))
    return UnderstoodFile(os.fspath(path), IMPORTED, (), len(table), tables, (), (said,), {})


def _summary(index: int, kind: str, table: MeasurementTable) -> UnderstoodTable:
    """The rows of one kind of a table that was imported before."""
    spans: dict[str, tuple[int, int]] = {}
    for name in ("bytes", "ranks", "nodes"):
        known = [value for value in table.data.column(name).to_pylist() if value is not None]
        if known:
            spans[name] = min(known), max(known)
    smallest, largest = spans.pop("bytes", (None, None))
    conflicts = len(table) - table.data.column("conflict").null_count
    return UnderstoodTable(
        index, None, None, kind, "", {}, {}, len(table), smallest, largest, spans, conflicts, (), ()
    )


def _read(source: Source, sink: Sink) -> Found:
    """Reads a file; raises LogError where nothing in it can be used."""
    try:
        found = FORMATS[sink.format].read(source, sink)
    except RecursionError:
        # JSON that is nested without end.
        raise LogError(f"{source.name}: expected measurements; got data nested too deeply") from None
    understood = sink.finish()
    if not understood.rows and not found.priors and not found.choices:
        raise LogError(_nothing(understood))
    return found


def _nothing(file: UnderstoodFile) -> str:
    """Why a file that was recognised gave no row."""
    conflicts = [text for table in file.tables for text in table.conflict_examples]
    if conflicts:
        return (
            f"{file.source}: expected measurements that agree with themselves; every row contradicts itself "
            f"({file.conflicts} rows, such as {conflicts[0]})"
            + "".join(f"; {remark}" for table in file.tables for remark in table.remarks if "units" in remark)
            + "; `--keep-conflicts` reads them all the same"
        )
    comma = any(
        "no number" in each.reason or "columns" in each.reason
        for each in file.skipped
        if _DECIMAL_COMMA.search(each.example)
    )
    reasons = "; ".join(
        f"{each.count:,} {each.reason}" + (f" (line {each.lines[0]}: {each.example!r})" if each.lines else "")
        for each in file.skipped[:4]
    )
    return (
        f"{file.source}: expected measurements as {file.format} prints them; got no row that can be used"
        + (f": {reasons}" if reasons else "")
        + (": numbers are written with a point, not a comma" if comma else "")
    )
