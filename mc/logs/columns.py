"""The columns of the table of measurements, each with its unit.

One row is one measured point: a mean over many calls, as most benchmarks print, or one call, where
`iteration` is not null. Whatever a file does not say is null, never a guess; what an importer inferred is
written down in the report of its table (`mc.logs.understood`).
"""

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        name: with the unit as its end where it has one: `_s` seconds, `_Bps` bytes per second.
        type: of pyarrow.
        meaning: what is in it.
    """

    name: str
    type: pa.DataType
    meaning: str


COLUMNS = (
    Column("source", pa.string(), "the file, as it was named"),
    Column("line", pa.int64(), "line of the file, from 1; null where a format has no lines"),
    Column("table", pa.int32(), "which table of the file, from 1"),
    Column("format", pa.string(), "the reader that understood it"),
    Column("kind", pa.string(), "`collective`, `transfer` (between two ends) or `step` (of a training job)"),
    Column("collective", pa.string(), "by the names of the configuration; null for transfers and steps"),
    Column("operation", pa.string(), "what the file calls it: program, benchmark, column"),
    Column("datatype", pa.string(), "of an element, as the file names it"),
    Column("bytes", pa.int64(), "whole buffer as nccl-tests counts it; the message of a transfer"),
    Column("ranks", pa.int32(), "that took part"),
    Column("nodes", pa.int32(), "they were on"),
    Column("placement", pa.string(), "ranks of each node: `2x8`, or `8+4` where they differ"),
    Column("pair", pa.string(), "the two ends of a transfer, `0-1`"),
    Column("algorithm", pa.string(), "as the library names it: Ring, Tree, NVLS, ..."),
    Column("protocol", pa.string(), "as the library names it: LL, LL128, Simple"),
    Column("channels", pa.int32(), "that the library used"),
    Column("device", pa.string(), "the accelerator, by its own name"),
    Column("software", pa.string(), "library and version"),
    Column("section", pa.string(), "the heading in the file above the table"),
    Column(
        "plan",
        pa.string(),
        "how a job was spread over its ranks, by keys of a plan: `tp=8 global_batch=2048`",
    ),
    Column("in_place", pa.bool_(), "whether input and output share a buffer"),
    Column("iteration", pa.int64(), "which call, from 0; null for a mean"),
    Column("process", pa.int32(), "whose time it is; null for the time of all"),
    Column("iterations", pa.int64(), "how many calls `time_s` is the mean of; 1 for one call"),
    Column("timing", pa.string(), "`call`, `half-round-trip` or `back-to-back` (bytes over bandwidth)"),
    Column("time_s", pa.float64(), "seconds: the mean, or that of one call; null if only `mfu` is known"),
    Column("time_min_s", pa.float64(), "seconds, the least of what `time_s` is the mean of"),
    Column("time_p50_s", pa.float64(), "seconds, the median"),
    Column("time_p99_s", pa.float64(), "seconds, the 99th percentile"),
    Column("time_p999_s", pa.float64(), "seconds, the 99.9th percentile"),
    Column("time_max_s", pa.float64(), "seconds, the greatest"),
    Column("time_std_s", pa.float64(), "seconds, the standard deviation"),
    Column("algbw_Bps", pa.float64(), "bytes/time_s, computed here"),
    Column(
        "busbw_Bps", pa.float64(), "algbw times the factor of nccl-tests, computed here; null without ranks"
    ),
    Column("mfu", pa.float64(), "model FLOP utilisation, 0 to 1"),
    Column("wrong", pa.int64(), "elements that the benchmark's validation found wrong"),
    Column("conflict", pa.string(), "why the row cannot be trusted: what contradicts what; null if nothing"),
)
NAMES = tuple(column.name for column in COLUMNS)
SCHEMA = pa.schema([pa.field(column.name, column.type) for column in COLUMNS])
