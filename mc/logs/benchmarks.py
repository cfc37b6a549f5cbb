"""What OSU, Intel and perftest print alike: a title, a heading of columns with units, and rows of numbers.

Each of the three says what its titles mean (`Benchmark`) and how its headings read (`Cell`); rows are read
here. A time in a row is a mean over calls and over ranks; where there is only a bandwidth, messages were sent
one after the other without waiting, and the time is bytes/bandwidth. Where a row has both, they must agree.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mc.logs.consistency import bandwidth_conflict
from mc.logs.prefixes import without_prefix
from mc.logs.printed import Printed, printed
from mc.logs.sink import Draft, Sink
from mc.logs.source import Source

MICRO = 1e-6


@dataclass(frozen=True)
class Benchmark:
    """What a title says.

    Attributes:
        name: as printed.
        kind: `collective` or `transfer`.
        collective: by the names of the configuration; None if it is none of them.
        per_rank: whether sizes are those of one rank's part, and the whole buffer is so many times larger.
        timing: of `time_s`.
        directions: how many messages of that size a row's bandwidth counts at once.
        ranks: that take part, if the title says.
        is_known: whether its sizes and times are understood.
    """

    name: str
    kind: str = "transfer"
    collective: str | None = None
    per_rank: bool = False
    timing: str = "call"
    directions: float = 1.0
    ranks: int | None = None
    is_known: bool = True


@dataclass(frozen=True)
class Cell:
    """A column.

    Attributes:
        role: `bytes`, `iterations`, `bandwidth`, `rate` (messages), a column of the table, or empty.
        scales: what one of its units is in SI; several where releases differ.
    """

    role: str
    scales: tuple[float, ...] = (1.0,)


class Grammar(Protocol):
    """How a suite prints."""

    def title(self, text: str) -> Benchmark | None:
        """What a line says if it is a title."""
        ...

    def fact(self, text: str, benchmark: Benchmark) -> Benchmark | None:
        """The benchmark with what a line adds to it, such as its ranks; None if the line adds nothing."""
        ...

    def heading(self, text: str) -> tuple[Cell, ...] | None:
        """The columns if the line is a heading."""
        ...

    def is_known(self, text: str) -> bool:
        """Whether a line is one that the suite prints and that holds no measurement."""
        ...


def read_benchmarks(source: Source, sink: Sink, grammar: Grammar) -> None:
    """Reads a log of a suite."""
    _Reader(sink, grammar).read(source)


class _Reader:
    def __init__(self, sink: Sink, grammar: Grammar):
        self._sink = sink
        self._grammar = grammar
        self._benchmark = Benchmark("", is_known=False)
        self._cells: tuple[Cell, ...] = ()
        self._draft: Draft | None = None

    def read(self, source: Source) -> None:
        sink, grammar = self._sink, self._grammar
        for number, line in source.lines():
            sink.lines = number
            if line is None or "\0" in line:
                sink.skip("lines too long to be of a log" if line is None else "lines with NUL bytes", number)
                continue
            text, _ = without_prefix(line)
            if not text.strip() or sink.note(text):
                continue
            if (title := grammar.title(text)) is not None:
                self._close()
                self._benchmark, self._cells = title, ()
            elif (more := grammar.fact(text, self._benchmark)) is not None:
                self._benchmark = more
            elif (cells := grammar.heading(text)) is not None:
                self._close()
                self._cells = cells
            elif not self._row(number, text) and not grammar.is_known(text):
                sink.skip("lines that are no row of a table", number, text)
        self._close()

    def _close(self) -> None:
        if self._draft is not None:
            self._draft.close()
            self._draft = None

    def _row(self, number: int, text: str) -> bool:
        """Takes in a row; whether the line is one."""
        words = text.split()
        if not self._cells or not words[0][0].isdigit():
            return False
        figures = [printed(word) for word in words]
        if sum(figure is None for figure in figures) > len(words) // 2:
            return False
        if len(words) != len(self._cells):
            self._sink.skip("rows that have not as many columns as their heading", number, text)
            return True
        found: dict[str, tuple[Printed, Cell]] = {}
        for figure, cell in zip(figures, self._cells, strict=True):
            if figure is None and cell.role:
                self._sink.skip("rows with no number where one should be", number, text)
                return True
            if figure is not None and cell.role:
                found[cell.role] = figure, cell
        reason = self._add(number, found)
        if reason is not None:
            self._sink.skip(reason, number, text)
        return True

    def _add(self, number: int, found: dict[str, tuple[Printed, Cell]]) -> str | None:
        """Hands on a row, or says why not."""
        benchmark, draft = self._benchmark, self._open()
        ranks = draft.facts.get("ranks")
        size = found["bytes"][0].value if "bytes" in found else None
        if size is not None and (size < 0 or size != int(size)):
            return "rows whose size is no whole number of bytes"
        time, conflict = self._time(size, found)
        if time is None or time <= 0:
            return "rows whose time is zero or negative" if size else "rows of zero bytes without a time"
        if benchmark.per_rank and size:
            if ranks is None:
                return (
                    "rows whose size is that of one rank, where the number of ranks is not known (`--ranks`)"
                )
            size *= ranks
        row: dict[str, Any] = {
            "line": number,
            "bytes": None if size is None else int(size),
            "timing": benchmark.timing,
            "time_s": time,
            "conflict": conflict,
        }
        for role, (figure, cell) in found.items():
            if role.startswith("time_") and role != "time_s" and figure.value > 0:
                row[role] = figure.value * cell.scales[0]
        if "iterations" in found:
            row["iterations"] = int(found["iterations"][0].value)
        draft.add(row)
        return None

    def _time(
        self, size: float | None, found: dict[str, tuple[Printed, Cell]]
    ) -> tuple[float | None, str | None]:
        """Seconds, and why the row contradicts itself, if it does."""
        benchmark = self._benchmark
        stated = next((found[role] for role in ("time_s", "time_p50_s") if role in found), None)
        rate = found.get("bandwidth")
        if stated is not None:
            time = stated[0].scaled(stated[1].scales[0])
            conflict = None
            # A collective's bandwidth is of its slowest rank.
            slowest = (
                found.get("time_max_s", stated)
                if benchmark.kind == "collective" or "time_max_s" in found
                else stated
            )
            if rate is not None and size and rate[0].value > 0:
                worst = slowest[0].scaled(slowest[1].scales[0])
                conflicts = [
                    bandwidth_conflict(size * benchmark.directions, worst, rate[0].scaled(scale))
                    for scale in rate[1].scales
                ]
                conflict = conflicts[0] if all(conflicts) else None
            return time.value, conflict
        if rate is None or not size or rate[0].value <= 0:
            return None, None
        bandwidth = rate[0].scaled(rate[1].scales[0])
        conflict = None
        if "rate" in found:
            messages = found["rate"][0].scaled(found["rate"][1].scales[0])
            if not size * messages.low <= bandwidth.high or not bandwidth.low <= size * messages.high:
                conflict = (
                    f"{messages.value:.6g} messages/s of {size:g} bytes are {size * messages.value / 1e9:.4g} GB/s, "
                    f"bandwidth {bandwidth.value / 1e9:.4g} GB/s"
                )
        return size * benchmark.directions / bandwidth.value, conflict

    def _open(self) -> Draft:
        if self._draft is None:
            benchmark = self._benchmark
            self._draft = self._sink.draft(benchmark.kind, benchmark.name)
            self._draft.know("collective", benchmark.collective, f"from the title `{benchmark.name}`")
            self._draft.know("ranks", benchmark.ranks, f"from the title `{benchmark.name}`")
            self._draft.know_notes()
            if not benchmark.is_known:
                self._draft.remark(
                    f"`{benchmark.name or 'no title'}` is not known: sizes and times are kept as printed"
                )
        return self._draft


def tokens(text: str, names: Sequence[tuple[str, Callable[[], Cell] | Cell]]) -> tuple[Cell, ...] | None:
    """The columns of a heading whose names may hold blanks; None if a part of it is none of the names.

    Args:
        text: the heading.
        names: name and column, longer names before those that begin them.
    """
    cells: list[Cell] = []
    rest = text.strip()
    while rest:
        for name, cell in names:
            if rest.startswith(name):
                cells.append(cell if isinstance(cell, Cell) else cell())
                rest = rest[len(name) :].lstrip()
                break
        else:
            return None
    return tuple(cells)
