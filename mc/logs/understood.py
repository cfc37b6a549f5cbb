"""What an importer understood of a file: its tables, what it inferred and how, and what it passed over.

Nothing is passed over in silence. A line that ought to hold a measurement and does not is skipped under a
reason; a row that contradicts itself is a conflict; whatever else a reader should know is a remark.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Of lines and conflicts, as many are shown as tell what kind they are.
EXAMPLES = 3


@dataclass(frozen=True)
class Skipped:
    """Lines passed over for one reason.

    Attributes:
        reason: why.
        count: how many.
        lines: the first of them; empty where a format has no lines.
        example: the beginning of the first.
    """

    reason: str
    count: int
    lines: tuple[int, ...]
    example: str


@dataclass(frozen=True)
class UnderstoodTable:
    """One table of a file.

    Attributes:
        index: from 1.
        first_line: of its rows.
        last_line: likewise.
        kind: `collective`, `transfer` or `step`.
        operation: what the file calls it.
        facts: what holds for all its rows, by the name of the column.
        inferred: how each of them was inferred, by the name of the column.
        rows: kept.
        smallest: bytes; None where nothing has a size.
        largest: likewise.
        spans: the least and the greatest number of ranks and nodes, where rows differ in them.
        conflicts: rows that contradict themselves, or that the benchmark found wrong.
        conflict_examples: the first of them, `line: why`.
        remarks: what to know before using it.
    """

    index: int
    first_line: int | None
    last_line: int | None
    kind: str
    operation: str
    facts: Mapping[str, Any]
    inferred: Mapping[str, str]
    rows: int
    smallest: int | None
    largest: int | None
    spans: Mapping[str, tuple[int, int]]
    conflicts: int
    conflict_examples: tuple[str, ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class UnderstoodFile:
    """One file.

    Attributes:
        source: its name.
        format: the reader that understood it.
        wrapping: what was unwrapped on the way, and how columns were read.
        lines: read, or records where a format has no lines.
        tables: in the order of the file.
        skipped: by reason, the most frequent first.
        remarks: what concerns all of it.
        notes: what somebody wrote at its top, as lines `## key: value`.
    """

    source: str
    format: str
    wrapping: tuple[str, ...]
    lines: int
    tables: tuple[UnderstoodTable, ...]
    skipped: tuple[Skipped, ...]
    remarks: tuple[str, ...]
    notes: Mapping[str, str]

    @property
    def rows(self) -> int:
        """Rows kept."""
        return sum(table.rows for table in self.tables)

    @property
    def conflicts(self) -> int:
        """Rows that contradict themselves."""
        return sum(table.conflicts for table in self.tables)
