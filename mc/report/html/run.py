"""The report of a run: the distribution of its step, where the mean goes, what else it comes to, and what that is worth."""

import math
from collections.abc import Sequence
from typing import Any

from ruamel.yaml import YAML, YAMLError

from mc.estimate import Estimate
from mc.report.html.honesty import honesty
from mc.report.html.page import Page, Picture, Section, Table
from mc.report.html.provenance import provenance
from mc.report.pictures.run import distribution_panel, tail_panel, waterfall_panel
from mc.report.run_table import LABELS, waterfall_scale
from mc.report.serving import LATENCY_NAMES
from mc.report.times import TimeScale, duration, scale_for
from mc.results import RunRecord, RunResult, ServingSummary, TrainingSummary
from mc.results.serving import LATENCIES


def run_page(record: RunRecord, more: Sequence[Section] = (), origin: str = "") -> Page:
    """The page of a run.

    Args:
        record: the run as it was kept.
        more: sections on what follows from its configuration.
        origin: the command that makes the report.
    """
    run = record.result
    return Page(
        "run",
        run.name,
        run.description.strip(),
        _facts(run),
        [
            _step(run),
            _waterfall(run),
            *([] if run.training is None else [_training(run.training)]),
            *([] if run.serving is None else [_serving(run.serving)]),
            *more,
            honesty(run, plain_config(run.resolved_yaml)),
            provenance(record.manifest),
        ],
        origin,
    )


def plain_config(text: str) -> dict[str, Any]:
    """A resolved configuration as plain data; nothing where it cannot be read."""
    try:
        found = YAML(typ="safe").load(text)
    except YAMLError:
        return {}
    return found if isinstance(found, dict) else {}


def _facts(run: RunResult) -> list[tuple[str, str]]:
    estimates = run.estimates
    facts = [
        ("mean step", duration(estimates.mean.value)),
        ("p50", duration(estimates.p50.value)),
        ("p99", duration(estimates.p99.value)),
        ("p99.9", duration(estimates.p99_9.value)),
        ("waiting for the slowest", f"{100 * run.slowest_rank.share.value:.1f} % of the mean"),
        ("against an ideal network", f"{run.slowdown:.3g} times as long"),
        ("ranks", f"{run.ranks:,} of {run.cluster_name}"),
    ]
    if run.training is not None:
        facts.append(("throughput", f"{run.training.tokens_per_s.value:,.0f} tokens/s"))
        facts.append(("MFU", f"{100 * run.training.mfu.value:.1f} %"))
    return facts


def _step(run: RunResult) -> Section:
    estimates = run.estimates
    scale = scale_for(found for _, found in estimates.items())
    level = f"{100 * estimates.confidence:g} %"
    rows = [
        [LABELS[name], scale.number(found.value), interval(found, scale)] for name, found in estimates.items()
    ]
    heading = ["step time", scale.unit, f"{level} interval, {scale.unit}"]
    if run.model is not None:
        heading.append(f"{100 * run.model.level:g} % calibration, {scale.unit}")
        for row, (name, found) in zip(rows, estimates.items(), strict=True):
            low, high = run.model.ends.get(name, (found.value, found.value))
            row.append(interval(Estimate(found.value, low, high), scale))
    steps = f"{run.samples.size:,} steps in {run.realisations:,} realisation{'s' * (run.realisations != 1)}"
    band = f"the band is the pointwise {level} interval."
    return Section(
        "Step time",
        text=[f"{steps} of {run.cluster_name}, {run.ranks:,} ranks."],
        points=run.tiers,
        pictures=[
            Picture(distribution_panel([run]), f"Share of steps that take no longer; {band}"),
            Picture(
                tail_panel([run]),
                f"Share of steps that take longer, on logarithmic axes, where a power law is a line; {band}",
            ),
        ],
        tables=[Table(tuple(heading), rows)],
    )


def _waterfall(run: RunResult) -> Section:
    parts = [part for part in run.waterfall.parts if part.time.value]
    scale = waterfall_scale(parts)
    rows = [
        (
            part.name.replace("_", " "),
            scale.number(part.time.value),
            interval(part.time, scale),
            f"{100 * part.share:.1f} %",
        )
        for part in parts
    ]
    rows.append(("sum", scale.number(run.waterfall.total), "", "100.0 %"))
    level = f"{100 * run.estimates.confidence:g} % interval, {scale.unit}"
    slowest, lost = run.slowest_rank, run.slowest_rank.chip_hours_per_hour
    shown = {part.name: part.time.value for part in parts}
    return Section(
        "Where the mean goes",
        text=[
            f"The slowest rank costs {duration(slowest.wait.value)} a step ({100 * slowest.share.value:.1f} %): "
            f"{lost.value:,.3g} of {run.ranks:,} chip-hours an hour are spent waiting. On an ideal network, without latency, "
            f"transfer time and congestion, a step would take {duration(run.ideal_step_time)}."
        ],
        pictures=[
            Picture(
                waterfall_panel(shown), "The mean of a step, part by part.", height=2.2 + 0.3 * len(parts)
            )
        ],
        tables=[Table(("part", f"mean, {scale.unit}", level, "share"), rows)],
    )


def _training(training: TrainingSummary) -> Section:
    rows = [
        ("plan", training.plan),
        ("parameters", f"{training.parameters / 1e9:,.1f} billion"),
        ("tokens of a step", f"{training.tokens:,}"),
        ("throughput, tokens/s", _with_interval(training.tokens_per_s, 1, 0)),
        ("MFU, %", _with_interval(training.mfu, 100, 1)),
        ("HFU, %", _with_interval(training.hfu, 100, 1)),
        ("rate of a chip, TFLOP/s", _with_interval(training.tflops_per_chip, 1, 0)),
        ("bubble without noise", f"{100 * training.bubble_fraction:.1f} % of the step"),
    ]
    rows += [
        (f"waiting for {name}, without noise", duration(time)) for name, time in training.exposed_s.items()
    ]
    memory = [(name.replace("_", " "), f"{size / 1e9:,.2f}") for name, size in training.memory_bytes.items()]
    tables = [
        Table(("training", ""), rows, words=True),
        Table(("on the fullest rank", "GB"), memory, "Memory"),
    ]
    if training.goodput is not None:
        found = training.goodput
        shares = [
            (name, f"{100 * getattr(found, name.replace(' ', '_')):.2f}")
            for name in ("effective ratio", "checkpointing", "recomputing", "restarting", "waiting")
        ]
        caption = (
            f"Over days: {found.interruptions_per_day:.2g} interruptions a day, a checkpoint every "
            f"{duration(found.checkpoint_interval_s)}"
        )
        tables.append(Table(("share of the time", "%"), shares, caption))
    return Section("Training", tables=tables)


def _serving(serving: ServingSummary) -> Section:
    latencies = {name: getattr(serving, name) for name in LATENCIES}
    scale = scale_for([each for found in latencies.values() for each in found.values()])
    names = list(latencies["itl"])
    rows = [
        (LATENCY_NAMES[name], *(scale.number(found[key].value) if key in found else "" for key in names))
        for name, found in latencies.items()
    ]
    about = [
        ("plan", serving.plan),
        ("requests decoded at once", f"{serving.batch:,}"),
        ("throughput, tokens/s of a chip", _with_interval(serving.tokens_per_s_per_chip, 1, 1)),
        ("requests/s of a replica", _with_interval(serving.requests_per_s, 1, 2)),
    ]
    parts = {name: seconds for name, seconds in serving.ttft_parts.items() if seconds}
    memory = [(name.replace("_", " "), f"{size / 1e9:,.2f}") for name, size in serving.memory_bytes.items()]
    pictures = (
        [Picture(waterfall_panel(parts), "The mean time to the first token, part by part.")] if parts else []
    )
    return Section(
        "Serving",
        pictures=pictures,
        tables=[
            Table((f"latency, {scale.unit}", *(LABELS[name] for name in names)), rows),
            Table(("serving", ""), about, words=True),
            Table(("on the fullest rank", "GB"), memory, "Memory"),
        ],
    )


def interval(found: Estimate, scale: TimeScale) -> str:
    """An interval of times, or that there is none."""
    if found.low == found.high:
        return "exact"
    return f"{scale.number(found.low)} to {scale.number(found.high)}"


def _with_interval(found: Estimate, factor: float, decimals: int) -> str:
    value, low, high = (factor * each for each in (found.value, found.low, found.high))
    if low == high or not (math.isfinite(low) and math.isfinite(high)):
        return f"{value:,.{decimals}f}"
    return f"{value:,.{decimals}f} ({low:,.{decimals}f} to {high:,.{decimals}f})"
