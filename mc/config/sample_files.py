"""Empirical delays whose samples are in a CSV file.

The samples are put in the place of the file's name while the configuration is still nodes: each has the line
of the CSV file as its position, so a cell that is no quantity is reported there, and the resolved
configuration stands alone.
"""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from mc.document import Node, Position, Problem, UnusableFile, key_text, read_bytes

MAXIMUM_SAMPLES = 50_000
MAXIMUM_BYTES = 20_000_000


def read_samples(node: Node) -> tuple[Node, list[Problem]]:
    """Replace the `file` of every empirical delay below a node by the samples in it.

    Returns:
        The new node, and what was wrong with the files.
    """
    problems: list[Problem] = []
    return _replaced(node, (), problems), problems


def _replaced(node: Node, path: tuple[str | int, ...], problems: list[Problem]) -> Node:
    if isinstance(node.value, list):
        items = [_replaced(item, (*path, index), problems) for index, item in enumerate(node.value)]
        return Node(items, node.position, node.key_position)
    if node.mapping is None:
        return node
    entries = {key: _replaced(child, (*path, key), problems) for key, child in node.mapping.items()}
    family, file = entries.get("family"), entries.get("file")
    if family is not None and family.value == "empirical" and file is not None:
        try:
            if "samples" in entries:
                raise _Unreadable(file, "file", "expected either `file` or `samples`; got both")
            samples = _samples(file, entries.get("column"), entries.get("unit"))
            entries = {key: child for key, child in entries.items() if key not in ("file", "column", "unit")}
            entries["samples"] = Node(samples, file.position, file.key_position)
        except _Unreadable as error:
            problems.append(Problem(error.position, key_text((*path, error.key)), str(error)))
    if path == ("serving", "requests") and file is not None:
        try:
            return _requests(file, sorted(set(entries) - {"file"}))
        except _Unreadable as error:
            problems.append(Problem(error.position, key_text((*path, error.key)), str(error)))
    return Node(entries, node.position, node.key_position)


class _Unreadable(Exception):
    def __init__(self, node: Node, key: str, message: str):
        super().__init__(message)
        self.position, self.key = node.position, key


def _samples(file: Node, column: Node | None, unit: Node | None) -> list[Node]:
    if not isinstance(file.value, str) or "\0" in file.value:
        raise _Unreadable(file, "file", "expected the path of a CSV file")
    samples: list[Node] = []
    index = None
    for position, row in _rows(file):
        if index is None:
            index = _column(row, file, column)
            continue
        if len(samples) == MAXIMUM_SAMPLES:
            raise _Unreadable(file, "file", f"expected at most {MAXIMUM_SAMPLES} samples; thin the file out")
        cell = row[index].strip() if index < len(row) else ""
        samples.append(Node(_value(cell, unit), position))
    return samples


def _rows(file: Node) -> Iterator[tuple[Position, list[str]]]:
    """The rows of a CSV file, the header first, without empty ones."""
    folder = Path(file.position.file).parent if file.position.line else Path()
    path = folder / str(file.value)
    try:
        text = read_bytes(path, MAXIMUM_BYTES).decode("utf-8-sig")
        rows = csv.reader(io.StringIO(text, newline=""))
        yield Position(str(path), 1, 1), next(rows, [])
        for row in rows:
            if row:
                yield Position(str(path), rows.line_num, 1), row
    except (OSError, UnusableFile, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _Unreadable(file, "file", f"{path} cannot be read as CSV: {reason}") from None


def _requests(file: Node, others: list[str]) -> Node:
    """Kinds of requests of a trace, each with how many there are."""
    if others:
        raise _Unreadable(file, "file", f"expected nothing beside it; got {', '.join(others)}")
    if not isinstance(file.value, str) or "\0" in file.value:
        raise _Unreadable(file, "file", "expected the path of a CSV file")
    columns, kinds = None, {}
    for position, row in _rows(file):
        if columns is None:
            names = [name.strip() for name in row]
            missing = [name for name in ("prompt", "output") if name not in names]
            if missing:
                raise _Unreadable(
                    file, "file", f"expected columns `prompt` and `output`; got {', '.join(names) or 'none'}"
                )
            columns = names.index("prompt"), names.index("output")
            continue
        cells = tuple(row[index].strip() if index < len(row) else "" for index in columns)
        kinds.setdefault(cells, [position, 0])[1] += 1
    if len(kinds) > MAXIMUM_SAMPLES:
        raise _Unreadable(
            file, "file", f"expected at most {MAXIMUM_SAMPLES} kinds of requests; thin the file out"
        )
    found = []
    for cells, (position, weight) in kinds.items():
        values = {
            name: Node(_whole(cell), position) for name, cell in zip(("prompt", "output"), cells, strict=True)
        }
        found.append(Node({**values, "weight": Node(weight, position)}, position))
    return Node(found, file.position, file.key_position)


def _whole(cell: str) -> str | int:
    return int(cell) if cell.isascii() and cell.isdigit() and len(cell) < 16 else cell


def _value(cell: str, unit: Node | None) -> str | float:
    if unit is not None:
        return f"{cell} {unit.value}"
    try:
        return float(cell)
    except ValueError:
        return cell


def _column(header: list[str], file: Node, column: Node | None) -> int:
    names = [name.strip() for name in header]
    listed = ", ".join(names) or "none"
    if column is None:
        if len(names) == 1:
            return 0
        raise _Unreadable(file, "file", f"expected `column` to choose one of the columns: {listed}")
    if column.value not in names:
        raise _Unreadable(column, "column", f"no such column: `{column.value}`; expected one of {listed}")
    return names.index(str(column.value))
