"""OSU micro-benchmarks.

Latencies are us, bandwidths MB/s of 10⁶ bytes. Point-to-point latency is half a round trip; `osu_bibw` counts
both directions, `osu_mbw_mr` all pairs together. The size of all-gather, all-to-all, gather and scatter is
what one rank sends to one, so the buffer of nccl-tests' convention is that times the ranks, which OSU does not
print (osu-micro-benchmarks, c/util, c/mpi/collective).
"""

import re
from dataclasses import replace

from mc.logs.benchmarks import MICRO, Benchmark, Cell, read_benchmarks
from mc.logs.names import collective_of
from mc.logs.sink import Sink
from mc.logs.source import Source

NAME = "osu"
SIGNATURE = re.compile(r"OSU [A-Z][A-Za-z]+\S{0,20} .{0,80}Test")

_TITLE = re.compile(
    r"^\W*(?P<name>OSU (?P<library>[A-Za-z]+)\S*\s(?P<what>.*?) Test)(?:\s+v(?P<version>[\d.]+))?\s*$"
)
_PAIRS = re.compile(r"\[ pairs: (?P<pairs>\d+) \]")
_COLUMN = re.compile(r"(?P<name>[^(]+?)\s?(?:\((?P<unit>[^)]*)\))?")
_PER_RANK = ("all-gather", "all-to-all", "gather", "scatter")
_TIMES = {
    "latency": "time_s",
    "avg latency": "time_s",
    "pure comm.": "time_s",
    "min latency": "time_min_s",
    "max latency": "time_max_s",
    "p50 tail lat": "time_p50_s",
    "p99 tail lat": "time_p99_s",
}


class _Osu:
    def title(self, text: str) -> Benchmark | None:
        match = _TITLE.match(text)
        if match is None:
            return None
        what, name = match["what"], match["name"]
        plain = what.lower()
        if "bandwidth" in plain:
            both = 2.0 if plain.startswith("bi") else 1.0
            return Benchmark(name, timing="back-to-back", directions=both, ranks=2)
        if plain in ("latency", "multi latency", "multi-threaded latency", "multi-process latency"):
            return Benchmark(name, timing="half-round-trip", ranks=2 if plain == "latency" else None)
        spelt = re.sub(r"\b(?:personalized exchange|latency|non-blocking|persistent)\b", "", plain)
        collective = collective_of(spelt)
        known = collective is not None and "neighborhood" not in plain
        return Benchmark(
            name,
            "collective" if known else "transfer",
            collective if known else None,
            known and collective in _PER_RANK,
            is_known=known,
        )

    def fact(self, text: str, benchmark: Benchmark) -> Benchmark | None:
        match = _PAIRS.search(text)
        if match is None:
            return None
        pairs = int(match["pairs"])
        # What all pairs carry together: one pair's message takes as many times longer.
        return replace(benchmark, directions=benchmark.directions * pairs, ranks=2 * pairs)

    def heading(self, text: str) -> tuple[Cell, ...] | None:
        stripped = text.strip().lstrip("# ")
        if not re.match(r"(?:Size|Avg Latency|Overall)\b", stripped):
            return None
        return tuple(_cell(column) for column in re.split(r"\s{2,}", stripped))

    def is_known(self, text: str) -> bool:
        return text.lstrip().startswith("#")


def _cell(column: str) -> Cell:
    match = _COLUMN.fullmatch(column)
    if match is None:
        return Cell("")
    name, unit = match["name"].lower(), match["unit"]
    if name == "size":
        return Cell("bytes")
    if name == "iterations":
        return Cell("iterations")
    if name in ("mb/s", "bandwidth") and unit in (None, "MB/s"):
        return Cell("bandwidth", (1e6,))
    if name == "messages/s":
        return Cell("rate")
    return Cell(_TIMES[name], (MICRO,)) if name in _TIMES and unit == "us" else Cell("")


def read_osu(source: Source, sink: Sink) -> None:
    """Reads a log of OSU micro-benchmarks."""
    read_benchmarks(source, sink, _Osu())
