"""The table of measurements: columns of Arrow, written to and read from Parquet, CSV and JSON lines.

Rows are collected in batches, so that a file of millions of rows costs the memory of its columns and not of
as many Python objects.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset as ds
import pyarrow.json as pa_json
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mc.logs.columns import NAMES, SCHEMA
from mc.logs.errors import LogError

SUFFIXES = (".parquet", ".csv", ".jsonl")
# Key of the Parquet metadata with what was understood, as JSON.
METADATA = b"tailstep.import"
_BATCH = 1 << 14
# Fewer are no curve that a cluster is fitted to, as in mc.calibration.curves.
LEAST_SIZES = 3


@dataclass(frozen=True)
class MeasurementTable:
    """Measurements of any number of files.

    Attributes:
        data: the columns of `mc.logs.COLUMNS`.
    """

    data: pa.Table

    def __post_init__(self) -> None:
        if self.data.schema.remove_metadata() != SCHEMA:
            raise ValueError(
                f"expected the columns {', '.join(NAMES)}; got {', '.join(self.data.schema.names)}"
            )

    def __len__(self) -> int:
        return self.data.num_rows

    def rows(self) -> Iterator[dict[str, Any]]:
        """Row by row, every column by its name."""
        for batch in self.data.to_batches(max_chunksize=_BATCH):
            yield from batch.to_pylist()

    def column(self, name: str) -> NDArray[Any]:
        """One column as numpy: null becomes nan in numbers and None in texts."""
        return self.data.column(name).to_numpy()

    def where(self, **values: Any) -> "MeasurementTable":
        """The rows whose columns have these values; None asks for null."""
        found = self.data
        for name, value in values.items():
            wanted = ds.field(name).is_null() if value is None else ds.field(name) == value
            found = found.filter(wanted)
        return MeasurementTable(found)

    def most_sizes(self) -> int | None:
        """At how many sizes the one collective on one group of ranks was timed that has the most; None where none was."""
        one = ("iteration", "process", "conflict")
        means = ds.field("collective").is_valid() & (ds.field("bytes") > 0) & ds.field("time_s").is_valid()
        for name in one:
            means &= ds.field(name).is_null()
        found = self.data.filter((ds.field("kind") == "collective") & means)
        if not found.num_rows:
            return None
        curves = found.group_by(["collective", "ranks", "nodes", "algorithm", "protocol"])
        return max(curves.aggregate([("bytes", "count_distinct")])["bytes_count_distinct"].to_pylist())


class TableBuilder:
    """Collects rows into a table."""

    def __init__(self, most: int | None = None) -> None:
        """Args: most is how many rows it may have; None for any number."""
        self._most = most
        self._count = 0
        self._batches: list[pa.RecordBatch] = []
        self._columns: dict[str, list[Any]] = {name: [] for name in NAMES}

    def append(self, row: Mapping[str, Any]) -> None:
        """One row by the names of its columns; those left out are null; raises LogError where there are too many."""
        self._count += 1
        if self._most is not None and self._count > self._most:
            line = "" if row.get("line") is None else f":{row['line']}"
            raise LogError(f"{row.get('source')}{line}: expected at most {self._most:,} rows; got more")
        for name, values in self._columns.items():
            values.append(row.get(name))
        if len(self._columns["source"]) >= _BATCH:
            self._flush()

    def extend(self, table: MeasurementTable) -> None:
        """All rows of another table."""
        self._flush()
        self._batches.extend(table.data.to_batches())

    def _flush(self) -> None:
        if self._columns["source"]:
            self._batches.append(pa.RecordBatch.from_pydict(self._columns, SCHEMA))
            for values in self._columns.values():
                values.clear()

    def finish(self) -> MeasurementTable:
        """The table of all rows so far."""
        self._flush()
        return MeasurementTable(pa.Table.from_batches(self._batches, SCHEMA))


def write_table(
    table: MeasurementTable, path: str | os.PathLike[str], understood: Mapping[str, Any] | None = None
) -> None:
    """Writes a table as its file's name says: .parquet, .csv or .jsonl.

    Args:
        table: what to write.
        path: where to; an existing file is replaced.
        understood: what the importers understood, kept in the metadata of a Parquet file.

    Raises:
        LogError: the name ends in none of the three, or cannot be written to.
    """
    target = Path(path)
    suffix = check_suffix(target)
    temporary = target.with_name(f".{target.name}.part")
    if not target.parent.is_dir():
        raise LogError(f"{target}: cannot be written: no such directory")
    try:
        if suffix == ".parquet":
            metadata = {METADATA: json.dumps(understood or {}).encode()}
            pq.write_table(table.data.replace_schema_metadata(metadata), temporary, compression="zstd")
        elif suffix == ".csv":
            pa_csv.write_csv(table.data, temporary)
        else:
            with temporary.open("w", encoding="utf-8") as stream:
                for row in table.rows():
                    known = {name: value for name, value in row.items() if value is not None}
                    stream.write(json.dumps(known) + "\n")
        os.replace(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise LogError(f"{target}: cannot be written: {error.strerror or error}") from None


def check_suffix(path: Path) -> str:
    """The ending of a file's name if a table can be written so; raises LogError."""
    if path.suffix not in SUFFIXES:
        raise LogError(f"{path}: expected a name that ends in {', '.join(SUFFIXES)}; got `{path.suffix}`")
    return path.suffix


def is_table(path: str | os.PathLike[str]) -> bool:
    """Whether a file looks like one that `write_table` wrote."""
    target = Path(path)
    try:
        if target.suffix not in SUFFIXES or not target.is_file():
            return False
        if target.suffix == ".parquet":
            return METADATA in (pq.read_schema(target).metadata or {})
        with target.open("rb") as stream:
            head = stream.read(4096)
    except (OSError, ValueError):
        return False
    if target.suffix == ".csv":
        return head.startswith(",".join(f'"{name}"' for name in NAMES).encode())
    return head.startswith(b'{"source": ') and b'"format": ' in head.split(b"\n")[0]


def read_table(path: str | os.PathLike[str]) -> MeasurementTable:
    """Reads what `write_table` wrote.

    Raises:
        LogError: it cannot be read or has other columns.
    """
    source = Path(path)
    suffix = check_suffix(source)
    try:
        if suffix == ".parquet":
            found = pq.read_table(source)
        elif suffix == ".csv":
            convert = pa_csv.ConvertOptions(
                column_types=SCHEMA, strings_can_be_null=True, quoted_strings_can_be_null=False
            )
            found = pa_csv.read_csv(source, convert_options=convert)
        else:
            found = pa_json.read_json(
                source,
                parse_options=pa_json.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="error"),
            )
    except (OSError, pa.ArrowInvalid, pa.ArrowKeyError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise LogError(f"{source}: cannot be read as a table of measurements: {reason}") from None
    missing = [name for name in NAMES if name not in found.schema.names]
    if missing or found.num_columns != len(NAMES):
        what = f"no {', '.join(missing[:5])}" if missing else "columns of its own"
        raise LogError(f"{source}: expected a table that `tailstep import` wrote; got one with {what}")
    return MeasurementTable(found.select(list(NAMES)).cast(SCHEMA).replace_schema_metadata(None))
