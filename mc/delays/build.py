"""From the `<delay>` of a file to a delay of the algebra."""

from typing import Any

import jax.numpy as jnp

from mc.config import (
    ConstantDelay,
    EmpiricalDelay,
    ExponentialDelay,
    GammaDelay,
    LognormalDelay,
    MixtureDelay,
    ParetoDelay,
    WeibullDelay,
)
from mc.delays.affine import Shifted
from mc.delays.base import AbstractDelay
from mc.delays.checks import is_known
from mc.delays.constant import Constant
from mc.delays.empirical import Empirical
from mc.delays.exponential import Exponential
from mc.delays.gamma import Gamma
from mc.delays.lognormal import Lognormal
from mc.delays.mixture import Mixture
from mc.delays.pareto import GeneralisedPareto
from mc.delays.weibull import Weibull


def build_delay(config: Any) -> AbstractDelay:
    """The law that a validated delay specification describes (times in seconds, ratios plain)."""
    law = _family(config)
    # A shift that is traced is there.
    return Shifted(law, config.shift) if not is_known(config.shift) or config.shift else law


def _family(config: Any) -> AbstractDelay:
    match config:
        case ConstantDelay():
            return Constant(config.value)
        case ExponentialDelay():
            return Exponential(config.mean)
        case LognormalDelay(mean=mean, cv=cv) if mean is not None and cv is not None:
            return Lognormal.from_mean_cv(mean, cv)
        case LognormalDelay():
            return Lognormal(config.median, config.sigma)
        case GammaDelay(mean=mean, cv=cv) if mean is not None and cv is not None:
            return Gamma.from_mean_cv(mean, cv)
        case GammaDelay():
            return Gamma(config.shape, config.scale)
        case WeibullDelay():
            return Weibull(config.scale, config.shape)
        case ParetoDelay():
            return GeneralisedPareto(config.scale, config.shape)
        case EmpiricalDelay():
            return Empirical.fit(config.samples, config.tail_fraction)
        case MixtureDelay():
            probabilities = jnp.asarray([part.probability for part in config.components])
            return Mixture(probabilities, tuple(build_delay(part.delay) for part in config.components))
        case _:
            raise TypeError(f"expected a delay of the configuration; got {type(config).__name__}")
