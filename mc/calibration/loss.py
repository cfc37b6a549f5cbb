"""What a fit of curves minimises: robust relative errors, every decade of sizes alike, and the priors.

A residual is log(predicted/measured)/σ, so 10 % too slow counts as much at 8 bytes as at 8 GB. Its square is
replaced by Huber's smooth form, 2·(√(1 + r²) − 1), which grows like |r| far out: a step that the model lacks does
not drag the rest along. As least squares need residuals, it is written as the square of r·√(2/(√(1 + r²) + 1)). Rows are
weighted by the gaps around them in log size, so that decades count alike however densely each was measured. A prior
is one residual more, z for a coordinate in units of its prior.

The time of a collective is the least of many, with corners where another way takes over; at a temperature above 0
the minimum is smooth (`mc.collectives.envelope`), and a fit lowers it step by step.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray
from scipy import stats

from mc.calibration.curves import Curve
from mc.calibration.parameters import Parameters
from mc.collectives import envelope
from mc.config import ClusterConfig
from mc.fabric import build_cluster

# Few models are no nearer to a machine than 2 %, however little the rows that were measured scatter.
FIRST_SIGMA, LEAST_SIGMA = 0.04, 0.02


class CurveData(NamedTuple):
    """What the loss looks at; a batch of it is a batch of fits.

    Attributes:
        weights: of all rows, those of one curve after the other.
        centers: of the priors, 0 but for a bootstrap.
        sigma: relative standard deviation of a measurement.
        temperature: of the smooth minimum.
    """

    weights: Float[Array, " rows"]
    centers: Float[Array, " parameters"]
    sigma: Float[Array, ""]
    temperature: Float[Array, ""]


Predict = Callable[[Array, Any], list[Array]]


def predictor(config: ClusterConfig, parameters: Parameters, curves: Sequence[Curve]) -> Predict:
    """A function from coordinates and a temperature (or None) to the times of every curve; traceable."""

    def predict(z: Array, temperature: Any) -> list[Array]:
        cluster = build_cluster(parameters.into(config, z))
        return [
            envelope(
                cluster,
                curve.collective,
                curve.ranks,
                jnp.asarray(curve.sizes),
                curve.algorithms,
                protocol=curve.protocol,
                temperature=temperature,
            )
            for curve in curves
        ]

    return predict


def curve_residuals(
    predict: Predict, curves: Sequence[Curve]
) -> Callable[[Float[Array, " parameters"], CurveData], Float[Array, " residuals"]]:
    """Residuals of rows and priors, as a function of coordinates and what else the loss looks at."""
    measured = np.log(np.concatenate([curve.times for curve in curves]))

    def residuals(z: Array, data: CurveData) -> Array:
        times = jnp.concatenate(predict(z, data.temperature))
        relative = (jnp.log(times) - measured) / data.sigma
        return jnp.concatenate([jnp.sqrt(data.weights) * robust(relative), z - data.centers])

    return residuals


def own_scatter(relative: NDArray[np.float64], taken: float) -> float:
    """The relative scatter that residuals show: by their median, freed of what parameters took up.

    Args:
        relative: log(predicted/measured).
        taken: parameters that the data took up: of p, p − tr (JᵀJ)⁻¹, since priors alone give an identity.
    """
    rows = len(relative)
    free = max(rows - taken, 0.1 * rows)
    scale = np.sqrt(rows / free) / stats.norm.ppf(0.75)
    return float(max(LEAST_SIGMA, np.median(np.abs(relative)) * scale))


def robust(relative: Any) -> Any:
    """Residuals whose squares are Huber's smooth form of errors in units of their scatter; of JAX's arrays or NumPy's."""
    return relative * (2 / ((1 + relative**2) ** 0.5 + 1)) ** 0.5


def size_weights(
    curves: Sequence[Curve], used: Sequence[NDArray[np.bool_]] | None = None
) -> NDArray[np.float64]:
    """Weights that let every decade of sizes of a curve count alike: the gaps around a size in log size.

    They average 1 over the rows in use, and are 0 for those that are not.
    """
    found = []
    for place, curve in enumerate(curves):
        mask = np.ones(len(curve.sizes), bool) if used is None else used[place]
        gaps = np.gradient(np.log(curve.sizes[mask])) if mask.sum() > 1 else np.ones(mask.sum())
        weights = np.zeros(len(mask))
        weights[mask] = gaps / gaps.mean() if mask.any() else 0.0
        found.append(weights)
    return np.concatenate(found)


def predict_curves(config: ClusterConfig, curves: Sequence[Curve]) -> list[NDArray[np.float64]]:
    """Times of every curve on a cluster as it stands, by the fastest of each curve's algorithms."""
    with jax.enable_x64(True):
        cluster = build_cluster(config)
        return [
            np.asarray(
                envelope(
                    cluster,
                    curve.collective,
                    curve.ranks,
                    jnp.asarray(curve.sizes),
                    curve.algorithms,
                    protocol=curve.protocol,
                )
            )
            for curve in curves
        ]
