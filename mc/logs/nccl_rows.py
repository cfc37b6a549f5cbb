"""One row of a table of nccl-tests or rccl-tests, in any of its dialects.

A row is `size count type [redop] [root]`, then one half for calls out of place and one for calls in place:
`time algbw busbw [#wrong] [#bitdiff] [i_min i_max i_p99 i_cv%]`, then perhaps a date. Which of the columns in
brackets there are is what the heading says; without a heading it is told from the number of columns, since
only the root is a whole number that may be negative and bandwidths always have a decimal point. Times are
microseconds and bandwidths GB/s in every release (nccl-tests, src/util.cu, src/common.cu).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mc.logs.names import DATATYPE_BYTES, REDUCTIONS
from mc.logs.printed import Printed, printed

HEAD = re.compile(
    r"(?P<size>\d{1,19})\s+(?P<count>\d{1,19})\s+(?P<type>"
    + "|".join(sorted(DATATYPE_BYTES, key=len)[::-1])
    + r")\b"
)
_DATE = re.compile(r"\s+\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s*$")
_WHOLE = re.compile(r"-?\d+")
# Where no call out of place was made, its half is blank.
_BLANK_HALF = re.compile(r"^\s*(?:-?\d+)?\s{26,}\S")
_HALF = ("time", "algbw", "busbw")
_PER_ITERATION = ("i_min", "i_max", "i_p99", "i_cv%")


@dataclass(frozen=True)
class Half:
    """The figures of one placement.

    Attributes:
        time: microseconds.
        algbw: GB/s.
        busbw: GB/s.
        wrong: elements; None where that was not checked.
        least: microseconds, over iterations; None without per-iteration columns, as those below.
        most: likewise.
        p99: likewise.
        variation: standard deviation in percent of the mean.
    """

    time: Printed
    algbw: Printed
    busbw: Printed
    wrong: float | None = None
    least: float | None = None
    most: float | None = None
    p99: float | None = None
    variation: float | None = None


@dataclass(frozen=True)
class Head:
    """What stands left of the times.

    Attributes:
        size: bytes.
        count: elements.
        datatype: as printed.
        reduction: as printed; empty if the table has no such column.
        root: None if the table has no such column.
        rest: what follows.
    """

    size: int
    count: int
    datatype: str
    reduction: str
    root: int | None
    rest: str


@dataclass(frozen=True)
class Layout:
    """The columns of a table, as its heading has them.

    Attributes:
        has_root: whether there is a root.
        halves: the columns of each half.
    """

    has_root: bool
    halves: tuple[tuple[str, ...], ...]


def read_layout(text: str) -> Layout | None:
    """The layout that a heading `size count type redop root time algbw busbw #wrong ...` describes."""
    if "algbw" not in text:
        return None
    words = [word.lower().lstrip("#") for word in text.replace("# ", " ").split()]
    if words[:3] != ["size", "count", "type"]:
        return None
    first = next((place for place, word in enumerate(words) if word in ("time", "cputime")), None)
    if first is None:
        return None
    halves: list[list[str]] = []
    for word in words[first:]:
        if word in ("time", "cputime"):
            halves.append([])
        if word != "timestamp":
            halves[-1].append({"cputime": "time", "error": "wrong"}.get(word, word))
    if not all(set(_HALF) <= set(half) for half in halves[:2]):
        return None
    return Layout("root" in words[:first], tuple(tuple(half) for half in halves[:2]))


def read_head(text: str) -> Head | None:
    """The left side of a row, or None if the text is no row."""
    stripped = text.lstrip(" \t|>*`")
    if not stripped[:1].isdigit():
        return None
    match = HEAD.match(stripped)
    if match is None:
        return None
    rest = stripped[match.end() :]
    word = re.match(r"\s+([A-Za-z]\w*)(?=[\s-]|$|\d)", rest)
    reduction = ""
    if word is not None and word[1] in REDUCTIONS:
        reduction, rest = word[1], rest[word.end() :]
    return Head(int(match["size"]), int(match["count"]), match["type"], reduction, None, rest)


class RowError(ValueError):
    """A row that cannot be read; the text is the reason it is skipped for."""


def read_halves(rest: str, layout: Layout | None) -> tuple[int | None, dict[bool, Half], bool]:
    """The root, the halves by whether they are in place, and whether the row has ended.

    Args:
        rest: what follows the reduction, possibly of several lines joined.
        layout: of the table; None without a heading.

    Raises:
        RowError: the figures fit no dialect.
    """
    rest = _DATE.sub("", rest)
    words = rest.split()
    if layout is None:
        layout = _guess(words)
    root = None
    if layout.has_root and words and _WHOLE.fullmatch(words[0]):
        root, words = int(words[0]), words[1:]
    first_in_place = len(layout.halves) == 2 and _BLANK_HALF.match(rest) is not None
    halves: dict[bool, Half] = {}
    order = (
        ((True, layout.halves[-1]),)
        if first_in_place
        else tuple(zip((False, True), layout.halves, strict=False))
    )
    for in_place, names in order:
        if len(words) < 3:
            return root, halves, False
        halves[in_place] = _half(dict(zip(names, words, strict=False)))
        words = words[len(names) :]
    if words:
        raise RowError("a row with more columns than its heading")
    return root, halves, True


def _half(words: dict[str, str]) -> Half:
    if not all(name in words for name in _HALF):
        raise RowError("rows cut short: a time without its bandwidths")
    figures = {name: printed(words[name]) for name in _HALF}
    time, algbw, busbw = (figures[name] for name in _HALF)
    if time is None or algbw is None or busbw is None:
        bad = next(words[name] for name in _HALF if figures[name] is None)
        kind = "no number" if bad.lower().lstrip("+-") not in ("nan", "inf", "infinity") else bad
        raise RowError(f"a row with {kind} where a time or bandwidth should be")

    def other(name: str) -> float | None:
        found = printed(words.get(name, ""))
        return None if found is None else found.value

    wrong = other("wrong")
    if words.get("wrong", "").endswith("*"):
        # How rccl-tests marks an error beyond its tolerance.
        wrong = 1.0
    if wrong is not None and 0 < wrong < 1:
        # Until 2.12 the column was the relative error, of the size of a rounding.
        wrong = 0.0
    return Half(time, algbw, busbw, wrong, *(other(name) for name in _PER_ITERATION))


def _guess(words: Sequence[str]) -> Layout:
    """The layout by the number of columns: of halves of 8, 4 or 3, and a root before them or not."""
    for root in (0, 1):
        count = len(words) - root
        if root and not (words and _WHOLE.fullmatch(words[0])):
            continue
        for halves in (2, 1):
            for length in (8, 4, 3):
                if count == halves * length and _fits(words[root:], length):
                    names = (*_HALF, "wrong", *_PER_ITERATION)[:length]
                    return Layout(bool(root), (names,) * halves)
    # Cut short: as much of the usual layout as is there.
    has_root = bool(words) and _WHOLE.fullmatch(words[0]) is not None and len(words) % 4 in (0, 1)
    return Layout(has_root, ((*_HALF, "wrong"), (*_HALF, "wrong")))


def _fits(words: Sequence[str], length: int) -> bool:
    """Whether the bandwidths of each half have a decimal point, as they always do."""
    return all("." in words[start + place] for start in range(0, len(words), length) for place in (1, 2))
