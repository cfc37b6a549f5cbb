"""Values of JSON, checked: a number that is one, whatever wrote it.

nccl-tests writes NaN as the text "nan", booleans as texts, and roots as padded texts; a file may also hold
what JSON calls a number and nobody could use (1e999). Nothing here raises: what is no number is None.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mc.logs.sink import Sink
from mc.logs.source import Source


def number(value: Any) -> float | None:
    """A finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def whole(value: Any) -> int | None:
    """A whole number that fits into 64 bits and is not negative, or None."""
    found = number(value)
    return int(found) if found is not None and found == int(found) and 0 <= found < 2**63 else None


def mapping(value: Any) -> Mapping[str, Any]:
    """An object; an empty one if it is none."""
    return value if isinstance(value, dict) else {}


def text(value: Any) -> str | None:
    """A text that is not empty, or None."""
    return value.strip() or None if isinstance(value, str) else None


def _parsed(written: str) -> Any:
    """The value of a JSON text; halves of surrogate pairs, which no file could keep, are replaced."""
    return json.loads(_SURROGATE.sub(r"\\ufffd", written) if "\\u" in written else written)


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


def document(source: Source, sink: Sink) -> Any:
    """The one JSON value that a file holds; raises LogError."""
    try:
        return _parsed(source.text())
    except json.JSONDecodeError as error:
        early = error.pos >= len(error.doc.rstrip()) - 1 or error.msg.startswith("Unterminated")
        what = (
            "ends before its value does, as a run that failed leaves it" if early else f"is none: {error.msg}"
        )
        raise sink.fail(f"expected JSON; the file {what}", error.lineno) from None
    except ValueError as error:
        # An integer of more digits than Python reads.
        raise sink.fail(f"expected JSON; {error}") from None


def records(source: Source, sink: Sink) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """Every object of a file of JSON lines, or of a file that is one list of objects, with its line.

    Lines that hold none are skipped.
    """
    for line, value in _values(source, sink):
        if isinstance(value, dict):
            yield line, value
        else:
            sink.skip("lines that hold no JSON object", line, str(value)[:80])


def _values(source: Source, sink: Sink) -> Iterator[tuple[int | None, Any]]:
    for line, written in source.lines():
        sink.lines = line
        if written is None:
            sink.skip("lines too long to be of a log", line)
        elif line == 1 and (written.strip() == "{" or written.lstrip().startswith("[")):
            yield from _list(source, sink)
            return
        elif written.strip(" \t,[]"):
            try:
                yield line, _parsed(written.strip().rstrip(","))
            except (ValueError, RecursionError):
                sink.skip("lines that are no JSON", line, written)


def _list(source: Source, sink: Sink) -> Iterator[tuple[int | None, Any]]:
    """The elements of a list, or of the lists that an object has."""
    value = document(source, sink)
    if isinstance(value, dict):
        lists = [each for each in value.values() if isinstance(each, list)]
        value = max(lists, key=len, default=[value])
    sink.lines = len(value)
    for each in value:
        yield None, each
