"""Where readers put what they find: rows into the table, and everything else into the report.

A reader opens a draft for each table of its file, adds rows to it, says what holds for all of them and how it
knows, and closes it. The draft puts what the user said before what was inferred, leaves out rows that
contradict themselves unless they are asked for, and computes the bandwidths of all formats alike.
"""

import math
import os
import re
from collections.abc import Mapping
from typing import Any

from mc.config.bus_bandwidth import bus_factor
from mc.logs.errors import LogError
from mc.logs.hints import Hints
from mc.logs.names import collective_in
from mc.logs.source import Source
from mc.logs.table import TableBuilder
from mc.logs.understood import EXAMPLES, Skipped, UnderstoodFile, UnderstoodTable

_LONGEST = 60
_NOTE = re.compile(r"^## (?P<key>[a-z_]+): (?P<value>.*)$")
# What fits into the columns; more cannot have been measured.
_LIMITS = {
    **dict.fromkeys(("ranks", "nodes", "channels", "process"), 2**31),
    **dict.fromkeys(("bytes", "iteration", "iterations", "wrong"), 2**63),
}
GIVEN = "given by the user"


class Sink:
    """Collects what is understood of one file."""

    def __init__(self, source: Source, hints: Hints, builder: TableBuilder, format: str):
        """Args: source and hints as given; builder takes the rows; format is the reader's name."""
        self.source = source
        self.hints = hints
        self.format = format
        self.lines = 0
        self.tables: list[UnderstoodTable] = []
        self.remarks: list[str] = []
        self.how: list[str] = []
        self.notes: dict[str, str] = {}
        self._builder = builder
        self._count = 0
        self._skipped: dict[str, tuple[list[int], int, str]] = {}

    def skip(self, reason: str, line: int | None = None, text: str = "") -> None:
        """Passes over a line."""
        lines, count, example = self._skipped.get(reason, ([], 0, text.strip()[:_LONGEST]))
        if line is not None and len(lines) < EXAMPLES:
            lines.append(line)
        self._skipped[reason] = (lines, count + 1, example)

    def remark(self, text: str) -> None:
        """What concerns the whole file; repeats are dropped."""
        if text not in self.remarks:
            self.remarks.append(text)

    def draft(self, kind: str, operation: str = "", section: str = "") -> "Draft":
        """Opens a table."""
        return Draft(self, kind, operation, section)

    def note(self, line: str) -> bool:
        """Takes in a line `## key: value` that somebody wrote above a log; whether it was one."""
        match = _NOTE.match(line)
        if match is not None:
            self.notes[match["key"]] = match["value"].strip()
        return match is not None

    def next_table(self) -> int:
        """The number of another table."""
        self._count += 1
        return self._count

    def put(self, row: Mapping[str, Any]) -> None:
        """Keeps a row."""
        self._builder.append(row)

    def fail(self, message: str, line: int | None = None) -> LogError:
        """An error about the file, or about a line of it."""
        return LogError(f"{self.source.name}:{'' if line is None else f'{line}:'} {message}")

    def finish(self) -> UnderstoodFile:
        """What was understood."""
        skipped = [
            Skipped(reason, count, tuple(lines), example)
            for reason, (lines, count, example) in self._skipped.items()
        ]
        skipped.sort(key=lambda each: -each.count)
        self.tables.sort(key=lambda table: table.index)
        return UnderstoodFile(
            self.source.name,
            self.format,
            (*self.source.wrapping, *self.how),
            self.lines,
            tuple(self.tables),
            tuple(skipped),
            tuple(self.remarks),
            dict(self.notes),
        )


class Draft:
    """A table that is being read."""

    # So many rows wait for facts that only the end of a table tells.
    MOST = 1 << 15

    def __init__(self, sink: Sink, kind: str, operation: str, section: str):
        """Args: sink takes the rows; the rest describes the table."""
        self.kind = kind
        self.operation = operation
        self.section = section
        self.facts: dict[str, Any] = {}
        self.inferred: dict[str, str] = {}
        self.remarks: list[str] = []
        self.waiting: list[dict[str, Any]] = []
        self._sink = sink
        self._index = 0
        self._rows = self._conflicts = 0
        self._examples: list[str] = []
        self._spans: dict[str, tuple[int, int]] = {}
        self._times: set[float] = set()
        hints = sink.hints
        given = {
            "collective": hints.collective if kind == "collective" else None,
            "ranks": hints.ranks,
            "nodes": hints.nodes,
            "algorithm": hints.algorithm,
            "protocol": hints.protocol,
            "device": hints.device,
        }
        self._given = {name: value for name, value in given.items() if value is not None}
        for name, value in self._given.items():
            self.know(name, value, GIVEN)

    def know(self, name: str, value: Any, how: str) -> None:
        """States what holds for all rows, unless it is known already; the first who knows is right."""
        if name in _LIMITS and value is not None and not 0 < value < _LIMITS[name]:
            self.remark(f"{name} {value} {how} cannot be")
            return
        if value is not None and name not in self.facts:
            self.facts[name] = value
            self.inferred[name] = how

    def know_notes(self) -> None:
        """States what the notes above the log say of ranks, nodes and device."""
        notes = self._sink.notes
        for name in ("ranks", "nodes"):
            self.know(name, _whole(notes.get(name)), f"from the note `{name}: {notes.get(name)}`")
        self.know("device", notes.get("gpu"), "from the note `gpu`")

    def remark(self, text: str) -> None:
        """What to know before using this table; repeats are dropped."""
        if text not in self.remarks:
            self.remarks.append(text)

    def add(self, row: dict[str, Any]) -> None:
        """A row; its own columns go before the facts of the table."""
        time = row.get("time_s")
        if time is not None and not 0 < time < math.inf:
            self._sink.skip("rows whose time is zero or beyond any measurement", row.get("line"))
        elif any(row.get(name) is not None and row[name] >= most for name, most in _LIMITS.items()):
            self._sink.skip("rows with a number beyond any measurement", row.get("line"))
        else:
            self.waiting.append(row)

    @property
    def is_empty(self) -> bool:
        """Whether no row has come."""
        return not self.waiting and not self._rows and not self._conflicts

    def flush(self) -> None:
        """Hands on the rows that wait, with what is known so far."""
        sink, facts = self._sink, self.facts
        if not self._index:
            self._index = sink.next_table()
        if sink.hints.keep_conflicts:
            kept, left_out = self.waiting, [row for row in self.waiting if row.get("conflict")]
        else:
            kept = [row for row in self.waiting if not row.get("conflict")]
            left_out = [row for row in self.waiting if row.get("conflict")]
        for row in left_out:
            self._conflicts += 1
            if len(self._examples) < EXAMPLES:
                where = f"line {row['line']}: " if row.get("line") else ""
                self._examples.append(f"{where}{row['conflict']}")
        common = {
            "source": sink.source.name,
            "table": self._index,
            "format": sink.format,
            "kind": self.kind,
            "operation": self.operation or None,
            "section": self.section or None,
            **facts,
        }
        for row in kept:
            full = {**common, **row, **self._given}
            _bandwidths(full)
            if full.get("placement") is None:
                full["placement"] = _even(full.get("ranks"), full.get("nodes"))
            sink.put(full)
            self._note(full)
        self.waiting.clear()

    def _note(self, row: Mapping[str, Any]) -> None:
        self._rows += 1
        for name in ("line", "bytes", "ranks", "nodes"):
            value = row.get(name)
            if value is not None:
                least, most = self._spans.get(name, (value, value))
                self._spans[name] = min(least, value), max(most, value)
        time = row.get("time_s")
        if time is not None and len(self._times) < 2:
            self._times.add(time)

    def close(self) -> None:
        """Ends the table; an empty one leaves no trace."""
        if self.is_empty:
            return
        self.flush()
        if self._rows == 1:
            self.remark("only one row: nothing can be fitted to it")
        elif len(self._times) == 1:
            self.remark(
                f"all {self._rows} times are {next(iter(self._times)):.6g} s: not a measurement of anything that varies"
            )
        first, last = self._spans.get("line", (None, None))
        smallest, largest = self._spans.get("bytes", (None, None))
        self._sink.tables.append(
            UnderstoodTable(
                index=self._index,
                first_line=first,
                last_line=last,
                kind=self.kind,
                operation=self.operation,
                facts=dict(self.facts),
                inferred=dict(self.inferred),
                rows=self._rows,
                smallest=smallest,
                largest=largest,
                spans={
                    name: self._spans[name]
                    for name in ("ranks", "nodes")
                    if name in self._spans and name not in self.facts
                },
                conflicts=self._conflicts,
                conflict_examples=tuple(self._examples),
                remarks=tuple(self.remarks),
            )
        )


def _bandwidths(row: dict[str, Any]) -> None:
    """The bandwidths from size and time, the same for every format."""
    size, time = row.get("bytes"), row.get("time_s")
    if not size or not time or not math.isfinite(time) or row["kind"] == "step":
        return
    row["algbw_Bps"] = size / time
    collective, ranks = row.get("collective"), row.get("ranks")
    if row["kind"] == "transfer":
        row["busbw_Bps"] = row["algbw_Bps"]
    elif collective is not None and ranks is not None:
        row["busbw_Bps"] = row["algbw_Bps"] * bus_factor(collective, ranks)


def _even(ranks: int | None, nodes: int | None) -> str | None:
    return f"{nodes}x{ranks // nodes}" if ranks and nodes and ranks % nodes == 0 else None


def _whole(text: str | None) -> int | None:
    """A number as a note has it, `16` or `16 (inferred)`; None for lists and words."""
    match = re.fullmatch(r"(\d{1,9})(?:\s*\(.*\))?", text or "")
    return int(match[1]) if match and int(match[1]) > 0 else None


def name_of(source: Source) -> str | None:
    """The collective that the file's name speaks of."""
    return collective_in(os.path.basename(source.name))
