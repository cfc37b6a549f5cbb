"""p2pBandwidthLatencyTest of the CUDA samples: matrices of bandwidth and latency between the devices of a node.

Bandwidths are GB/s of copies of 40,000,000 ints (the program's default, which it does not print), both
directions together in the bidirectional matrices; latencies are us of copies of 16 bytes. What stands on the
diagonal is copied within one device and belongs to no link (cuda-samples, p2pBandwidthLatencyTest.cu).
"""

import re
from dataclasses import dataclass

from mc.logs.prefixes import without_prefix
from mc.logs.printed import printed
from mc.logs.sink import Draft, Sink
from mc.logs.source import Source

NAME = "p2pBandwidthLatencyTest"
SIGNATURE = re.compile(r"P2P \(Peer-to-Peer\) GPU Bandwidth|P2P=(?:En|Dis)abled .{0,40}Matrix \(")

_MATRIX = re.compile(
    r"^(?P<title>(?P<way>Unidirectional |Bidirectional )?P2P=(?P<p2p>Enabled|Disabled) (?P<what>Bandwidth|Latency).*Matrix) "
    r"\((?P<unit>[^)]*)\)"
)
_COLUMNS = re.compile(r"^\s*(?P<clock>D\\D|GPU|CPU)(?P<columns>(?:\s+\d+)+)\s*$")
_DEVICE = re.compile(r"^Device: (?P<device>\d+), (?P<name>.*), pciBusID: ")
_BYTES = 40_000_000 * 4
_LATENCY_BYTES = 16
_UNITS = {"Bandwidth": "GB/s", "Latency": "us"}
_KNOWN = re.compile(r"CAN|Connectivity Matrix|NOTE|^So you can see|\[P2P|^Device|^\s*D\\D|^\s*\d+\s+[01]?\s")


@dataclass(frozen=True)
class _Matrix:
    title: str
    bandwidth: bool
    both: bool
    clock: str = ""
    columns: tuple[int, ...] = ()


def read_p2p(source: Source, sink: Sink) -> None:
    """Reads the output of p2pBandwidthLatencyTest."""
    _Reader(sink).read(source)


class _Reader:
    def __init__(self, sink: Sink):
        self._sink = sink
        self._matrix: _Matrix | None = None
        self._draft: Draft | None = None
        self._devices: dict[int, str] = {}

    def read(self, source: Source) -> None:
        for number, line in source.lines():
            self._sink.lines = number
            if line is None or "\0" in line:
                self._sink.skip("lines that are no text", number)
                continue
            text, _ = without_prefix(line)
            if not text.strip() or self._sink.note(text):
                continue
            self._line(number, text)
        self._close()

    def _close(self) -> None:
        if self._draft is not None:
            self._draft.close()
            self._draft = None

    def _line(self, number: int, text: str) -> None:
        if (device := _DEVICE.match(text)) is not None:
            self._devices[int(device["device"])] = device["name"]
        elif (found := _MATRIX.match(text)) is not None:
            self._close()
            if found["unit"] != _UNITS[found["what"]]:
                raise self._sink.fail(
                    f"expected {_UNITS[found['what']]}; got a matrix in {found['unit']}", number
                )
            self._matrix = _Matrix(
                found["title"], found["what"] == "Bandwidth", found["way"] == "Bidirectional "
            )
        elif "Connectivity Matrix" in text:
            self._matrix = None
        elif self._matrix is not None and (head := _COLUMNS.match(text)) is not None:
            self._close()
            clock = head["clock"] if head["clock"] in ("GPU", "CPU") else ""
            columns = tuple(int(word) for word in head["columns"].split())
            matrix = self._matrix
            self._matrix = _Matrix(matrix.title, matrix.bandwidth, matrix.both, clock, columns)
        elif not self._row(number, text) and not _KNOWN.search(text):
            self._sink.skip("lines that are no row of a matrix", number, text)

    def _row(self, number: int, text: str) -> bool:
        """Takes in a row of a matrix; whether the line is one."""
        words, matrix = text.split(), self._matrix
        if matrix is None or not matrix.columns or not words[0].isdigit():
            return False
        figures = [printed(word) for word in words[1:]]
        if len(figures) != len(matrix.columns) or None in figures:
            self._sink.skip("rows that have not as many columns as their heading", number, text)
            return True
        first = int(words[0])
        for second, figure in zip(matrix.columns, figures, strict=True):
            assert figure is not None
            if first == second:
                self._sink.skip("copies within one device (the diagonal)", number, text)
            elif figure.value <= 0:
                self._sink.skip("figures that are zero or negative", number, text)
            else:
                self._add(number, matrix, f"{first}-{second}", figure.value)
        return True

    def _add(self, number: int, matrix: _Matrix, pair: str, value: float) -> None:
        if self._draft is None:
            clock = f", timed by the {matrix.clock}" if matrix.clock else ""
            self._draft = draft = self._sink.draft("transfer", matrix.title + clock)
            draft.know("ranks", 2, "the two ends of a copy")
            draft.know("nodes", 1, "the devices of one node")
            draft.know("device", self._devices.get(0), "from the devices that the program lists")
            draft.know("bytes", _BYTES if matrix.bandwidth else _LATENCY_BYTES, "the program's own default")
            draft.know_notes()
        both = 2 if matrix.both else 1
        time = both * _BYTES / (value * 1e9) if matrix.bandwidth else value * 1e-6
        timing = "back-to-back" if matrix.bandwidth else "call"
        self._draft.add({"line": number, "pair": pair, "time_s": time, "timing": timing})
