"""Intel MPI Benchmarks.

Times are us: the least, the greatest and the mean over processes. `Mbytes/sec` is 10⁶ bytes since IMB 2018 and
2²⁰ before, of the slowest process, counting two messages for Sendrecv and four for Exchange. PingPong is
half a round trip. The size of Allgather, Alltoall, Gather and Scatter is one process's part (IMB, IMB_output.c
and user guide).
"""

import re
from dataclasses import replace

from mc.logs.benchmarks import MICRO, Benchmark, Cell, read_benchmarks
from mc.logs.names import collective_of
from mc.logs.sink import Sink
from mc.logs.source import Source

NAME = "imb"
SIGNATURE = re.compile(
    r"#bytes #repetitions|#repetitions +t_min\[usec\]|Intel ?\(R\) MPI Benchmark|# Benchmarking \w"
)

_TITLE = re.compile(r"^\W*Benchmarking (?P<name>\w+)\W*$")
_PROCESSES = re.compile(r"^\W*#processes = (?P<count>\d+)")
_GROUPS = re.compile(r"\(\s*\d+ groups of (?P<count>\d+) processes")
_TRANSFERS = {
    "pingpong": ("half-round-trip", 1.0),
    "pingpongspecificsource": ("half-round-trip", 1.0),
    "pingponganysource": ("half-round-trip", 1.0),
    "pingping": ("call", 1.0),
    "exchange": ("call", 4.0),
    "uniband": ("back-to-back", 1.0),
    "biband": ("back-to-back", 2.0),
}
_PER_RANK = ("all-gather", "all-to-all", "gather", "scatter")
_CELLS = {
    "#bytes": Cell("bytes"),
    "#repetitions": Cell("iterations"),
    "t[usec]": Cell("time_s", (MICRO,)),
    "t_min[usec]": Cell("time_min_s", (MICRO,)),
    "t_max[usec]": Cell("time_max_s", (MICRO,)),
    "t_avg[usec]": Cell("time_s", (MICRO,)),
    "t_pure[usec]": Cell("time_s", (MICRO,)),
    "Mbytes/sec": Cell("bandwidth", (1e6, 2.0**20)),
    "Msg/sec": Cell(""),
    "t_ovrl[usec]": Cell(""),
    "t_CPU[usec]": Cell(""),
    "overlap[%]": Cell(""),
    "defects": Cell(""),
}


class _Imb:
    def title(self, text: str) -> Benchmark | None:
        match = _TITLE.match(text)
        if match is None:
            return None
        name = match["name"]
        plain = re.sub(r"_pure$|_gpu$", "", name.lower())
        if plain in _TRANSFERS:
            timing, directions = _TRANSFERS[plain]
            return Benchmark(name, timing=timing, directions=directions)
        collective = None if plain == "reduce_scatter_block" else collective_of(plain)
        if collective is None:
            return Benchmark(name, is_known=False)
        two = 2.0 if collective == "send-recv" else 1.0
        return Benchmark(name, "collective", collective, collective in _PER_RANK, directions=two)

    def fact(self, text: str, benchmark: Benchmark) -> Benchmark | None:
        match = _GROUPS.search(text) or _PROCESSES.match(text)
        return None if match is None else replace(benchmark, ranks=int(match["count"]))

    def heading(self, text: str) -> tuple[Cell, ...] | None:
        words = text.split()
        if "#repetitions" not in words:
            return None
        return tuple(_CELLS.get(word, Cell("")) for word in words)

    def is_known(self, text: str) -> bool:
        return text.lstrip().startswith(("#", "("))


def read_imb(source: Source, sink: Sink) -> None:
    """Reads a log of Intel MPI Benchmarks."""
    read_benchmarks(source, sink, _Imb())
