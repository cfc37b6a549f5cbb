"""Which figures of an experiment its step depends on, and how much."""

from collections.abc import Callable
from dataclasses import dataclass

from mc.config import ExperimentConfig
from mc.errors import InputError
from mc.estimate import Estimate, mean_estimate, quantile_estimate
from mc.sensitivity.barrier import elasticities
from mc.sensitivity.derivatives import NUMBERS, Elasticity

Advance = Callable[[int], None]


class SensitivityError(InputError):
    """An experiment whose step has no elasticities here."""


@dataclass(frozen=True)
class Sensitivity:
    """A step and its elasticities.

    Attributes:
        name: of the experiment.
        steps: how many were drawn.
        realisations: of the cluster among them.
        confidence: of all intervals.
        numbers: mean and quantiles of the step, seconds.
        elasticities: the one that matters most to the number that was asked for first.
    """

    name: str
    steps: int
    realisations: int
    confidence: float
    numbers: dict[str, Estimate]
    elasticities: tuple[Elasticity, ...]


def sensitivity(
    config: ExperimentConfig, samples: int, *, by: str = "p99", advance: Advance = lambda count: None
) -> Sensitivity:
    """The elasticities of an experiment's step.

    Args:
        config: the experiment.
        samples: steps to draw, about.
        by: the number that figures are ranked by.
        advance: told how much more is done.

    Raises:
        InputError: the experiment cannot be built, or its requests are served.
    """
    if config.serving is not None:
        raise SensitivityError("expected an experiment whose steps are trained; got one with `serving`")
    if config.model.transformer is not None:
        raise SensitivityError("expected a model with `compute` and `exchange`; got a transformer")
    times, found = elasticities(config, samples, advance)
    level = config.run.confidence
    numbers = {
        name: (
            mean_estimate(times, level)
            if probability is None
            else quantile_estimate(times, probability, level)
        )[0]
        for name, probability in NUMBERS.items()
    }
    found.sort(key=lambda each: -abs(each.of(by).value))
    return Sensitivity(config.name, times.size, len(times), level, numbers, tuple(found))
