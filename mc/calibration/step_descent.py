"""Descents of the log posterior of step times: where they begin, how they go down, and how sharp the bottom is.

Likelihoods of maxima have valleys and plateaus (a sigma so small that no time is possible has no slope), so descents begin at
the best of many draws of the priors and not at any. Half of these have what a rank computes put near the data: where that is
off by much, all other figures look alike. scipy's BFGS goes down first, then its trust regions with second
derivatives, from central differences of exact gradients.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

Floats = NDArray[np.float64]
ValueAndSlope = Callable[[Floats], tuple[float, Floats]]
# The loss where there is none.
NOTHING = 1e300
# Places that are looked at for every one that a descent begins at.
LOOKED_AT = 32
# Of the trust region, whose every step takes all second derivatives.
LAST_STEPS = 25
_STEP = 1e-3
# Standard deviations.
_FAR = 4.0


class Descended(NamedTuple):
    """Where a descent ended.

    Attributes:
        point: the coordinates.
        loss: there.
        steps: iterations.
    """

    point: Floats
    loss: float
    steps: int


def descents(
    value_and_slope: ValueAndSlope,
    starts: Floats,
    steps: int,
    report: Callable[[str, float], None],
    *,
    near: bool = False,
) -> list[Descended]:
    """Descents from some places, the best first.

    Args:
        value_and_slope: of the loss.
        starts: one row each.
        steps: of BFGS at most.
        report: told of each end.
        near: whether they begin so near a valley that a first step along the slope would leave it.
    """
    ends = []
    for start in starts:
        place, taken = start, 0
        if not near:
            coarse: Any = optimize.minimize(
                value_and_slope, start, jac=True, method="BFGS", options={"maxiter": steps, "gtol": 0.1}
            )
            place, taken = coarse.x, int(coarse.nit)
        done: Any = optimize.minimize(
            value_and_slope,
            place,
            jac=True,
            hess=lambda at: curvature_of(value_and_slope, at),
            method="trust-exact",
            options={"maxiter": min(steps, LAST_STEPS), "gtol": 1e-3, "initial_trust_radius": 0.3},
        )
        ends.append(Descended(np.asarray(done.x), float(done.fun), taken + int(done.nit)))
        report("descent", float(done.fun))
    return sorted(ends, key=lambda each: each.loss)


def apart(ends: Sequence[Descended], covariance: Floats, most: float) -> list[Descended]:
    """Ends that are nearly as low as the first, and beyond what Laplace's approximation around those before them reaches.

    Args:
        ends: of descents, the best first.
        covariance: of the first.
        most: by how much the loss may be higher.
    """
    found = [ends[0]]
    for each in ends[1:]:
        far = all(
            (each.point - one.point) @ np.linalg.solve(covariance, each.point - one.point) > _FAR**2
            for one in found
        )
        if far and each.loss < ends[0].loss + most:
            found.append(each)
    return found[1:]


def curvature_of(value_and_slope: ValueAndSlope, at: Floats, places: Sequence[int] | None = None) -> Floats:
    """Second derivatives, in all coordinates or in those at some places, by central differences of the slope."""
    rows, own = [], list(range(len(at)) if places is None else places)
    for place in own:
        step = np.zeros(len(at))
        step[place] = _STEP
        rows.append((value_and_slope(at + step)[1] - value_and_slope(at - step)[1]) / (2 * _STEP))
    found = np.array(rows)[:, own]
    return (found + found.T) / 2


def covariance_of(curvature: Floats, prior: Floats) -> Floats:
    """The inverse; data never make a figure less known than its prior, whatever rounding says.

    Args:
        curvature: of the loss, prior included.
        prior: that of the prior alone, positive definite.
    """
    lower = np.linalg.cholesky(prior)
    inverse = np.linalg.inv(lower)
    values, vectors = np.linalg.eigh(inverse @ curvature @ inverse.T)
    half = inverse.T @ (vectors / np.sqrt(np.maximum(values, 1.0)))
    return half @ half.T
