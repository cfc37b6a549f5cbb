"""Progress on stderr: a bar for a person, a line now and then for a log, nothing for a short run.

Standard output belongs to the result, so that `tailstep run --json | jq` always works.
"""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from mc.report.times import duration

INTERVAL = 5.0
"""Seconds between two plain lines, and before the first."""


class Advance(Protocol):
    """Reports that `count` more are done."""

    def __call__(self, count: int = 1, /) -> None:
        """Counts them."""
        ...


@contextlib.contextmanager
def progress(
    label: str,
    *,
    total: int,
    stream: TextIO | None = None,
    interval: float = INTERVAL,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Advance]:
    """Shows how much of `total` is done, for as long as the block runs.

    Args:
        label: what is being done, such as `sampling`.
        total: how many there are to do.
        stream: where to show it; standard error by default. A bar if it is a terminal, plain lines otherwise.
        interval: seconds between plain lines; a run shorter than this prints none.
        clock: a steady clock in seconds.

    Yields:
        A function that takes how many more are done.
    """
    output: TextIO = sys.stderr if stream is None else stream
    shown = _bar(label, total, output) if output.isatty() else _lines(label, total, output, interval, clock)
    with shown as advance:
        yield advance


@contextlib.contextmanager
def _bar(label: str, total: int, stream: TextIO) -> Iterator[Advance]:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    # Transient: when the result appears, the bar has done its work.
    with Progress(*columns, console=Console(file=stream), transient=True) as bars:
        task = bars.add_task(label, total=total)

        def advance(count: int = 1, /) -> None:
            bars.advance(task, count)

        yield advance


@contextlib.contextmanager
def _lines(
    label: str, total: int, stream: TextIO, interval: float, clock: Callable[[], float]
) -> Iterator[Advance]:
    done, due = 0, clock() + interval
    # When the first were done and how many: they took compiling as well, which no later ones do.
    first: tuple[float, int] | None = None

    def advance(count: int = 1, /) -> None:
        nonlocal done, due, first
        done += count
        now = clock()
        if first is None:
            first = now, done
        if now < due or done >= total:
            return
        due = now + interval
        since, before = first
        left = (now - since) * (total - done) / (done - before) if done > before else None
        remaining = f", about {duration(left)} left" if left is not None else ""
        print(
            f"{label}: {done:,} of {total:,} ({100 * done / total:.0f} %){remaining}", file=stream, flush=True
        )

    yield advance
