"""Fits what a generation of chips reaches to the rows that are meant for it.

Unknown are the fields of `EfficiencyConfig`, by their logarithms. Least squares of log(predicted/measured), with a soft loss so
that a few rows that nothing explains do not bend the rest; each table counts as much as its weight whatever its number of
rows, and each unknown is held to what is known about it from elsewhere (its `Belief`), loosely. What rows do not tell apart
stays there.

Whole tables are held out (`HELD_OUT`) where too much of what ran is not published: fitted, they would bend the rest to
what was assumed of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.published.predict import Case, chip_of
from mc.config.names import FORMATS
from mc.training import Breakdown, Chip, Efficiency, Times, times_of
from mc.training.pass_times import PASSES
from mc.training.replicas import meeting

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


# Tables with what is not published of them.
HELD_OUT: dict[str, str] = {
    "megatron_sc21_table2_zero3": "DeepSpeed of early 2021 fetched parameters one by one, without a bucket or a plan ahead",
    "bloom_sweep": "a log book that names settings in passing; heads whose width is no multiple of 8 (108) cost a third more there",
    "megascale_fig9": "neither the GPU (A100 or A800) nor the batch of this figure is printed",
    "korthikanti2022_dp8": "one row",
    "bridge_moe": "the same plan takes up to 1.9 times as long in one release of the software as in another, and kernels, "
    "dispatchers and graphs that changed in between are no part of a plan; GPT OSS needs attention with sinks, which was not fused",
}
# Of the logarithms, for slopes.
_STEP = 1e-3


@dataclass(frozen=True)
class Generation:
    """What is fitted together.

    Attributes:
        chips: catalog ids.
        beliefs: of each unknown.
        weights: of tables; 1 where it is not said.
    """

    chips: frozenset[str]
    beliefs: dict[str, Belief]
    weights: dict[str, float]


def _beliefs(rates: dict[str, float], **others: Belief) -> dict[str, Belief]:
    """Of a generation: the rates of its formats, what is common to all, and what is its own.

    Rates are the largest measured products over the peak (S. Bekman, "The best achievable matmul FLOPS", for A100, H100
    and B200). The area is that of half of the tiles of 128 x 256 which a chip works on at once, one on each of 108 to
    148 multiprocessors.
    """
    return (
        {name: Belief(value, 0.08, 0.97) for name, value in rates.items()}
        | {
            "half_area": Belief(2e6, 0.8),
            "half_depth": Belief(50.0, 0.5),
            "attention": Belief(0.42, 0.1, 0.95),
            "memory": Belief(0.8, 0.06, 0.93),
            "kernel": Belief(5e-6, 0.4),
            "launch": Belief(20e-6, 0.5),
            "collective_launch": Belief(40e-6, 0.5),
            "pass_launch": Belief(0.6e-3, 0.6),
            "wait": Belief(50e-6, 0.5, 250e-6),
            "step": Belief(50e-3, 0.5),
            "overlap": Belief(0.7, 0.15, 0.95),
        }
        | others
    )


GENERATIONS: dict[str, Generation] = {
    # Hosts of 2020 took longer; launches were not captured in graphs.
    "nvidia-ampere": Generation(
        frozenset({"A100"}),
        _beliefs({"bf16": 0.87}, launch=Belief(40e-6, 0.6), step=Belief(20e-3, 1.0)),
        {"korthikanti2022_table5": 2.0},
    ),
    "nvidia-hopper": Generation(
        frozenset({"H100"}),
        _beliefs({"bf16": 0.80, "fp8": 0.71}),
        {"dgxc_h100": 2.0, "dgxc_jax": 0.6},
    ),
    "nvidia-blackwell": Generation(
        frozenset({"B200", "GB200"}), _beliefs({"bf16": 0.75, "fp8": 0.74, "fp4": 0.65}), {}
    ),
    "nvidia-blackwell-ultra": Generation(
        frozenset({"B300", "GB300"}), _beliefs({"bf16": 0.75, "fp8": 0.74, "fp4": 0.65}), {}
    ),
}
FITTED_FORMATS = ("bf16", "fp8", "fp4")


def efficiency_of(values: dict[str, float]) -> Efficiency:
    """Fitted numbers, with every format: those that were not fitted reach what bf16 does."""
    rates = {name: values.get(name, values["bf16"]) for name in FORMATS}
    others = {name: value for name, value in values.items() if name not in FITTED_FORMATS}
    return Efficiency(matmul=rates, **others)


def fit(generation: Generation, cases: Sequence[Case], **options: Any) -> dict[str, float]:
    """The numbers of a generation.

    Args:
        generation: what is believed before.
        cases: rows to fit on.
        options: of SciPy's `least_squares`.
    """
    from scipy.optimize import least_squares

    beliefs, weights = generation.beliefs, generation.weights
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
    start = np.minimum(centre, most - 1e-3)
    # SciPy's stubs know names of difference schemes only.
    found = least_squares(residuals, start, jac=slopes, bounds=bounds, **options)  # pyright: ignore[reportArgumentType]
    return dict(zip(names, np.exp(found.x).tolist(), strict=True))


def near(case: Case, chip: Chip, base: Breakdown) -> float:
    """Seconds of a step with slightly other efficiencies.

    The pipeline is not run again: it is stretched with its critical stage.
    """
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
