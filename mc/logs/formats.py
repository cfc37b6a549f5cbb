"""The formats that can be read, and how a file's content tells them apart.

Each format has a signature, a pattern that its files contain and others do not. The text is searched block by
block, so that recognition of a large file costs one pass; where several signatures are in one block the
first format in the list wins.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from mc.logs import imb, inspector, nccl_json, nccl_tests, osu, p2p, perftest, rccl_json, tables, tuner
from mc.logs.errors import LogError
from mc.logs.nccl_tuning import Prior
from mc.logs.sink import Sink
from mc.logs.source import Source
from mc.logs.tuner import Choice


@dataclass(frozen=True)
class Found:
    """What a reader found beside the rows it gave to the sink.

    Attributes:
        priors: of NCCL's tuning.
        choices: of a table of NCCL's tuner plugin.
    """

    priors: tuple[Prior, ...] = ()
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True)
class Format:
    """A format.

    Attributes:
        name: for `--format`.
        about: what writes it.
        signature: a pattern that only its files contain.
        read: reads a file into a sink.
    """

    name: str
    about: str
    signature: re.Pattern[str] = field(repr=False)
    read: Callable[[Source, Sink], Found] = field(repr=False)


def _only_rows(read: Callable[[Source, Sink], None]) -> Callable[[Source, Sink], Found]:
    """A reader that finds nothing but rows."""

    def reader(source: Source, sink: Sink) -> Found:
        read(source, sink)
        return Found()

    return reader


def _nccl(source: Source, sink: Sink) -> Found:
    return Found(nccl_tests.read_nccl(source, sink).tuning.priors)


def _tuner(source: Source, sink: Sink) -> Found:
    return Found(choices=tuner.read_tuner(source, sink))


_ALL = (
    Format(
        inspector.NAME,
        "JSON lines of NCCL Inspector",
        inspector.SIGNATURE,
        _only_rows(inspector.read_inspector),
    ),
    Format(
        nccl_json.NAME, "JSON of nccl-tests (-J)", nccl_json.SIGNATURE, _only_rows(nccl_json.read_nccl_json)
    ),
    Format(
        rccl_json.NAME,
        "JSON lines of rccl-tests and MSCCL++",
        rccl_json.SIGNATURE,
        _only_rows(rccl_json.read_rccl_json),
    ),
    Format(
        nccl_tests.NAME,
        "text of nccl-tests and rccl-tests, and messages of NCCL",
        re.compile(
            r"(?<=\d)[ \t]+(?:u?int(?:8|32|64)|float|half|double|bfloat16|fp?8_?e\dm\d)[ \t]+(?:sum|prod|min|max|avg|none|-?\d)"
            r"|size[ \t]+count[ \t]+type|\bnccl-tests version|Algorithm   \||\] NCCL INFO"
        ),
        _nccl,
    ),
    Format(tuner.NAME, "table of NCCL's tuner plugin", tuner.SIGNATURE, _tuner),
    Format(
        p2p.NAME,
        "matrices of the CUDA sample p2pBandwidthLatencyTest",
        p2p.SIGNATURE,
        _only_rows(p2p.read_p2p),
    ),
    Format(osu.NAME, "OSU micro-benchmarks", osu.SIGNATURE, _only_rows(osu.read_osu)),
    Format(imb.NAME, "Intel MPI Benchmarks", imb.SIGNATURE, _only_rows(imb.read_imb)),
    Format(
        perftest.NAME,
        "perftest: ib_write_bw, ib_write_lat, ...",
        perftest.SIGNATURE,
        _only_rows(perftest.read_perftest),
    ),
)
_TABLE = Format(
    tables.NAME, "CSV and JSON lines of one's own", re.compile(r"(?!)"), _only_rows(tables.read_tables)
)
FORMATS = {each.name: each for each in (*_ALL, _TABLE)}


def recognise(source: Source) -> str:
    """The format of a file; raises LogError if it is none of them."""
    first = None
    for block in source.blocks():
        first = block if first is None else first
        for each in _ALL:
            if each.signature.search(block):
                return each.name
    suffix = source.path.with_suffix("").suffix if source.compressed else source.path.suffix
    if first is not None and (suffix in (".csv", ".tsv", ".jsonl") or tables.looks_like_table(first)):
        return _TABLE.name
    raise LogError(
        f"{source.name}: expected a log or table of one of {', '.join(FORMATS)}; got nothing that looks like one"
        " (`--format` forces a reader)"
    )
