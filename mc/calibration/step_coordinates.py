"""Coordinates in which the likelihood of step times has no bent valleys.

Where every run has a slow chip, what is waited for takes s times as long as a healthy chip, and the data know the product of
the slowdown s and every time of a rank, not the two of them. In the coordinates of the priors, log(s - 1) and the logarithm
of the time, such a valley is bent and a thousandth as wide as long, and a descent ends on its wall. So where a slowdown is
free, the times of a rank that are free are replaced by the logarithm of their product with it (an efficiency e by the
log-odds of e/s). The loss is the same function at the same place; only its coordinates differ.
"""

from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mc.calibration.parameters import Parameter, Parameters
from mc.units import Dimension

_SLOWDOWN = "cluster.noise.slow_chips.slowdown"
_COMPUTE, _NOISE = "model.compute.", "cluster.noise."
_TIME, _EFFICIENCY = "model.compute.time", "model.compute.efficiency"
# An efficiency beyond has log-odds beyond all priors.
_MOST = 1 - 1e-9


@dataclass(frozen=True, eq=False)
class StepCoordinates:
    """From standard normal coordinates z of figures to those of a descent and back; both along the last axis.

    Attributes:
        parameters: what is free.
    """

    parameters: Parameters

    @cached_property
    def slowdown(self) -> int | None:
        """The place of the slowdown of slow chips; None if it is not free."""
        found = [place for place, each in enumerate(self.parameters.items) if each.paths == (_SLOWDOWN,)]
        return found[0] if found and self.parameters.items[found[0]].space == "factor" else None

    @cached_property
    def _times(self) -> list[int]:
        return [place for place, each in enumerate(self.parameters.items) if _is_time(each)]

    @cached_property
    def _shares(self) -> list[int]:
        return [
            place
            for place, each in enumerate(self.parameters.items)
            if each.paths == (_EFFICIENCY,) and each.space == "share" and each.limit == 1
        ]

    @property
    def moved(self) -> list[int]:
        """Places of the figures whose coordinates are not those of priors."""
        return [] if self.slowdown is None else [*self._times, *self._shares]

    @property
    def computing(self) -> tuple[int, Parameter | None]:
        """The place of what a rank computes, a time or an efficiency, and that figure; None if it is not free."""
        for place, each in enumerate(self.parameters.items):
            if each.paths in ((_TIME,), (_EFFICIENCY,)):
                return place, each
        return -1, None

    def of(self, z: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        """Those of a descent; traceable."""
        return jnp.vectorize(lambda one: self._moved(one, 1.0), signature="(n)->(n)")(z)

    def back(self, y: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        """Those of priors; traceable."""
        return jnp.vectorize(lambda one: self._moved(one, -1.0), signature="(n)->(n)")(y)

    def _moved(self, at: Array, sign: float) -> Array:
        if self.slowdown is None:
            return at
        transform, spreads = self.parameters.transform, self.parameters.transform.spreads
        x = jnp.asarray(transform.centers) + spreads * at
        # The slowdown's own coordinate is the same in both.
        log_slowdown = jnp.logaddexp(0.0, x[self.slowdown])
        for place in self._times:
            at = at.at[place].add(sign * log_slowdown / spreads[place])
        for place in self._shares:
            log_share = -jnp.logaddexp(0.0, -x[place]) - sign * log_slowdown
            log_share = jnp.minimum(log_share, np.log(_MOST))
            odds = log_share - jnp.log(-jnp.expm1(log_share))
            at = at.at[place].set((odds - transform.centers[place]) / spreads[place])
        return at


def _is_time(parameter: Parameter) -> bool:
    """Whether a figure is a time that slow chips take longer for."""
    own = all(path.startswith((_COMPUTE, _NOISE)) for path in parameter.paths)
    return own and parameter.dimension is Dimension.TIME and parameter.space == "positive"
