"""A fit's progress on stderr: which pass it is in and what the loss has come to."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


@contextlib.contextmanager
def fitting(total: int, stream: TextIO | None = None) -> Iterator[Callable[[str, float], None]]:
    """Shows the passes of a fit for as long as the block runs: a bar on a terminal, else one line for each pass.

    Args:
        total: how many reports there will be.
        stream: where to; standard error by default.

    Yields:
        A function that takes the name of the pass and the loss.
    """
    output: TextIO = sys.stderr if stream is None else stream
    if not output.isatty():
        last: list[str] = []

        def line(label: str, loss: float) -> None:
            if label not in last:
                print(f"{label}: loss {loss:.4g}", file=output, flush=True)
            last.append(label)

        yield line
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(file=output), transient=True) as bars:
        task = bars.add_task("compiling", total=total, loss="-")

        def advance(label: str, loss: float) -> None:
            bars.update(task, advance=1, description=label, loss=f"{loss:.4g}")

        yield advance
