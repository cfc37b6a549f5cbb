"""Tables of one's own: CSV, or JSON lines, with a row for each measurement.

Which column is what is said by its name (`mc.logs.roles`) or by the user, and the report says how it was
read. Three kinds of table are told apart by the columns they have:

- with a message size: times of collectives, or their bandwidths;
- with a cluster size and a step time or MFU: training at several scales;
- with times alone: a series of steps, perhaps a column for each process.

A table may also be long, with the columns `metric` and `value`.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mc.logs.records import records
from mc.logs.sink import Sink
from mc.logs.source import Source
from mc.logs.table_reading import Reading
from mc.logs.table_rows import TableRows

NAME = "table"
_DELIMITERS = (",", "\t", ";")


def looks_like_table(text: str) -> bool:
    """Whether a file that begins so is CSV with a heading, a column of numbers, or JSON lines."""
    lines = [line for line in text.split("\n")[:200] if line.strip() and not line.startswith("#")]
    if not lines:
        return False
    if lines[0].lstrip().startswith(("{", "[")):
        return True
    if len(lines) < 2 or len(lines[0]) > 20_000:
        return False
    split = _splitter(lines[0])
    heading = split(lines[0])
    if not all(re.fullmatch(r"[\w .,/%()\[\]#:*+-]{0,80}", word.strip()) for word in heading):
        return False
    rows = [split(line) for line in lines[1:6]]
    if not all(len(row) == len(heading) for row in rows[: max(1, len(rows) - 1)]):
        return False
    return any(_is_number(word) for row in rows for word in row)


def read_tables(source: Source, sink: Sink) -> None:
    """Reads a table of one's own."""
    first = next(
        (line for _, line in source.lines() if line and line.strip() and not line.startswith("#")), ""
    )
    rows = _json_rows(source, sink) if first.lstrip().startswith(("{", "[")) else _csv_rows(source, sink)
    names, numbered = next(rows, ((), None))
    if not names:
        why = "".join(f": {each.reason}" for each in sink.finish().skipped[:1])
        raise sink.fail(f"expected a table with a heading and rows; got none{why}")
    reading = Reading.of(names, sink)
    taker = TableRows(reading, sink)
    while numbered is not None:
        line, row = numbered
        taker.take(line, row)
        _, numbered = next(rows, ((), None))
    taker.close()
    sink.how.append(reading.said())


_Numbered = tuple[int | None, Mapping[str, Any]]


def _csv_rows(source: Source, sink: Sink) -> Iterator[tuple[Sequence[str], _Numbered | None]]:
    """The names of the columns, with every row."""
    names: list[str] = []
    split = str.split
    for number, line in source.lines():
        sink.lines = number
        if line is None or "\0" in line:
            sink.skip("lines too long to be of a table" if line is None else "lines with NUL bytes", number)
            continue
        if not line.strip() or (line.startswith("#") and not (not names and _is_heading(line))):
            sink.note(line)
            continue
        if not names:
            split = _splitter(line)
            names = [word.strip() for word in split(line)]
            if all(_is_number(word) for word in names):
                # No heading: columns go by their number.
                values = dict(zip(map(str, range(1, len(names) + 1)), names, strict=True))
                names = list(values)
                yield names, (number, values)
            elif len(set(names)) < len(names):
                twice = sorted({name for name in names if names.count(name) > 1})
                raise sink.fail(f"expected columns of different names; got {', '.join(twice)} twice", number)
            continue
        words = split(line)
        if len(words) != len(names):
            sink.skip("rows that have not as many columns as the heading", number, line)
            continue
        yield names, (number, dict(zip(names, (word.strip() for word in words), strict=True)))
    if names:
        yield names, None


def _json_rows(source: Source, sink: Sink) -> Iterator[tuple[Sequence[str], _Numbered | None]]:
    names: list[str] = []
    for line, record in records(source, sink):
        flat = _flat(record)
        if not names:
            names = list(flat)
        yield names, (line, flat)


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """The values of an object, those of objects within it by `outer.inner`."""
    found: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            found.update(
                {
                    f"{key}.{name}": inner
                    for name, inner in value.items()
                    if not isinstance(inner, dict | list)
                }
            )
        elif not isinstance(value, list):
            found[key] = value
    return found


def _splitter(heading: str):
    """How the lines of a table are cut, by the delimiter that its heading has most of, or by blanks."""
    delimiter = max(_DELIMITERS, key=heading.count)
    if delimiter not in heading:
        return lambda line: line.split() if len(heading.split()) > 1 and _all_plain(heading) else [line]

    def split(line: str) -> list[str]:
        if '"' not in line:
            return line.split(delimiter)
        try:
            return next(csv.reader([line], delimiter=delimiter), [])
        except csv.Error:
            return []

    return split


def _all_plain(heading: str) -> bool:
    return all(re.fullmatch(r"#?[\w./%()\[\]-]+", word) for word in heading.split())


def _is_heading(line: str) -> bool:
    """Whether a comment is the heading of a table: names cut by a delimiter, and no sentence."""
    stripped = line.lstrip("# ")
    if not any(delimiter in stripped for delimiter in _DELIMITERS):
        return False
    words = _splitter(stripped)(stripped)
    return len(words) > 1 and all(re.fullmatch(r"\s*[\w./%()-]{1,30}\s*", word) for word in words)


def _is_number(word: Any) -> bool:
    return re.fullmatch(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*", str(word)) is not None
