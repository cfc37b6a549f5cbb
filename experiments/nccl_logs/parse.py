"""Reads what nccl-tests and rccl-tests print, as it is found on the web.

A row is `size count type redop root time algbw busbw`, with variants: the oldest releases have no root, some
authors cut columns away, launchers put `0: ` or `[1,0]<stdout>:` in front, and a debug message may cut a row in
two, whose second half then stands on a line of its own. Everything else in a log is passed over. Times are
those of the out-of-place half.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Size, count, type, operation and root; then, if nothing came between, time, algbw and busbw.
_HEAD = re.compile(
    r"(?<![\d.])(?P<size>\d+)\s+(?P<count>\d+)\s+(?P<type>u?int\d*|float\d*|half|double|bfloat16|bf16)"
    r"\s+(?P<op>sum|prod|min|max|avg|none)(?P<rest>.*)"
)
_TIMES = re.compile(r"^\s*(?P<time>\d+\.?\d*)\s+(?P<algbw>\d+\.\d+)\s+(?P<busbw>\d+\.\d+)")
_ROOT = re.compile(r"^\s*-?\d+(?![\d.])")
# What separates the parts of a log: `### GPUS=4`, `====== 2-node ======`.
_SECTION = re.compile(r"^(?:#{2,}|={3,})\s*(?P<title>[^=#].*?)\s*=*$")
_HEADER = re.compile(r"^## (?P<key>[a-z_]+): (?P<value>.*)$")


@dataclass(frozen=True)
class LogRow:
    """One line of a table.

    Attributes:
        section: the heading it stands under, or nothing.
        size: bytes.
        time: seconds, out of place.
        ratio: busbw over algbw, which tells the number of ranks; None where both are rounded to little.
    """

    section: str
    size: int
    time: float
    ratio: float | None


def rows(text: str) -> Iterator[LogRow]:
    """The rows of a log, in its order; empty messages are left out."""
    section, pending = "", None
    for line in text.splitlines():
        title = None if _HEADER.match(line) else _SECTION.match(line)
        if title:
            section = title["title"]
            continue
        head = _HEAD.search(line)
        if head is not None:
            pending = int(head["size"])
            rest = head["rest"]
            times = _TIMES.match(rest) or _TIMES.match(_ROOT.sub("", rest, count=1))
            # The first column after the operation is the root, unless the release is an old one.
            root = _ROOT.match(rest)
            if root is not None:
                times = _TIMES.match(rest[root.end() :]) or times
        else:
            times = _TIMES.match(line) if pending is not None else None
        if times is not None and pending is not None:
            if pending > 0:
                algbw, busbw = float(times["algbw"]), float(times["busbw"])
                yield LogRow(
                    section, pending, float(times["time"]) * 1e-6, busbw / algbw if algbw >= 10 else None
                )
            pending = None


def headers(text: str) -> dict[str, str]:
    """The `## key: value` lines at the top of a log, where somebody wrote down what it is of."""
    found = (_HEADER.match(line) for line in text.splitlines())
    return {match["key"]: match["value"] for match in found if match}


def all_reduce_logs(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and text of every log of an all-reduce in a folder."""
    for path in sorted(folder.glob("*.txt")):
        text = path.read_text(encoding="utf-8", errors="replace")
        if headers(text).get("op", "").startswith("all_reduce"):
            yield path.stem, text
