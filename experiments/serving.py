"""Serving against published figures: Llama 3 on two GPUs, DeepSeek-V3 on nodes of eight and in a rack.

    python -m experiments.serving [--json] [--plot FILE]

Nothing is fitted here. What chips reach comes from training steps (`experiments.published`), what kernels that send tokens reach
from DeepEP's figures (`experiments.deepep`), attention to a cache from FlashMLA's; 0.5 ms of a scheduler between steps is
assumed. Steps are those without noise, since no spread is published with them.
"""

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from mc.config import load_experiment
from mc.experiment.build_serving import server_of
from mc.inference import Server
from mc.report.pictures.base import COLOURS, INK, MARKERS, panel_title, picture, save

DATA = Path(__file__).parent / "data" / "serving.csv"
CONFIGS = Path(__file__).parents[1] / "configs" / "inference"


@dataclass(frozen=True)
class Row:
    """A published figure and what comes out here.

    Attributes:
        source: who published it.
        experiment: file of `configs/inference`, and a cluster instead of its own.
        settings: keys of its serving block.
        batch: requests at once; empty for prompts alone.
        what: seconds (`ttft_s`, `tpot_s`) or tokens per second of a chip.
        measured: published.
        predicted: here.
    """

    source: str
    experiment: str
    settings: str
    batch: str
    what: str
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """By how much the predicted time is too long, relative."""
        ratio = self.predicted / self.measured
        return ratio - 1 if self.what.endswith("_s") and "per" not in self.what else 1 / ratio - 1


@lru_cache(maxsize=32)
def server(experiment: str, settings: str, batch: str) -> Server:
    """What a row describes."""
    name, _, cluster = experiment.partition(" on ")
    changed = [f"serving.{each}" for each in settings.split()] + [f"serving.batch={batch or 'largest'}"]
    return server_of(
        load_experiment(CONFIGS / f"{name}.yaml", changed + ([f"cluster={cluster}"] if cluster else []))
    )


def predicted(found: Server, what: str) -> float:
    """A figure of a server without noise."""
    match what:
        case "ttft_s":
            return found.prefill.through() + found.transfer
        case "prefill_tokens_per_s_per_chip":
            tokens = found.prompts * found.serving.prompt
            return tokens / found.prefill.through() / found.prefill_layout.ranks
        case "tpot_s":
            return found.step(found.batch) / found.tokens_per_step
        case "decode_tokens_per_s_per_chip":
            return found.batch * found.tokens_per_step / found.step(found.batch) / found.layout.ranks
    raise ValueError(f"expected a figure of a server; got {what}")


def study() -> list[Row]:
    """All rows."""
    lines = [line for line in DATA.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    found = []
    for line in csv.DictReader(lines):
        value = predicted(server(line["experiment"], line["settings"], line["batch"]), line["what"])
        found.append(Row(**{**line, "measured": float(line["measured"])}, predicted=value))
    return found


def summary(rows: Sequence[Row]) -> dict[str, float]:
    """Errors of the times."""
    errors = np.array([each.error for each in rows])
    return {
        "rows": len(rows),
        "median": float(np.median(np.abs(errors))),
        "signed": float(errors.mean()),
        "largest": float(np.abs(errors).max()),
    }


def table(rows: Sequence[Row]) -> Table:
    """Measured against predicted."""
    shown = Table(title="Serving: measured and predicted", title_justify="left", box=None, pad_edge=False)
    for place, heading in enumerate(
        ("source", "experiment", "settings", "batch", "what", "measured", "predicted", "time")
    ):
        shown.add_column(heading, justify="right" if place in (3, 5, 6, 7) else "left")
    for row in rows:
        scale, unit = (1e3, " ms") if row.measured < 1 else (1.0, "")
        figures = (f"{scale * each:,.4g}{unit}" for each in (row.measured, row.predicted))
        shown.add_row(
            row.source, row.experiment, row.settings, row.batch, row.what, *figures, f"{row.error:+.1%}"
        )
    return shown


def plot(file: Path, rows: Sequence[Row]) -> None:
    """Draws predicted over measured times, a line for each row."""
    sources = list(dict.fromkeys(row.source for row in rows))

    def errors(axes: Any) -> None:
        places = range(len(rows), 0, -1)
        for kind, source in enumerate(sources):
            ours = [pair for pair in zip(places, rows, strict=True) if pair[1].source == source]
            axes.plot(
                [1 + row.error for _, row in ours],
                [place for place, _ in ours],
                MARKERS[kind],
                color=COLOURS[kind],
                label=source,
            )
        axes.axvline(1.0, color=INK, lw=1)
        axes.set_yticks(list(places), [_said(row) for row in rows], fontsize=8)
        axes.set_xlabel("predicted over measured time")
        axes.legend(frameon=False, fontsize=8)
        panel_title(axes, "serving, with nothing fitted")

    save(file, picture([errors], width=8.0, height=5.2))


def _said(row: Row) -> str:
    """What a row is about, on one line."""
    what = {
        "ttft_s": "first token",
        "tpot_s": "time per token",
        "prefill_tokens_per_s_per_chip": "prompts' tokens/s of a chip",
        "decode_tokens_per_s_per_chip": "tokens/s of a chip",
    }[row.what]
    model = "Llama 3 70B" if row.experiment.startswith("llama3") else "DeepSeek-V3"
    batch = "as many as fit" if row.batch == "largest" else f"batch {int(row.batch):,}" if row.batch else ""
    prompt = dict(each.split("=", 1) for each in row.settings.split()).get("prompt")
    return ", ".join(each for each in (model, f"prompts of {prompt}" if prompt else "", batch, what) if each)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the study and prints it; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.serving", description="Serving against published figures."
    )
    parser.add_argument("--quick", action="store_true", help="the same: nothing takes long")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw predicted over measured times")
    options = parser.parse_args(arguments)
    rows = study()
    if options.plot is not None:
        plot(options.plot, rows)
    if options.json:
        found = {"summary": summary(rows), "rows": [{**asdict(row), "error": row.error} for row in rows]}
        print(json.dumps(found, indent=2))
        return 0
    console = Console(width=180)
    console.print(table(rows))
    for name, value in summary(rows).items():
        console.print(f"{name}: {value:.0f}" if name == "rows" else f"{name}: {value:+.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
