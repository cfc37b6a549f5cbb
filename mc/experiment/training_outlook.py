"""What else follows from an experiment whose model is a transformer: on more ranks, and with faster chips.

The step without noise (`build_training.build_quiet`), in closed form and without a draw: what of stragglers comes on top has no
closed form there, and `tailstep scale` samples it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mc.config import ExperimentConfig
from mc.errors import InputError
from mc.experiment.quiet_step import build_quiet
from mc.experiment.scale import Mode, scale
from mc.parallel import build_plan

Floats = NDArray[np.float64]
# Chips so many times as fast; the last is out of reach: what does not shrink with computing is left.
_FACTORS = (1.0, 2.0, 4.0, 8.0, 16.0, 1e9)


@dataclass(frozen=True)
class PlanCurve:
    """The step on more and more ranks, by more replicas; arrays are float64[sizes].

    Attributes:
        ranks: how many.
        steps: seconds.
        efficiency: throughput of a rank over that of a rank at the smallest size.
    """

    ranks: Floats
    steps: Floats
    efficiency: Floats

    @property
    def speedup(self) -> Floats:
        """Ranks times efficiency."""
        return self.ranks * self.efficiency


@dataclass(frozen=True)
class PlanSaturation:
    """The step with faster chips, in computing and memory; links stay.

    Attributes:
        factors: how many times as fast chips are.
        speedups: how many times as fast the step is.
        limit: of that with chips that take no time.
    """

    factors: Floats
    speedups: Floats
    limit: float


def sizes_of_plan(config: ExperimentConfig) -> tuple[int, ...]:
    """A quarter to 16 times as many ranks, by factors of 4, as far as they are whole replicas."""
    plan = build_plan(config)
    replicas = {plan.dp, *(plan.dp * 4**step for step in (1, 2))}
    if plan.dp % 4 == 0:
        replicas.add(plan.dp // 4)
    return tuple(sorted(each * (config.ranks // plan.dp) for each in replicas))


def plan_curves(config: ExperimentConfig, sizes: Sequence[int]) -> dict[Mode, PlanCurve]:
    """The step on several numbers of ranks, by kind of scaling; a kind is left out that no size can be had in.

    Raises:
        InputError: neither kind can be.
    """
    found: dict[Mode, PlanCurve] = {}
    refused: InputError | None = None
    modes: tuple[Mode, ...] = ("weak", "strong")
    for mode in modes:
        try:
            points = scale(config, sizes, mode=mode, samples=0).points
        except InputError as error:
            refused = error
            continue
        rows = [(each.chips, each.times.mean.value, each.efficiency) for each in points]
        found[mode] = PlanCurve(*np.array(rows, np.float64).T)
    if refused is not None and not found:
        raise refused
    return found


def plan_saturation(config: ExperimentConfig) -> PlanSaturation:
    """The step with chips that are 1 to 16 times as fast.

    Raises:
        InputError: chips are of several kinds, or the step cannot be built.
    """
    if len(config.cluster.chips(config.ranks)) > 1:
        raise InputError("expected chips of one kind")
    steps = np.array(
        [float(build_quiet(_with_faster_chips(config, each)).breakdown.step) for each in _FACTORS]
    )
    speedups = steps[0] / steps
    return PlanSaturation(np.array(_FACTORS[:-1]), speedups[:-1], float(speedups[-1]))


def _with_faster_chips(config: ExperimentConfig, factor: float) -> ExperimentConfig:
    chip = config.cluster.chip
    peak = chip.peak.model_copy(update={name: factor * rate for name, rate in chip.peak.offered.items()})
    update: dict[str, Any] = {"peak": peak}
    if chip.memory_bandwidth is not None:
        update["memory_bandwidth"] = factor * chip.memory_bandwidth
    cluster = config.cluster.model_copy(update={"chip": chip.model_copy(update=update)})
    return config.model_copy(update={"cluster": cluster})
