"""Which figures of an experiment its step depends on, and how much."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from mc.config import ExperimentConfig
from mc.config.figures import figure_at
from mc.config.mitigations import MitigationsConfig
from mc.errors import InputError
from mc.estimate import Estimate, mean_estimate, quantile_estimate
from mc.sensitivity import barrier, training
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
    config: ExperimentConfig,
    samples: int,
    *,
    by: str = "p99",
    only: Collection[str] = (),
    advance: Advance = lambda count: None,
) -> Sensitivity:
    """The elasticities of an experiment's step.

    Args:
        config: the experiment.
        samples: steps to draw, about.
        by: the number that figures are ranked by.
        only: paths of figures to look at; all by default.
        advance: told how much more is done.

    Raises:
        InputError: the experiment cannot be built, its requests are served, or a path leads to no figure.
    """
    for path in only:
        figure_at(config, path)
    if config.serving is not None:
        raise SensitivityError("expected an experiment whose steps are trained; got one with `serving`")
    if config.mitigations != MitigationsConfig():
        raise SensitivityError(
            "expected an experiment without `mitigations`, whose steps are not differentiated"
        )
    kind = barrier if config.model.transformer is None else training
    times, found = kind.elasticities(config, samples, advance, only)
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
