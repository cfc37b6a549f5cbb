"""Measured durations of operations through the step graph, and the law of half of the steps from the other half.

python -m experiments.traces [--quick] [--json] [--plot FILE] [--extract FOLDER]
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from experiments.traces.checks import arrivals, slow_gpu
from experiments.traces.extract import extract
from experiments.traces.forecast import (
    MODELS,
    PRISM,
    QUICK_SAMPLES,
    SAMPLES,
    SPLITS,
    WANTED,
    draw,
    forecast,
)
from experiments.traces.record import SIZES, load
from experiments.traces.replay import pipelines, replay


def study(*, quick: bool = False) -> dict[str, list[Any]]:
    """All figures."""
    samples, splits = (QUICK_SAMPLES, 1) if quick else (SAMPLES, SPLITS)
    return {
        "replay": [row for trace in SIZES for row in replay(trace)],
        "forecast": [forecast(trace, model, samples, splits) for trace in SIZES for model in MODELS],
        "slow_gpu": [slow_gpu()],
        "arrivals": list(arrivals()),
    }


def tables(found: dict[str, list[Any]]) -> list[Table]:
    """One for each part."""
    replayed = _table(
        "Replayed: error of times", "trace", "what", "number", "mean", "absolute", "worst", "too slow"
    )
    for row in found["replay"]:
        errors = (f"{100 * error:+.2f} %" for error in (row.bias, row.error, row.worst))
        replayed.add_row(row.trace, row.what, str(row.steps), *errors, f"{100 * row.too_slow:.0f} %")
    title = f"Forecast: Kolmogorov-Smirnov distance (wanted {WANTED}; PRISM reports {PRISM})"
    columns = (
        "trace",
        "model",
        "distance",
        "each half",
        "pooled",
        "floor",
        "true law",
        "random halves",
        "floor",
    )
    forecasts = _table(title, *columns, "mean", "deviation")
    for row in found["forecast"]:
        each = " ".join(f"{ks:.3f}" for ks in row.each)
        numbers = (row.pooled, row.floor, row.perfect, row.splits, row.splits_floor)
        moments = f"{100 * row.bias:+.2f} %", f"{row.deviation:.2f}"
        rest = (f"{number:.3f}" for number in numbers)
        forecasts.add_row(row.trace, row.model, f"{row.ks:.3f}", each, *rest, *moments)
    slow = _table(
        "BLOOM's slow GPU: the step, later over before", "measured", "expected", "slowdown it takes"
    )
    for row in found["slow_gpu"]:
        slow.add_row(*(f"{figure:.3f}" for figure in (row.measured, row.expected, row.slowdown)))
    place = _table(
        "Frontier: mean arrival from first (0) to last (1)", "law", "least", "most", "measured inside"
    )
    for row in found["arrivals"]:
        place.add_row(row.law, f"{row.least:.2f}", f"{row.most:.2f}", f"{100 * row.inside:.0f} %")
    return [replayed, forecasts, slow, place]


def _table(title: str, *columns: str) -> Table:
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in columns:
        shown.add_column(column, justify="left" if column in ("trace", "what", "model", "law") else "right")
    return shown


def plot(file: Path, samples: int = SAMPLES) -> None:
    """Draws replayed against measured pipelines, and the laws, in the format that the suffix of `file` names."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: Any = {"font.family": "DejaVu Sans", "font.size": 9, "svg.hashsalt": "tailstep"}
    colours = {
        "one lognormal": "#B34700",
        "persistent": "#8A6D00",
        "shared": "#3D7A3D",
        "sequences": "#005A91",
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(9.6, 5.6), layout="constrained")
        panels = figure.subplots(len(SIZES), 2)
        for (left, right), trace in zip(panels, SIZES, strict=True):
            record = load(trace)
            measured = record.pipelines
            error = 100 * (pipelines(record) / measured - 1)
            for replica in range(measured.shape[1]):
                left.plot(record.steps, error[:, replica], ".", label=f"replica {replica}")
            left.axhline(0.0, color="k", linewidth=0.5)
            left.set_ylim(-0.1, 0.1)
            left.set_ylabel("replayed over measured − 1, %")
            left.set_title(f"{trace}: pipelines", loc="left", fontsize=9, fontweight="bold")
            left.legend(frameon=False, ncols=2, fontsize=8)
            even = np.arange(record.span.size) % 2 == 0
            fitted, scored = record.of(even), np.sort(record.span[~even])
            levels = np.arange(1, scored.size + 1) / scored.size
            right.step(scored, levels, "k", where="post", label="measured, other half")
            for model in MODELS:
                drawn = np.sort(draw(fitted, model, samples))
                right.plot(drawn, (np.arange(samples) + 0.5) / samples, color=colours[model], label=model)
            right.set_xlim(scored[0] - 0.3 * np.ptp(scored), scored[-1] + 0.3 * np.ptp(scored))
            right.set_title(f"{trace}: steps", loc="left", fontsize=9, fontweight="bold")
            right.set_ylabel("share of the steps")
            right.spines[["top", "right"]].set_visible(False)
            left.spines[["top", "right"]].set_visible(False)
        panels[-1][0].set_xlabel("number of the step")
        panels[-1][1].set_xlabel("seconds")
        panels[0][1].legend(frameon=False, fontsize=8)
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the study, prints it and draws it; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.traces",
        description="Measured operations through the step graph, and forecasts of steps.",
    )
    parser.add_argument("--quick", action="store_true", help="fewer samples")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw a picture (.svg, .png, .pdf)")
    parser.add_argument("--extract", type=Path, metavar="FOLDER", help="make the tables from the raw traces")
    options = parser.parse_args(arguments)
    if options.extract is not None:
        extract(options.extract)
        return 0
    found = study(quick=options.quick)
    if options.json:
        print(json.dumps({part: [asdict(row) for row in rows] for part, rows in found.items()}, indent=2))
    else:
        console = Console(width=140)
        for each in tables(found):
            console.print(each)
            console.print()
    if options.plot is not None:
        plot(options.plot, QUICK_SAMPLES if options.quick else SAMPLES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
