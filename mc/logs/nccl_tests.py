"""The text that nccl-tests and rccl-tests print, as it is found in logs.

A log is a mixture of what the program, NCCL, the launcher and the shell wrote, with labels in front, several
tables one after the other, and rows that a message cut in two. So lines are sorted by what they are: the
program's comments say which collective, which devices and how many iterations; rows are read by
`mc.logs.nccl_rows`; NCCL's messages by `mc.logs.nccl_messages`. A row that is not complete waits for the
next line of its process.

What a table does not say is inferred, in this order, and the report says how: the collective from the
program's name, from an annotation `## op: ...` at the top of the file, from the file's name, from the columns;
the ranks from the devices listed, from NCCL's messages, from size and count, from busbw/algbw.
"""

import re
from dataclasses import dataclass, field

from mc.logs.names import nccl_version
from mc.logs.nccl_messages import Messages, split_message
from mc.logs.nccl_rows import Head, Layout, RowError, read_halves, read_head, read_layout
from mc.logs.nccl_table import NcclTable, Run
from mc.logs.nccl_tuning import Tuning
from mc.logs.prefixes import without_prefix
from mc.logs.sink import Sink
from mc.logs.source import Source

NAME = "nccl-tests"

_RANK = re.compile(
    r"Rank\s+(?P<rank>\d+)(?: Group\s+\d+)? Pid\s+\d+ on\s+(?P<host>\S+)\s+device\s+\d+ \[[^\]]*\] (?P<device>.*)"
)
_BANNER = re.compile(
    r"(?P<program>nccl-tests|rccl-tests)\W+[Vv]ersion\W+(?P<version>\S+)(?:.*nccl-library=(?P<library>\d+))?"
)
_PROGRAM = re.compile(r"\b(?P<program>[a-z_0-9]+_perf)\b")
_SETTINGS = re.compile(
    r"nThread\s+\d+ nGpus\s+\d+ .*?(?<!warmup )iters: (?P<iterations>\d+)(?:.*agg iters: (?P<together>\d+))?"
)
_SECTION = re.compile(r"^(?:#{2,}|={3,})\s*(?P<title>[^=#].*?)\s*=*$")
_UNITS = re.compile(r"^\W*\(B\)\s+\(elements\)(?P<units>.*)$")
_KNOWN_COMMENT = re.compile(
    r"^\s*(?:Out of bounds|Avg bus bandwidth|Collective test|Using devices|Reducing maxBytes|out-of-place|"
    r"Errors with asterisks|Blocking Enabled|Parallel Init|Per-Iteration|Writing JSON|GPU memory usage|$)"
)
# What stands between the lines of a table and is none of it, and what to call it.
_LIBRARIES = "messages of launchers and libraries"
_FOREIGN = (
    (re.compile(r"^\+"), "traces of the shell"),
    (re.compile(r"^(?:```|\.\.\.|\[\.\.\.|…)"), "marks of rows that somebody left out"),
    (
        re.compile(
            r"\b(?:WARN|WARNING|ERROR|UCX|libfabric|OFI|MPICH|PMI|hwloc|slurm|srun|prte|mpirun)\b", re.I
        ),
        _LIBRARIES,
    ),
    (re.compile(r"cpu-bind=|mask 0x"), _LIBRARIES),
    (
        re.compile(r"^(?:HIP|ROCm|RCCL|NCCL|CUDA|Hostname|Librccl|rccl-tests|nccl-tests)\b", re.I),
        "versions and places of libraries",
    ),
)
# What the comments that say something have in them.
_WORDS = ("Rank", "nccl-tests", "rccl-tests", "Collective test", "nThread", "Using devices")
# Of a file that is hardly a log, only so many lines are told apart by what they are instead of rows.
_CLASSIFIED = 20_000
_OTHER = "lines that are no row of a table"


@dataclass
class _Stream:
    """The lines of one process: its layout, and the row it has not finished."""

    layout: Layout | None = None
    head: Head | None = None
    line: int = 0
    rest: str = ""
    done: set[bool] = field(default_factory=set)


class NcclReader:
    """Reads one log."""

    def __init__(self, sink: Sink):
        """Args: sink takes what is found."""
        self.sink = sink
        self.tuning = Tuning(sink.source.name)
        self._run = Run()
        self._messages = Messages()
        self._section = ""
        self._skipped = 0
        self._table: NcclTable | None = None
        self._streams: dict[str, _Stream] = {}

    def read(self, source: Source) -> None:
        """All lines."""
        for number, line in source.lines():
            self.sink.lines = number
            if line is None:
                self.sink.skip("lines too long to be of a log", number)
            elif "\0" in line:
                self.sink.skip("lines with NUL bytes", number)
            else:
                self._line(number, line)
        for stream in self._streams.values():
            self._abandon(stream)
        self._close()
        if self._messages.count:
            self.sink.remark(f"{self._messages.count:,} messages of NCCL")

    def _line(self, number: int, line: str) -> None:
        text, label = without_prefix(line)
        text, message = split_message(text)
        if message is not None:
            self._messages.hear(message)
            self.tuning.hear(message, number, self._messages)
        if not text.strip():
            return
        stream = self._streams.setdefault(label, _Stream()) if len(self._streams) < 4096 else _Stream()
        head = read_head(text)
        if head is not None:
            self._abandon(stream)
            stream.head, stream.line, stream.rest, stream.done = head, number, head.rest, set()
            self._advance(stream, ended=message is None)
        elif stream.head is not None and _continues(text):
            stream.rest += f" {text}"
            self._advance(stream, ended=message is None)
        elif message is None or text.strip():
            self._remark(number, text, stream)

    def _advance(self, stream: _Stream, *, ended: bool) -> None:
        """Takes the halves that are complete; `ended` says that the line was not cut by a message."""
        head = stream.head
        assert head is not None
        if len(stream.rest.split()) < 4 and not (ended and len(stream.rest.split()) == 3):
            return
        try:
            root, halves, complete = read_halves(stream.rest, stream.layout)
        except RowError as error:
            self.sink.skip(str(error), stream.line, f"{head.size} {head.count} {head.datatype} {stream.rest}")
            stream.head = None
            return
        for in_place, half in halves.items():
            if in_place not in stream.done:
                stream.done.add(in_place)
                self._open().add(head, root, in_place=in_place, half=half, line=stream.line)
        # Without a heading one half is all there is, unless a message cut the row in two.
        if complete and (stream.layout is not None or len(halves) == 2 or ended):
            stream.head = None

    def _abandon(self, stream: _Stream) -> None:
        """A row that nothing followed is cut short."""
        head, stream.head = stream.head, None
        if head is not None:
            what = "rows cut short: one half is missing" if stream.done else "rows cut short: no time"
            self.sink.skip(what, stream.line, f"{head.size} {head.count} {head.datatype} {stream.rest}")

    def _open(self) -> NcclTable:
        if self._table is None:
            self._table = NcclTable(self.sink, self._run, self._messages, self._section)
        return self._table

    def _close(self) -> None:
        if self._table is not None:
            self._table.close()
            self._table = None

    def _remark(self, number: int, text: str, stream: _Stream) -> None:
        """A line that is neither a row nor a message."""
        if self.sink.note(text):
            return
        if (layout := read_layout(text)) is not None:
            self._abandon(stream)
            if self._table is not None and not self._table.is_empty and stream.layout is not None:
                self._close()
            stream.layout = layout
            return
        if "(B)" in text and (units := _UNITS.match(text)) is not None:
            self._check_units(number, units["units"])
            return
        if text.startswith(("##", "===")) and (section := _SECTION.match(text)) is not None:
            self._close()
            self._section = section["title"]
            return
        comment = text.lstrip(" \t#")
        if any(word in comment for word in _WORDS) and self._program_says(comment):
            return
        self._messages.hear_version(text)
        if "_perf" in text and (program := _PROGRAM.search(text)) is not None:
            self._run.program = self._run.program or program["program"]
        if not text.lstrip().startswith("#"):
            self._skip(number, text, comment)

    def _skip(self, number: int, text: str, comment: str) -> None:
        """A line that says nothing."""
        self._skipped += 1
        if self._skipped > _CLASSIFIED:
            self.sink.skip(_OTHER, number, text)
        elif not _KNOWN_COMMENT.match(comment):
            self.sink.skip(
                next((name for pattern, name in _FOREIGN if pattern.search(text)), _OTHER), number, text
            )

    def _program_says(self, comment: str) -> bool:
        """Takes in a comment of the program; whether it was one."""
        run = self._run
        if (rank := _RANK.match(comment)) is not None:
            run.hosts[int(rank["rank"])] = rank["host"]
            run.device = run.device or rank["device"].strip() or None
            return True
        if comment.startswith(("Collective test starting", "Collective test concluded")):
            program = _PROGRAM.search(comment)
            if "starting" in comment:
                run = self._begin()
            run.program = program["program"] if program else run.program
            if "concluded" in comment:
                if self._table is not None:
                    self._table.close()
                    self._table = None
                self._run = Run(software=run.software)
            return True
        if (banner := _BANNER.match(comment)) is not None:
            run = self._begin()
            run.software = (
                f"NCCL {nccl_version(int(banner['library']))}" if banner["library"] else run.software
            )
            return True
        if (settings := _SETTINGS.match(comment)) is not None:
            run = self._begin()
            run.iterations = int(settings["iterations"])
            run.aggregated = int(settings["together"] or 1)
            return True
        if comment.startswith("Using devices"):
            run.hosts.clear()
            return True
        return False

    def _begin(self) -> Run:
        """A program begins, unless it has only been announcing itself."""
        if self._table is not None or self._run.hosts:
            self._close()
            self._run = Run(software=self._run.software)
            self._messages.forget_calls()
            for stream in self._streams.values():
                stream.layout = None
        return self._run

    def _check_units(self, number: int, text: str) -> None:
        units = [unit for unit in re.findall(r"\(([^)]*)\)", text) if unit != "%"]
        strange = sorted(set(units) - {"us", "GB/s"})
        if strange:
            raise self.sink.fail(
                f"expected times in us and bandwidths in GB/s, as nccl-tests prints; got {', '.join(strange)}",
                number,
            )


def _continues(text: str) -> bool:
    """Whether a line can be the rest of a row: it is all figures, or `N/A`."""
    words = text.split()
    return 1 <= len(words) <= 18 and all(
        word == "N/A" or word[-1].isdigit() or word[-1] == "*" for word in words
    )


def read_nccl(source: Source, sink: Sink) -> NcclReader:
    """Reads a log of nccl-tests, rccl-tests or of NCCL's messages alone."""
    reader = NcclReader(sink)
    reader.read(source)
    return reader
