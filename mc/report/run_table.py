"""The report of `tailstep run` on a terminal: how long a step takes, where its time goes, how to repeat it.

Names come from the user's files and may hold anything; they are wrapped in `Text`, which renders no markup.
"""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mc.estimate import Estimate, Part
from mc.report.bar import ShareBar
from mc.report.command import CommandLine
from mc.report.serving import serving_rows
from mc.report.times import TimeScale, duration, scale_for
from mc.results import ModelIntervals, RunResult

# Parts of a step below this share, which is shown as 0.0 %, set no decimals.
_NEXT_TO_NOTHING = 5e-4
LABELS = {"mean": "mean", "p50": "p50 (median)", "p95": "p95", "p99": "p99", "p99_9": "p99.9"}


def run_table(result: RunResult) -> Group:
    """The whole report as one renderable for a rich console."""
    return Group(
        _header(result),
        Text(),
        _quantiles(result),
        Text(),
        _waterfall(result),
        Text(),
        *_training(result),
        *([] if result.serving is None else serving_rows(result.serving)),
        _costs(result),
        Text(),
        _footer(result),
    )


def _header(result: RunResult) -> RenderableType:
    lines = [Text(result.name, style="bold")]
    if result.description:
        lines.append(Text(result.description.strip(), style="dim"))
    lines.append(Text(f"{result.cluster_name}: {result.ranks:,} {'rank' if result.ranks == 1 else 'ranks'}"))
    return Group(*lines, *(Padding(Text(tier), (0, 0, 0, 2)) for tier in result.tiers))


def _quantiles(result: RunResult) -> Table:
    estimates = result.estimates
    scale = scale_for(found for _, found in estimates.items())
    level, model = f"{100 * estimates.confidence:g} %", result.model
    headings = (f"{level} interval",) if model is None else (f"sampling, {level}", f"model, {level}")
    table = _table("step time", scale.unit, *headings)
    for name, found in estimates.items():
        ends = [] if model is None else [Estimate(found.value, *model.ends[name])]
        table.add_row(
            LABELS[name], scale.number(found.value), *(_interval(each, scale) for each in (found, *ends))
        )
    return table


def _waterfall(result: RunResult) -> Table:
    is_plain = result.training is None and result.serving is None
    # What takes no time at all is left out where there are many parts.
    parts = [part for part in result.waterfall.parts if part.time.value or is_plain]
    scale = waterfall_scale(parts)
    table = _table(
        "where the mean goes", scale.unit, f"{100 * result.estimates.confidence:g} % interval", "share"
    )
    table.add_column("", justify="left")
    for part in parts:
        table.add_row(
            Text(part.name.replace("_", " ")),
            scale.number(part.time.value),
            _interval(part.time, scale),
            f"{100 * part.share:.1f} %",
            ShareBar(part.share),
        )
    table.add_section()
    table.add_row("sum", scale.number(result.waterfall.total), "", "100.0 %", "")
    return table


def waterfall_scale(parts: Sequence[Part]) -> TimeScale:
    """The scale of parts of a step; what takes next to no time sets no decimals."""
    large = [part.time for part in parts if abs(part.share) > _NEXT_TO_NOTHING]
    return scale_for(large or [part.time for part in parts])


def _training(result: RunResult) -> list[RenderableType]:
    training = result.training
    if training is None:
        return []
    grid = _pairs()
    grid.add_row("plan", Text(f"{training.plan}; {training.parameters / 1e9:,.1f} billion parameters"))
    grid.add_row("throughput", f"{training.tokens_per_s.value:,.0f} tokens/s, {training.tokens:,} a step")
    again = f" (with recomputation {100 * training.hfu.value:.1f} %)" if training.hfu != training.mfu else ""
    utilisation = f"{100 * training.mfu.value:.1f} % of the peak{again}"
    grid.add_row("utilisation", f"{training.tflops_per_chip.value:,.0f} TFLOP/s a chip: {utilisation}")
    grid.add_row("bubble", f"{100 * training.bubble_fraction:.1f} % of a step without noise")
    exposed = ", ".join(f"{name} {duration(seconds)}" for name, seconds in training.exposed_s.items())
    grid.add_row("waiting for", Text(f"{exposed or 'nothing'} a step without noise"))
    memory = training.memory_bytes
    kinds = ", ".join(
        f"{name} {memory[name] / 1e9:.1f}" for name in memory if name not in ("total", "available")
    )
    room = f" of {memory['available'] / 1e9:.0f}" if "available" in memory else ""
    grid.add_row("memory", f"{memory['total'] / 1e9:.1f}{room} GB on the fullest rank ({kinds})")
    if training.dropped:
        grid.add_row("dropped", f"{100 * training.dropped:.2f} % of the tokens' choices of experts")
    if training.goodput is not None:
        found = training.goodput
        grid.add_row(
            "goodput",
            f"{100 * found.effective_ratio:.1f} % of the time goes forward, with "
            f"{found.interruptions_per_day:.2g} interruptions a day and a checkpoint every "
            f"{duration(found.checkpoint_interval_s)}",
        )
    return [grid, Text()]


def _costs(result: RunResult) -> Table:
    slowest = result.slowest_rank
    lost = slowest.chip_hours_per_hour
    grid = _pairs()
    grid.add_row(
        "slowest rank",
        f"costs {duration(slowest.wait.value)} a step ({100 * slowest.share.value:.1f} %): "
        f"{_count(lost.value)} of {result.ranks:,} chip-hours an hour are spent waiting",
    )
    grid.add_row(
        "ideal network",
        f"would take {duration(result.ideal_step_time)} a step: the speed-up would be {result.slowdown:.3g}x",
    )
    return grid


def _footer(result: RunResult) -> Group:
    steps = f"{result.samples.size:,} steps in {result.realisations:,} "
    steps += "realisation" if result.realisations == 1 else "realisations"
    grid = _pairs()
    grid.add_row("samples", f"{steps}, method {result.method}, {result.samples_per_s:,.0f} a second")
    if result.model is not None:
        grid.add_row("model", Text(_model(result.model)))
    grid.add_row("elapsed", duration(result.elapsed_s))
    grid.add_row("seed", str(result.seed))
    grid.add_row("configuration", result.config_hash)
    # Outside the grid, whose cells are padded: a backslash continues a line only as its last character.
    return Group(grid, Text("run again", style="bold"), CommandLine(result.command))


def _model(model: ModelIntervals) -> str:
    how = "steps shifted by the step without noise" if model.method == "shifted" else "steps drawn for each"
    matter = "" if model.matters else "; none of them matters here"
    figures = "figure" if model.figures == 1 else "figures"
    return f"{model.figures} {figures} uncertain ({model.source}), {model.draws} draws, {how}{matter}"


def _interval(found: Estimate, scale: TimeScale) -> Text:
    if found.low == found.high:
        return Text("exact", style="dim")
    return Text(f"{scale.number(found.low)} .. {scale.number(found.high)}")


def _count(number: float) -> str:
    """Three digits, but never in powers of ten."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def _table(title: str, *numbers: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(title, justify="left", no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _pairs() -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column()
    return grid
