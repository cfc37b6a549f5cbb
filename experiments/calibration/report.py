"""What the studies found, as tables."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rich.table import Table

from experiments.calibration.gradients import Cost
from experiments.calibration.held_out import Score
from experiments.calibration.noise import NoiseForecast
from experiments.calibration.recovery import Coverage
from experiments.calibration.single_node import ASTRA_SIM, BoxScore
from experiments.calibration.transfer import Transfer


def held_out(rows: Sequence[Score]) -> Table:
    """Each log alone."""
    table = _table(
        "|predicted/measured - 1| on sizes held out",
        ("log", "sizes", "median", "mean", "line: median", "mean"),
    )
    for each in rows:
        table.add_row(
            each.system,
            str(each.sizes),
            *map(_percent, (each.median, each.mean, each.line_median, each.line_mean)),
        )
    middle = (
        float(np.median([getattr(each, name) for each in rows]))
        for name in ("median", "mean", "line_median", "line_mean")
    )
    table.add_row(f"median of {len(rows)} logs", "", *map(_percent, middle), style="bold")
    return table


def transfers(rows: Sequence[Transfer]) -> Table:
    """From few nodes to more."""
    table = _table(
        "fitted to few nodes, median error on more",
        ("system", "fitted to", "scored on", "rows", "way", "fit", "line", "NCCL"),
    )
    for each in rows:
        seen, unseen = (", ".join(map(str, nodes)) for nodes in (each.seen, each.unseen))
        errors = map(_percent, (each.error, each.line, each.prior))
        table.add_row(each.system, seen, unseen, str(each.rows), each.way, *errors)
    return table


def single_node(rows: Sequence[BoxScore]) -> Table:
    """One box."""
    table = _table(
        f"one box: |predicted/measured - 1|; ASTRA-sim states a geometric mean of {_percent(ASTRA_SIM)} for an HGX H100",
        ("machine", "fitted to", "rows", "median", "mean", "geometric", "NCCL: median", "geometric"),
    )
    for each in rows:
        errors = each.median, each.mean, each.geometric, each.nccl_median, each.nccl_geometric
        table.add_row(each.machine, each.fitted_to, str(each.rows), *map(_percent, errors))
    return table


def noise(rows: Sequence[NoiseForecast]) -> Table:
    """Of the slowest rank of 8 nodes from 4."""
    table = _table(
        "slowest of 8 nodes, forecast from 4; unscaled: as if waiting for more cost nothing",
        (
            "collective",
            "quantile",
            "measured",
            "forecast",
            "90 % interval",
            "error",
            "fitted",
            "error",
            "unscaled",
        ),
    )
    for each in rows:
        ends = f"{1e6 * each.low:.0f} .. {1e6 * each.high:.0f}"
        times = f"{1e6 * each.measured:.0f} us", f"{1e6 * each.forecast:.0f} us", ends
        table.add_row(
            each.collective,
            f"{each.level:g}",
            *times,
            _signed(each.error),
            each.family,
            _signed(each.fitted_error),
            _signed(each.unscaled_error),
        )
    return table


def recovery(rows: Sequence[Coverage]) -> Table:
    """Of truths drawn."""
    table = _table("90 % intervals that hold the truth", ("what", "parameter", "replications", "covered"))
    for each in rows:
        table.add_row(each.what, each.parameter, str(each.replications), _percent(each.covered))
    return table


def gradients(rows: Sequence[Cost]) -> Table:
    """What methods cost."""
    table = _table(
        "evaluations of the simulator until a fit is near; a gradient counts as four",
        ("method", "parameters", "near", "fits", "evaluations", "in the end"),
    )
    for each in rows:
        table.add_row(
            each.method,
            str(each.parameters),
            _percent(each.goal),
            f"{each.reached} of {each.truths}",
            "-" if each.evaluations is None else f"{each.evaluations:.0f}",
            _percent(each.left),
        )
    return table


TABLES: dict[str, Callable[[Any], Table]] = {
    "single-node": single_node,
    "noise": noise,
    "transfer": transfers,
    "held-out": held_out,
    "recovery": recovery,
    "slow-chips": recovery,
    "gradients": gradients,
}


def _table(title: str, headings: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", box=None)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place == 0 else "right")
    return table


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _signed(value: float) -> str:
    return f"{100 * value:+.1f} %"
