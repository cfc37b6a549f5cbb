"""perftest: `ib_write_bw`, `ib_write_lat` and their kin.

Latency is half a round trip for writes and sends, a whole one for reads and atomics, in us. Bandwidth is
`MB/sec` of 2²⁰ bytes or `Gb/sec` of 10⁹ bits, of both directions together in bidirectional tests, and must be
the rate of messages times their size (perftest, src/perftest_parameters.h and .c).
"""

import re

from mc.logs.benchmarks import MICRO, Benchmark, Cell, read_benchmarks, tokens
from mc.logs.sink import Sink
from mc.logs.source import Source

NAME = "perftest"
SIGNATURE = re.compile(r"#bytes +(?:#sl +)?#iterations")

_TITLE = re.compile(
    r"^\s*(?P<name>(?P<verb>RDMA_\w+|Send|Atomic \w+|Raw \w+)\s+(?P<both>Bidirectional )?(?P<what>BW|Latency)\b.*?Test.*?)\s*$"
)
_MEBI = 2.0**20
_GIGABIT = 1e9 / 8
_COLUMNS: tuple[tuple[str, Cell], ...] = (
    ("#bytes", Cell("bytes")),
    ("#sl", Cell("")),
    ("#iterations", Cell("iterations")),
    ("t_min[usec]", Cell("time_min_s", (MICRO,))),
    ("t_max[usec]", Cell("time_max_s", (MICRO,))),
    ("t_typical[usec]", Cell("time_p50_s", (MICRO,))),
    ("t_avg[usec]", Cell("time_s", (MICRO,))),
    ("t_stdev[usec]", Cell("time_std_s", (MICRO,))),
    ("99% percentile[usec]", Cell("time_p99_s", (MICRO,))),
    ("99.9% percentile[usec]", Cell("time_p999_s", (MICRO,))),
    ("tps average", Cell("")),
    ("BW peak[MB/sec]", Cell("")),
    ("BW peak[Gb/sec]", Cell("")),
    ("BW average[MB/sec]", Cell("bandwidth", (_MEBI,))),
    ("BW average[Gb/sec]", Cell("bandwidth", (_GIGABIT,))),
    ("MsgRate[Mpps]", Cell("rate", (1e6,))),
    *(
        (f"{what} Port{port}[{unit}]", Cell(""))
        for port in (1, 2)
        for what, unit in (("BW", "MB/sec"), ("BW", "Gb/sec"), ("MsgRate", "Mpps"))
    ),
    ("CPU_Util[%]", Cell("")),
)
_KNOWN = re.compile(
    r"^\s*-{5,}|^\s*(?:local|remote) address|^\s*GID\b|^\s*[\w .*/^#-]+?\s*:\s|Conflicting CPU frequency|Waiting for client|"
    r"^\s*\*+|^\s*Test integrity|measured timestamp|^\s*WARNING"
)


class _Perftest:
    def title(self, text: str) -> Benchmark | None:
        match = _TITLE.match(text)
        if match is None:
            return None
        verb, both = match["verb"], 2.0 if match["both"] else 1.0
        if match["what"] == "BW":
            return Benchmark(match["name"], timing="back-to-back", directions=both, ranks=2)
        whole = verb.startswith(("RDMA_Read", "Atomic"))
        return Benchmark(match["name"], timing="call" if whole else "half-round-trip", ranks=2)

    def fact(self, text: str, benchmark: Benchmark) -> Benchmark | None:
        del text, benchmark
        return None

    def heading(self, text: str) -> tuple[Cell, ...] | None:
        return tokens(text, _COLUMNS) if text.lstrip().startswith("#bytes") else None

    def is_known(self, text: str) -> bool:
        return _KNOWN.search(text) is not None


def read_perftest(source: Source, sink: Sink) -> None:
    """Reads a log of perftest."""
    read_benchmarks(source, sink, _Perftest())
