"""`tailstep collective`: what one collective costs by each algorithm, with idle links or under their noise."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from mc.cli.options import Overrides, say_fixed
from mc.config import COLLECTIVES, ClusterConfig, load_cluster
from mc.config.names import OBJECTIVES, Objective
from mc.document import did_you_mean
from mc.errors import InputError
from mc.units import Dimension, format_quantity, parse

if TYPE_CHECKING:
    from mc.collectives import Row
    from mc.exchange import Curve, Reign, Way
    from mc.fabric import Cluster
    from mc.report.collective import CollectiveLine
    from mc.report.plot import DrawnCurve

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
    from mc.report.plot import check_plot

    question = _ask(collective, size, algorithm, protocol)
    goal = _goal(objective, distribution=distribution)
    if plot is not None:
        if collective == "barrier":
            raise InputError("--plot: a barrier has no sizes to draw; leave `--plot` out")
        check_plot(plot)
    config = load_cluster(cluster, overrides or ())
    say_fixed(config)
    answer = _Answer(question, config, ranks)
    trials = _Trials(samples, seed, goal) if distribution else None
    lines = answer.lines(trials)
    if as_json:
        print(json.dumps([collective_json(line) for line in lines], indent=2, allow_nan=False))
    else:
        _print(answer, lines, goal)
    if plot is not None:
        _draw(plot, answer, trials)


@dataclass(frozen=True)
class _Question:
    """What to price: a collective that exists, and a size in bytes that suits it."""

    collective: str
    size: float
    algorithm: str
    protocol: str

    @property
    def title(self) -> str:
        size = f" of {format_quantity(self.size, Dimension.SIZE)}" if self.size else ""
        return f"{self.collective}{size}"


@dataclass(frozen=True)
class _Trials:
    """How to sample."""

    samples: int
    seed: int
    objective: Objective


def _ask(collective: str, size: str | None, algorithm: str, protocol: str) -> _Question:
    if collective not in COLLECTIVES:
        raise InputError(f"unknown collective `{collective}`; {did_you_mean(collective, COLLECTIVES)}")
    if collective == "barrier":
        if size is not None:
            raise InputError("--size: a barrier carries no data; leave `--size` out")
        return _Question(collective, 0.0, algorithm, protocol)
    text = _DEFAULT_SIZE if size is None else size
    try:
        value = parse(text, Dimension.SIZE)
    except InputError as error:
        raise InputError(f"--size: {error}") from None
    if value <= 0:
        raise InputError(f"--size: expected a size above zero, such as 64 MiB; got {text}")
    return _Question(collective, value, algorithm, protocol)


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


class _Answer:
    """A question put to a cluster."""

    def __init__(self, question: _Question, config: ClusterConfig, ranks: int | None):
        import jax

        from mc.fabric import build_cluster, span

        self.question, self.config = question, config
        # Double precision keeps numbers at the border free of rounding; nothing here is large.
        with jax.enable_x64(True):
            self.exact = build_cluster(config)
        self.ranks = self.exact.size if ranks is None else ranks
        # Says at once if the group does not fit.
        span(self.exact, self.ranks)

    def lines(self, trials: _Trials | None) -> "list[CollectiveLine]":
        """All ways that were asked for, the best first."""
        import jax

        from mc.collectives import evaluate
        from mc.report.collective import CollectiveLine

        ask = self.question
        with jax.enable_x64(True):
            rows = evaluate(
                self.exact, ask.collective, self.ranks, ask.size, ask.algorithm, protocol=ask.protocol
            )
        if trials is not None:
            return [_sampled_line(way, trials.samples) for way in self._ways(trials)]
        return [
            CollectiveLine(
                row.algorithm,
                row.protocol,
                row.time,
                row.algorithm_bandwidth,
                row.bus_bandwidth,
                row.rounds,
                row.bytes_per_rank,
                model=ends,
            )
            for row, ends in zip(rows, self._model(rows), strict=True)
        ]

    def _model(self, rows: "list[Row]") -> "list[tuple[float, float] | None]":
        """Intervals of the rows' times from figures that a calibration left uncertain."""
        if self.config.posterior is None:
            return [None] * len(rows)
        from mc.sensitivity import collective_intervals

        ask = self.question
        return collective_intervals(self.config, rows, ask.collective, self.ranks, ask.size)

    def _ways(self, trials: _Trials) -> "list[Way]":
        import jax

        from mc.collectives import plans
        from mc.exchange import compare
        from mc.fabric import build_cluster, build_link_noise
        from mc.report import progress

        ask = self.question
        cluster = build_cluster(self.config)
        noise = build_link_noise(self.config, self.ranks).prepared()
        asked = "all" if ask.algorithm == "auto" else ask.algorithm
        count = len(plans(cluster, ask.collective, self.ranks, ask.size, asked, protocol=ask.protocol))
        with progress("sampling", total=count) as advance:
            return compare(
                cluster,
                ask.collective,
                self.ranks,
                ask.size,
                noise,
                jax.random.key(trials.seed, impl="threefry2x32"),
                algorithm=ask.algorithm,
                protocol=ask.protocol,
                objective=trials.objective,
                samples=trials.samples,
                advance=advance,
            )

    def curves(self, trials: _Trials | None) -> "list[Curve]":
        """Every algorithm over message sizes."""
        import jax

        from mc.exchange import curves, sizes_between
        from mc.fabric import build_cluster, build_link_noise
        from mc.report import progress

        ask, random = self.question, trials is not None
        sizes = sizes_between(per_octave=0.5 if random else 4)
        key = jax.random.key(trials.seed, impl="threefry2x32") if trials is not None else None
        with progress("drawing", total=sizes.size) as advance:
            return curves(
                build_cluster(self.config),
                ask.collective,
                self.ranks,
                sizes,
                algorithm=ask.algorithm,
                protocol=ask.protocol,
                noise=build_link_noise(self.config, self.ranks).prepared() if random else None,
                key=key,
                advance=advance,
            )

    def reigns(self) -> "list[Reign]":
        """Which way is the fastest at which sizes."""
        import jax

        from mc.exchange import reigns

        if self.question.collective == "barrier" or self.ranks == 1:
            return []
        with jax.enable_x64(True):
            return reigns(self.exact, self.question.collective, self.ranks, protocol=self.question.protocol)


def _sampled_line(way: "Way", wanted: int) -> "CollectiveLine":
    from mc.estimate import estimate
    from mc.report.collective import CollectiveLine

    row, sampled = way.row, way.sampled
    return CollectiveLine(
        row.algorithm,
        row.protocol,
        sampled.floor,
        row.algorithm_bandwidth,
        row.bus_bandwidth,
        row.rounds,
        row.bytes_per_rank,
        estimate(sampled.times),
        sampled.method,
        sampled.relative_error,
        wanted,
    )


def _span_text(cluster: "Cluster", ranks: int) -> str:
    from mc.fabric import is_even, span

    extents = span(cluster, ranks)
    if not extents:
        return f"1 rank of {cluster.name} spans no tier"
    parts = " x ".join(f"{extent.tier.name} ({extent.units})" for extent in extents)
    uneven = "" if is_even(extents) else ", unevenly"
    return f"{ranks} ranks of {cluster.name} span {parts}{uneven}"


def _reign_text(reigns: "list[Reign]") -> str:
    from mc.report.plot import size_text

    named = [
        each.algorithm if each.protocol == "none" else f"{each.algorithm} ({each.protocol})"
        for each in reigns
    ]
    if len(reigns) == 1:
        return f"Fastest with links idle, 1 KiB to 16 GiB: {named[0]}."
    parts = [f"{name} up to {size_text(each.largest)}" for name, each in zip(named, reigns, strict=True)]
    return f"Fastest with links idle: {', '.join(parts[:-1])}, then {named[-1]}."


def _print(answer: _Answer, lines: "list[CollectiveLine]", goal: Objective) -> None:
    from rich.console import Console

    from mc.report.collective import collective_table

    console = Console()
    table = collective_table(answer.question.title, lines, best="best" if goal == "floor" else f"best {goal}")
    # A pipe has no width (rich takes 80); the widest tables need more.
    console.width = max(console.width, Console(width=500).measure(table).maximum)
    where = _span_text(answer.exact, answer.ranks)
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
    if len(lines) > 1 and (found := answer.reigns()):
        console.print()
        console.print(_reign_text(found), markup=False, highlight=False)


def _draw(file: Path, answer: _Answer, trials: _Trials | None) -> None:
    import numpy as np

    from mc.collectives import bus_factor
    from mc.report.plot import DrawnCurve, plot_collective

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
        handovers = [each.largest for each in answer.reigns()[:-1]]
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

    from mc.report.plot import size_text

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
