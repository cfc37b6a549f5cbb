"""What is known of figures along the slowdown of slow chips, where the posterior is no normal law.

Where every run has a slow chip, the data know the product of speed and slowdown, a normal law around the best figures has the
wrong length along the valley, and there may be several bottoms. So the slowdown's coordinate is taken in steps from the best
place, both ways, and at each of them the others go down anew, from where they were at the last (the profile of the log
posterior). Around each such place the others are nearly normal, so the slowdown has the density of a nested Laplace approximation,

    p(s) ~ exp(-loss(s)) / sqrt(det H(s)),

with second derivatives H of the loss in the other coordinates (Tierney, Kadane, *JASA* 81, 1986; Rue, Martino, Chopin,
*J. R. Stat. Soc. B* 71, 2009), and figures are drawn by drawing s of it and the others of their law at s.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from mc.calibration.step_descent import ValueAndSlope, curvature_of

Floats = NDArray[np.float64]
# Of a step along the valley: standard deviations of Laplace's, and at most so many of the prior.
_SHARE, _LONGEST, _SHORTEST = 0.5, 0.4, 0.01
# By how much the log posterior falls before a walk ends; and places on either side, at most.
_RISE, _MOST = 7.0, 40
# A way back is another way if it is lower by so much.
_LOWER = 0.02
# A bottom is on the way if that is no higher than by so much.
_NEARLY = 0.5
_ITERATIONS = 40
# A place that is higher than the one before by more is tried again from there.
_STEEP = 2.0


class Valley(NamedTuple):
    """Places along one coordinate, in their order.

    Attributes:
        place: which coordinate.
        points: all coordinates, of which the others are at their best.
        losses: there.
        halves: square roots of the covariance of the others, [places, others, others].
        weights: chances of the places, which add up to 1.
        log_mass: logarithm of the posterior's mass in it, but for a constant.
    """

    place: int
    points: Floats
    losses: Floats
    halves: Floats
    weights: Floats
    log_mass: float

    def drawn(self, count: int, seed: int = 0) -> Floats:
        """Draws of all coordinates, [count, coordinates]."""
        generator = np.random.default_rng(seed)
        along = self.points[:, self.place]
        # Evenly within the half steps on either side of a place, and the others between those of its neighbours.
        chosen = np.searchsorted(np.cumsum(self.weights)[:-1], generator.uniform(size=count))
        edges = _edges(along)
        at = edges[chosen] + generator.uniform(size=count) * (edges[chosen + 1] - edges[chosen])
        found = np.stack([np.interp(at, along, column) for column in self.points.T], axis=1)
        rest = _rest(self.points.shape[1], self.place)
        normal = generator.normal(size=(count, len(rest)))
        found[:, rest] += np.einsum("nij,nj->ni", self.halves[chosen], normal)
        return found

    def holds(self, point: Floats, loss: float) -> bool:
        """Whether it goes through another bottom, or lower."""
        along = self.points[:, self.place]
        inside = along[0] <= point[self.place] <= along[-1]
        return bool(inside and np.interp(point[self.place], along, self.losses) < loss + _NEARLY)


def valley_along(value_and_slope: ValueAndSlope, best: Floats, covariance: Floats, place: int) -> Valley:
    """The valley of a loss through its bottom.

    Args:
        value_and_slope: of the loss, in coordinates in which priors are about as wide as 1.
        best: the bottom.
        covariance: around it.
        place: the coordinate to go along.
    """
    rest = _rest(len(best), place)
    first: Floats = np.asarray(np.linalg.inv(np.linalg.inv(covariance)[np.ix_(rest, rest)]), np.float64)
    step = float(np.clip(_SHARE * np.sqrt(covariance[place, place]), _SHORTEST, _LONGEST))
    least = value_and_slope(best)[0]
    points, losses = [best], [least]
    for sign in (1, -1):
        way = [best]
        heights = [least]
        while heights[-1] < min(heights) + _RISE and len(way) <= _MOST:
            start = 2 * way[-1] - way[-2] if len(way) > 1 else way[-1]
            start[place] = best[place] + sign * step * len(way)
            point, height = _down(value_and_slope, start, place, first)
            if height > heights[-1] + _STEEP:
                # Straight on was off the valley, perhaps where nothing is possible.
                ends = (point, height), _down(value_and_slope, _moved(way[-1], place, start), place, first)
                point, height = min(ends, key=lambda each: each[1])
            way.append(point)
            heights.append(height)
        # Where the way has come to another bottom, that may go on below the way here.
        for back in range(len(way) - 2, 0, -1):
            point, height = _down(value_and_slope, _moved(way[back + 1], place, way[back]), place, first)
            if height > heights[back] - _LOWER:
                break
            way[back], heights[back] = point, height
        points, losses = points + way[1:], losses + heights[1:]
    order = np.argsort([each[place] for each in points])
    kept = [number for number in order if losses[number] < min(losses) + _RISE]
    points, losses = np.array(points)[kept], np.array(losses)[kept]
    halves = [_half(value_and_slope, each, rest) for each in points]
    log_density = -losses + np.array([np.linalg.slogdet(each)[1] for each in halves])
    widths = np.maximum(np.diff(_edges(points[:, place])), 1e-12)
    weights = np.exp(log_density - log_density.max()) * widths
    mass = float(log_density.max() + np.log(weights.sum()))
    return Valley(place, points, losses, np.array(halves), weights / weights.sum(), mass)


def drawn_of(valleys: Sequence[Valley], count: int) -> Floats:
    """Draws of all coordinates from valleys apart, each by its mass, [count, coordinates]."""
    masses = np.exp([each.log_mass - max(other.log_mass for other in valleys) for each in valleys])
    ends = np.round(count * np.cumsum(masses) / masses.sum()).astype(int)
    parts = [
        valley.drawn(end - first, seed)
        for seed, (valley, first, end) in enumerate(zip(valleys, [0, *ends[:-1]], ends, strict=True))
    ]
    # Whoever takes only some of them has some of each.
    return np.random.default_rng(len(valleys)).permutation(np.concatenate(parts))


def _edges(along: Floats) -> Floats:
    """Ends of the parts of a line that each of several places on it stands for."""
    return np.concatenate([along[:1], (along[1:] + along[:-1]) / 2, along[-1:]])


def _rest(size: int, place: int) -> list[int]:
    return [each for each in range(size) if each != place]


def _moved(point: Floats, place: int, to: Floats) -> Floats:
    """A point moved along one coordinate to where another is."""
    found = point.copy()
    found[place] = to[place]
    return found


def _down(value_and_slope: ValueAndSlope, start: Floats, place: int, inverse: Floats) -> tuple[Floats, float]:
    """Where the others are at their best, and the loss there."""
    rest = _rest(len(start), place)
    if not rest:
        return start, value_and_slope(start)[0]

    def held(others: Floats) -> tuple[float, Floats]:
        at = start.copy()
        at[rest] = others
        value, slope = value_and_slope(at)
        return value, slope[rest]

    done = optimize.minimize(
        held,
        start[rest],
        jac=True,
        method="BFGS",
        options={"maxiter": _ITERATIONS, "gtol": 0.02, "hess_inv0": (inverse + inverse.T) / 2},
    )
    found = start.copy()
    found[rest] = done.x
    return found, float(done.fun)


def _half(value_and_slope: ValueAndSlope, at: Floats, rest: list[int]) -> Floats:
    """A square root of the others' covariance, which no data make wider than their priors."""
    if not rest:
        return np.zeros((0, 0))
    values, vectors = np.linalg.eigh(curvature_of(value_and_slope, at, rest))
    return vectors / np.sqrt(np.maximum(values, 1.0))
