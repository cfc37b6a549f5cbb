"""One claim: a figure that is expected beside the one that the engine computes.

The tolerance is absolute, in the unit that the claim's text names, and has one of four reasons: half a unit
in the last digit of a rounded figure, 32-bit arithmetic, what a rough figure allows ("about 20 kW"), or the
noise of random draws. The last is such that a true claim fails with probability `ALPHA`. Statements of order
("never earlier", "grows with n") count their exceptions, of which none are expected and none tolerated.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

ALPHA = 1e-9


@dataclass(frozen=True)
class Claim:
    """A figure, expected and computed.

    Attributes:
        claim: what is claimed, with the unit.
        expected: as published or worked out by hand.
        computed: by the engine.
        tolerance: how far apart the two may be, absolute.
    """

    claim: str
    expected: float
    computed: float
    tolerance: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether the two agree; a NaN agrees with nothing."""
        return abs(self.computed - self.expected) <= self.tolerance


@dataclass(frozen=True)
class Group:
    """Claims that belong together.

    Attributes:
        title: what they are about.
        compute: the claims, from so many samples where samples are drawn.
    """

    title: str
    compute: Callable[[int], list[Claim]]


def mean_tolerance(samples: NDArray[np.floating]) -> float:
    """How far the mean of independent samples may be from the expectation: the normal quantile at `ALPHA`."""
    error = samples.std(ddof=1) / np.sqrt(samples.size)
    return float(stats.norm.isf(ALPHA / 2) * error)


def falls(values: NDArray[np.floating]) -> int:
    """How often a value is smaller than the one before it, along the first axis."""
    return int(np.sum(np.diff(values, axis=0) < 0))
