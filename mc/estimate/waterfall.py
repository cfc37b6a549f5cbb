"""The waterfall: where the mean step time goes, part by part, with nothing left over.

The parts are sampled with the steps, so their means add up to the mean step time as an identity, not as an
approximation. A sum that is off by more than the samples' float32 rounding is a mistake in the model and
refused; the rounding itself goes to the largest part, so that the reported numbers add up to the last digit.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mc.estimate.mean import mean_estimate
from mc.estimate.samples import Estimate

ROUNDING = 1e-5
"""Largest relative gap between parts and step that is put down to float32: about 80 rounding steps."""


@dataclass(frozen=True)
class Part:
    """One part of the mean step time.

    Attributes:
        name: what the time is spent on.
        time: seconds, with interval.
        share: fraction of the mean step time.
    """

    name: str
    time: Estimate
    share: float


@dataclass(frozen=True)
class Waterfall:
    """The mean step time as a sum of parts, in the order in which they were given."""

    parts: tuple[Part, ...]

    @property
    def total(self) -> float:
        """Seconds: the mean step time."""
        return float(sum(part.time.value for part in self.parts))


def waterfall(samples: ArrayLike, parts: Mapping[str, ArrayLike], confidence: float = 0.95) -> Waterfall:
    """Splits the mean of `samples` into the means of `parts`.

    Args:
        samples: step times, shape (realisations, steps), in seconds.
        parts: name to seconds, each of the same shape or a scalar; in the order to be shown.
        confidence: coverage of each part's interval, in (0, 1).

    Raises:
        ValueError: if the parts do not add up, or one has another shape.
    """
    values = np.asarray(samples, np.float64)
    step = mean_estimate(values, confidence)[0].value
    estimates = {name: _part(name, part, values.shape, confidence) for name, part in parts.items()}
    total = sum(part.value for part in estimates.values())
    gap = step - total
    if abs(gap) > ROUNDING * max(abs(step), abs(total)):
        listing = ", ".join(f"{name} {part.value:.6g} s" for name, part in estimates.items()) or "no parts"
        raise ValueError(
            f"expected parts that add up to the mean step time {step:.9g} s; got {total:.9g} s ({listing})"
        )
    if estimates:
        largest = max(estimates, key=lambda name: abs(estimates[name].value))
        part = estimates[largest]
        estimates[largest] = Estimate(part.value + gap, part.low + gap, part.high + gap)
    return Waterfall(
        tuple(Part(name, part, part.value / step if step else 0.0) for name, part in estimates.items())
    )


def _part(name: str, part: ArrayLike, shape: tuple[int, ...], confidence: float) -> Estimate:
    values = np.asarray(part, np.float64)
    if values.ndim == 0:
        constant = float(values)
        if not np.isfinite(constant):
            raise ValueError(f"part {name!r}: expected a finite time; got {constant}")
        return Estimate(constant, constant, constant)
    if values.shape != shape:
        raise ValueError(
            f"part {name!r}: expected a scalar or the samples' shape {shape}; got {values.shape}"
        )
    return mean_estimate(values, confidence)[0]
