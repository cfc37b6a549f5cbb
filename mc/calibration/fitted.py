"""What fits have in common that end in a normal law of the parameters around the best ones."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import jax
import numpy as np
from numpy.typing import NDArray

from mc.calibration.convergence import Convergence
from mc.calibration.identify import Identified, identify
from mc.calibration.parameters import Parameters
from mc.document import StrictModel

# Of intervals, unless said otherwise.
LEVEL = 0.9
# Told after each descent: what was done, and the loss.
Report = Callable[[str, float], None]
Config = TypeVar("Config", bound=StrictModel)


@dataclass(frozen=True, kw_only=True)
class Fitted(Generic[Config]):
    """A calibrated configuration.

    Attributes:
        config: before the fit.
        parameters: what was free.
        z: where the fit ended, in standardised coordinates.
        covariance: of the posterior there.
        convergence: how it ended.
    """

    config: Config
    parameters: Parameters
    z: NDArray[np.float64]
    covariance: NDArray[np.float64]
    convergence: Convergence

    @property
    def calibrated(self) -> Config:
        """The configuration with the fitted figures."""
        with jax.enable_x64(True):
            return self.parameters.settled(self.config, self.z)

    def interval(self, level: float = LEVEL) -> NDArray[np.float64]:
        """Low, fitted and high of every parameter, in SI units; columns in this order."""
        with jax.enable_x64(True):
            return self.parameters.interval(self.z, self.covariance, level)

    @cached_property
    def known(self) -> Identified:
        """What the data tell apart."""
        return identify(self.covariance)
