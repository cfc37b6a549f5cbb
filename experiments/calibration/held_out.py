"""Each log alone, every other size held out, beside a plain line of latency and bandwidth fitted to the same rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.calibration.logs import fittable
from experiments.nccl_logs.compare import Curve as Log
from mc.calibration import free_parameters, score_held_out


@dataclass(frozen=True)
class Score:
    """Errors of one log on the sizes that were held out.

    Attributes:
        log: its name.
        system: what it was measured on.
        sizes: how many were held out.
        median: of |predicted/measured − 1|.
        mean: of the same.
        line_median: the line's.
        line_mean: the line's.
    """

    log: str
    system: str
    sizes: int
    median: float
    mean: float
    line_median: float
    line_mean: float


def scores(found: Sequence[Log], advance: Callable[[int], None]) -> list[Score]:
    """One per log."""
    rows = []
    for log in found:
        config, curve = fittable(log)
        score = score_held_out(config, [curve], free_parameters(config, [curve]))
        rows.append(
            Score(
                log.log,
                curve.label,
                len(score.errors),
                float(np.median(score.errors)),
                float(score.errors.mean()),
                float(np.median(score.line)),
                float(score.line.mean()),
            )
        )
        advance(1)
    return rows
