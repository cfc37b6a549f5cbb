"""What every estimator takes and gives: a (realisations, steps) array in, a value with its interval out.

Steps of one realisation of the cluster share its persistent slow chips, so they are correlated with each
other; realisations are independent. The array keeps the two apart: row = realisation, column = step. A single
row, or rows of a single step, are simply independent steps. Everything here is float64 on the host: samples
arrive as float32, and their sums must not.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Estimate:
    """A number and the interval that covers the truth with the stated confidence.

    Attributes:
        value: the point estimate.
        low: lower end; −inf where the samples give no lower bound.
        high: upper end; +inf where the samples give no upper bound.
    """

    value: float
    low: float
    high: float

    def scaled(self, factor: float) -> "Estimate":
        """So many times it; the factor is positive."""
        return Estimate(self.value * factor, self.low * factor, self.high * factor)

    def rate(self, amount: float) -> "Estimate":
        """So much in these seconds, per second: a longer time is a lower rate."""
        low, high = (amount / bound if bound > 0 else 0.0 for bound in (self.high, self.low))
        return Estimate(amount / self.value, low, high)


def as_realisations(samples: ArrayLike) -> NDArray[np.float64]:
    """`samples` as a float64 array of shape (independent units, correlated steps within each).

    A 1-D array is one realisation. One realisation becomes as many independent units as it has steps, because
    its only persistent state is shared by all of them and says nothing about other realisations.

    Raises:
        ValueError: for an empty array, more than two dimensions, or values that are not finite.
    """
    values = np.asarray(samples, np.float64)
    if values.ndim == 1:
        values = values[None, :]
    if values.ndim != 2 or values.size == 0:
        raise ValueError(
            f"expected samples of shape (realisations, steps), not empty; got shape {np.shape(samples)}"
        )
    unusable = int(np.count_nonzero(~np.isfinite(values)))
    if unusable:
        raise ValueError(
            f"expected finite samples; got {unusable} of {values.size} that are infinite or not a number"
        )
    return values.reshape(-1, 1) if values.shape[0] == 1 else values


def check_confidence(confidence: float) -> float:
    """`confidence` as a float strictly between 0 and 1.

    Raises:
        ValueError: outside (0, 1).
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"expected a confidence between 0 and 1, such as 0.95; got {confidence!r}")
    return float(confidence)
