"""`tailstep collective`: what one collective costs by each algorithm, with idle links or under their noise."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from mc.cli.collective_answer import Answer, Question, Trials
from mc.cli.options import Overrides, say_fixed
from mc.config import COLLECTIVES, load_cluster
from mc.config.names import OBJECTIVES, Objective
from mc.document import did_you_mean
from mc.errors import InputError
from mc.units import Dimension, parse

if TYPE_CHECKING:
    from mc.exchange import FastestRange
    from mc.report.collective import CollectiveLine
    from mc.report.pictures.collective import DrawnCurve

_DEFAULT_SIZE = "64 MiB"


def collective(
    collective: Annotated[
        str,
        typer.Argument(metavar="COLLECTIVE", help=f"One of {', '.join(COLLECTIVES)}.", show_default=False),
    ],
    cluster: Annotated[
        str, typer.Option(help="A cluster file, or the name of a shipped one.")
    ] = "dgx-h100-superpod",
    ranks: Annotated[
        int | None,
        typer.Option(help="How many consecutive ranks take part; all by default.", show_default=False),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            help=f"Message size, of the whole buffer as in nccl-tests.  [default: {_DEFAULT_SIZE}]",
            show_default=False,
        ),
    ] = None,
    algorithm: Annotated[
        str, typer.Option(help="A name; `auto` for the best; `all` that can run on these ranks.")
    ] = "all",
    protocol: Annotated[
        str,
        typer.Option(
            help="Of the links: a name; `auto` for the fastest of each algorithm; `all`; `none` for plain latency "
            "and bandwidth."
        ),
    ] = "all",
    objective: Annotated[
        str | None,
        typer.Option(
            help="What `auto` and the order go by: the `floor` with links idle, or, with --distribution, the "
            "`mean` (the default there) or the `p99`.",
            show_default=False,
        ),
    ] = None,
    samples: Annotated[
        int, typer.Option(help="Trials of each algorithm, with --distribution.", min=200, max=1_000_000)
    ] = 2000,
    seed: Annotated[int, typer.Option(help="Of the trials.", min=0, max=2**32 - 1)] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw time and bus bandwidth against message size (.svg, .png, .pdf).",
            show_default=False,
        ),
    ] = None,
    overrides: Overrides = None,
    *,
    distribution: Annotated[
        bool,
        typer.Option(
            "--distribution", help="Sample times under the jitter and the link states of the cluster."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare the algorithms of a collective: time, bandwidths, rounds and bytes.

    Without --distribution links are idle and nothing jitters: this is the floor that random delays add to.
    Bandwidths are those of nccl-tests: algbw is size over time, busbw what it means for a link.
    """
    from mc.report.collective import collective_json
    from mc.report.pictures.base import check_plot

    question = _ask(collective, size, algorithm, protocol)
    goal = _goal(objective, distribution=distribution)
    if plot is not None:
        if collective == "barrier":
            raise InputError("--plot: a barrier has no sizes to draw; leave `--plot` out")
        check_plot(plot)
    config = load_cluster(cluster, overrides or ())
    say_fixed(config)
    answer = Answer(question, config, ranks)
    trials = Trials(samples, seed, goal) if distribution else None
    lines = answer.lines(trials)
    if as_json:
        print(json.dumps([collective_json(line) for line in lines], indent=2, allow_nan=False))
    else:
        _print(answer, lines, goal)
    if plot is not None:
        _draw(plot, answer, trials)


def _ask(collective: str, size: str | None, algorithm: str, protocol: str) -> Question:
    if collective not in COLLECTIVES:
        raise InputError(f"unknown collective `{collective}`; {did_you_mean(collective, COLLECTIVES)}")
    if collective == "barrier":
        if size is not None:
            raise InputError("--size: a barrier carries no data; leave `--size` out")
        return Question(collective, 0.0, algorithm, protocol)
    text = _DEFAULT_SIZE if size is None else size
    try:
        value = parse(text, Dimension.SIZE)
    except InputError as error:
        raise InputError(f"--size: {error}") from None
    if value <= 0:
        raise InputError(f"--size: expected a size above zero, such as 64 MiB; got {text}")
    return Question(collective, value, algorithm, protocol)


def _goal(objective: str | None, *, distribution: bool) -> Objective:
    if objective is None:
        return "mean" if distribution else "floor"
    if objective not in OBJECTIVES:
        raise InputError(f"--objective: unknown `{objective}`; {did_you_mean(objective, OBJECTIVES)}")
    if objective != "floor" and not distribution:
        raise InputError(
            f"--objective {objective}: expected `--distribution` with it, since idle links have one time"
        )
    return cast(Objective, objective)


def _fastest_text(ranges: "list[FastestRange]") -> str:
    from mc.report.pictures.axes import size_text

    named = [
        each.algorithm if each.protocol == "none" else f"{each.algorithm} ({each.protocol})"
        for each in ranges
    ]
    if len(ranges) == 1:
        return f"Fastest with links idle, 1 KiB to 16 GiB: {named[0]}."
    parts = [f"{name} up to {size_text(each.largest)}" for name, each in zip(named, ranges, strict=True)]
    return f"Fastest with links idle: {', '.join(parts[:-1])}, then {named[-1]}."


def _print(answer: Answer, lines: "list[CollectiveLine]", goal: Objective) -> None:
    from rich.console import Console

    from mc.report.collective import collective_table

    console = Console()
    table = collective_table(answer.question.title, lines, best="best" if goal == "floor" else f"best {goal}")
    # A pipe has no width (rich takes 80); the widest tables need more.
    console.width = max(console.width, Console(width=500).measure(table).maximum)
    where = answer.span_text()
    console.print(where, markup=False, highlight=False, soft_wrap=True)
    console.print(table)
    random = any(line.times is not None for line in lines)
    if random and all(line.method == "fixed" for line in lines):
        hint = "--set 'tiers.0.jitter={family: exponential, mean: 1 us}'"
        console.print()
        console.print(
            f"Nothing about these links is random; a tier's `jitter` or `congestion` would be: {hint}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    if len(lines) > 1 and (found := answer.fastest_ranges()):
        console.print()
        console.print(_fastest_text(found), markup=False, highlight=False)


def _draw(file: Path, answer: Answer, trials: Trials | None) -> None:
    import numpy as np

    from mc.collectives import bus_factor
    from mc.report.pictures.collective import DrawnCurve, plot_collective

    drawn = []
    for curve in answer.curves(trials):
        if not curve.times:
            drawn.append(DrawnCurve(curve.algorithm, curve.sizes, curve.floor))
            continue
        low, middle, high = (
            np.array([np.quantile(each.times, level) for each in curve.times]) for level in (0.01, 0.5, 0.99)
        )
        drawn.append(DrawnCurve(curve.algorithm, curve.sizes, middle, low, high))
    if trials is None:
        handovers = [each.largest for each in answer.fastest_ranges()[:-1]]
    else:
        handovers, text = _by_median(drawn)
        print(text, file=sys.stderr)
    plot_collective(
        file,
        f"{answer.question.collective}, {answer.ranks:,} ranks of {answer.config.name}",
        drawn,
        bus_factor=bus_factor(answer.question.collective, answer.ranks),
        handovers=handovers,
        band="median, band p1 to p99" if trials is not None else "",
    )
    print(f"drew {file}", file=sys.stderr)


def _by_median(drawn: "list[DrawnCurve]") -> tuple[list[float], str]:
    """Between which sizes the least median changes hands, and that in words."""
    import numpy as np

    from mc.report.pictures.axes import size_text

    sizes = drawn[0].sizes
    best = np.argmin(np.stack([curve.middle for curve in drawn]), axis=0)
    changes = np.flatnonzero(np.diff(best))
    handovers = [float(np.sqrt(sizes[place] * sizes[place + 1])) for place in changes]
    names = [drawn[best[place]].name for place in (*changes, sizes.size - 1)]
    parts = [f"{name} up to {size_text(size)}" for name, size in zip(names, handovers, strict=False)]
    return (
        handovers,
        f"Least median under noise: {', '.join([*parts, f'then {names[-1]}' if parts else names[-1]])}.",
    )
