"""Fits what a generation of chips reaches to the rows that are meant for it.

Unknown are the fields of `EfficiencyConfig`, by their logarithms. Least squares of log(predicted/measured), with a soft loss so
that a few rows that nothing explains do not bend the rest; each table counts as much as its weight whatever its number of
rows, and each unknown is held to what is known about it from elsewhere (`BELIEFS`), loosely. What rows do not tell apart
stays there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.published.predict import Case, chip_of
from mc.config.names import FORMATS
from mc.training import Breakdown, Chip, Efficiency, Times, times_of
from mc.training.replicas import meeting
from mc.training.times import PASSES

# One row's error that counts as one, and from which on errors count linearly rather than squared.
ROW_ERROR, SOFT = 0.04, 1.5
# Rows that a table of weight 1 counts as.
ROWS = 12.0


@dataclass(frozen=True)
class Belief:
    """What is known of a number from elsewhere.

    Attributes:
        value: the most likely.
        spread: the standard deviation of its logarithm.
        most: it is not above.
    """

    value: float
    spread: float
    most: float = np.inf


def _parts(**values: float) -> dict[str, Belief]:
    return {name: Belief(value, 0.08, 0.97) for name, value in values.items()}


_COMMON = {
    "half_rows": Belief(100.0, 0.5),
    "half_depth": Belief(50.0, 0.5),
    "attention": Belief(0.55, 0.2, 0.95),
    "memory": Belief(0.75, 0.12, 0.95),
    "kernel": Belief(4e-6, 0.6),
    "launch": Belief(40e-6, 0.6),
    "collective_launch": Belief(40e-6, 0.6),
    "pass_launch": Belief(0.7e-3, 0.8),
    "wait": Belief(20e-6, 0.6),
    "step": Belief(50e-3, 1.0),
    "overlap": Belief(0.7, 0.2, 0.95),
}
# Largest measured products over the peak (Stas Bekman's "maximum achievable matmul FLOPS", landscape.md section 3.1).
BELIEFS: dict[str, dict[str, Belief]] = {
    "nvidia-ampere": _parts(bf16=0.87) | _COMMON,
    "nvidia-hopper": _parts(bf16=0.80, fp8=0.71) | _COMMON,
    "nvidia-blackwell": _parts(bf16=0.75, fp8=0.74, fp4=0.65) | _COMMON,
    "nvidia-blackwell-ultra": _parts(bf16=0.75, fp8=0.74, fp4=0.65) | _COMMON,
}
# Of the logarithms, for slopes.
_STEP = 1e-3
FITTED_FORMATS = ("bf16", "fp8", "fp4")


def efficiency_of(values: dict[str, float]) -> Efficiency:
    """Fitted numbers, with every format: those that were not fitted reach what bf16 does."""
    rates = {name: values.get(name, values["bf16"]) for name in FORMATS}
    others = {name: value for name, value in values.items() if name not in FITTED_FORMATS}
    return Efficiency(matmul=rates, **others)


def fit(
    generation: str, cases: Sequence[Case], weights: dict[str, float], **options: Any
) -> dict[str, float]:
    """The numbers of a generation.

    Args:
        generation: of `BELIEFS`.
        cases: rows to fit on.
        weights: of tables; 1 where it is not said.
        options: of SciPy's `least_squares`.
    """
    from scipy.optimize import least_squares

    beliefs = BELIEFS[generation]
    names = list(beliefs)
    centre = np.log([each.value for each in beliefs.values()])
    spread = np.array([each.spread for each in beliefs.values()])
    most = np.log([each.most for each in beliefs.values()])
    tables = [case.row.table for case in cases]
    scale = np.sqrt([weights.get(name, 1.0) * ROWS / tables.count(name) for name in tables]) / ROW_ERROR
    chips = [chip_of(case.row) for case in cases]

    def residuals(logs: NDArray[np.float64]) -> NDArray[np.float64]:
        found = errors(cases, chips, reached(logs))
        soft = SOFT * ROW_ERROR
        # Pseudo-Huber: squared below, linear above.
        bent = np.sign(found) * soft * np.sqrt(2 * (np.sqrt(1 + (found / soft) ** 2) - 1))
        return np.concatenate([scale * bent, (logs - centre) / spread])

    def slopes(logs: NDArray[np.float64]) -> NDArray[np.float64]:
        base = [
            case.evaluate(replace(chip, efficiency=reached(logs)))
            for case, chip in zip(cases, chips, strict=True)
        ]
        first = np.array([float(each.step) for each in base])
        found = np.log(first / [case.row.step for case in cases])
        # Of the bent error by the error.
        root = np.sqrt(1 + (found / (SOFT * ROW_ERROR)) ** 2)
        bend = np.where(np.abs(found) < 1e-9, 1.0, np.sqrt((root + 1) / 2) / root)
        columns = []
        for i in range(len(names)):
            moved = reached(logs + _STEP * (np.arange(len(names)) == i))
            later = [
                near(case, replace(chip, efficiency=moved), one)
                for case, chip, one in zip(cases, chips, base, strict=True)
            ]
            columns.append(scale * bend * np.log(np.array(later) / first) / _STEP)
        return np.concatenate([np.stack(columns, axis=1), np.diag(1 / spread)])

    def reached(logs: NDArray[np.float64]) -> Efficiency:
        return efficiency_of(dict(zip(names, np.exp(logs).tolist(), strict=True)))

    options = {"xtol": 1e-4, "ftol": 1e-4, "max_nfev": 20} | options
    bounds = (np.full(len(names), -np.inf), most)
    found = least_squares(residuals, np.minimum(centre, most - 1e-3), slopes, bounds=bounds, **options)
    return dict(zip(names, np.exp(found.x).tolist(), strict=True))


def near(case: Case, chip: Chip, base: Breakdown) -> float:
    """Seconds of a step with slightly other efficiencies, without running the pipeline again: it is stretched with its critical stage."""
    times = times_of(case.plan, case.shape, chip, case.prices)
    then, now = (_busiest(each, int(np.argmax(base.finish.busy))) for each in (base.times, times))
    before, after = (sum(float(price.seconds) for price in each.transfer) for each in (base.times, times))
    shared = meeting(case.plan, case.shape, chip, times)
    old = base.meeting
    makespan = float(base.finish.makespan)
    between = makespan - float(base.parts["bubble"]) - float(base.finish.busy.max())
    # What messages between stages add, as they are now.
    sent = between * (after / before - 1.0) if before else 0.0
    return float(
        base.step
        + (makespan - between) * (now / then - 1.0)
        + sent
        + shared.optimizer
        - old.optimizer
        + shared.fixed
        - old.fixed
    )


def _busiest(times: Times, stage: int) -> float:
    return float(sum(getattr(part, name).seconds for part in times.parts[stage] for name in PASSES))


def errors(
    cases: Sequence[Case], chips: Sequence[Chip], reached: Efficiency | None = None
) -> NDArray[np.float64]:
    """log(predicted/measured) of rows, with the chips' own efficiencies or with others."""
    found = []
    for case, chip in zip(cases, chips, strict=True):
        used = chip if reached is None else replace(chip, efficiency=reached)
        found.append(np.log(case.evaluate(used).step / case.row.step))
    return np.asarray(found)
