"""How well a calibrated cluster predicts rows that its fit has not seen, beside a plain line of latency and bandwidth."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mc.calibration.curves import Curve
from mc.calibration.least_squares import least_squares
from mc.calibration.loss import predict_curves
from mc.config import ClusterConfig

# Of a line, as the fit of a cluster assumes it first.
_SIGMA = 0.04


@dataclass(frozen=True)
class HeldOut:
    """How well rows are predicted that the fit had not seen.

    Attributes:
        errors: |predicted/measured − 1| of each.
        sizes: bytes.
        line: the same errors of a plain latency–bandwidth line per curve, fitted to the same rows; nan where no row of
            the curve was fitted.
    """

    errors: NDArray[np.float64]
    sizes: NDArray[np.float64]
    line: NDArray[np.float64]


def score_unseen(
    calibrated: ClusterConfig, curves: Sequence[Curve], unseen: Sequence[Curve]
) -> tuple[HeldOut, tuple[NDArray[np.float64], ...]]:
    """The score on curves that were not fitted, and their predicted times.

    Args:
        calibrated: the cluster with the fitted figures.
        curves: what it was fitted to.
        unseen: at least one.
    """
    forecast = tuple(predict_curves(calibrated, unseen))
    straight = []
    for curve in unseen:
        same = [each for each in curves if _group(each) == _group(curve)]
        none = np.full(curve.sizes.shape, np.nan)
        straight.append(line(same[0].sizes, same[0].times, curve.sizes) if same else none)
    measured, sizes = (
        np.concatenate([getattr(curve, name) for curve in unseen]) for name in ("times", "sizes")
    )
    errors, lines = (np.abs(np.concatenate(times) / measured - 1) for times in (forecast, straight))
    return HeldOut(errors, sizes, lines), forecast


def _group(curve: Curve) -> tuple[object, ...]:
    return curve.collective, curve.ranks, curve.algorithms, curve.protocol


def line(
    sizes: NDArray[np.float64], times: NDArray[np.float64], at: NDArray[np.float64]
) -> NDArray[np.float64]:
    """A plain line α + B/w, fitted to relative errors by the same robust loss; for comparison."""
    with jax.enable_x64(True):
        start = jnp.log(jnp.array([[times.min(), times[-1] / sizes[-1]]]))
        found = _descend_line(start, jnp.asarray(sizes), jnp.asarray(times))
        latency, per_byte = np.exp(np.asarray(found[0]))
    return latency + per_byte * at


@jax.jit
def _descend_line(start: Any, sizes: Any, times: Any) -> Any:
    def residuals(z: Any, data: Any) -> Any:
        predicted = jnp.exp(z[0]) + jnp.exp(z[1]) * data[0]
        relative = jnp.log(predicted / data[1]) / _SIGMA
        return relative * jnp.sqrt(2 / (jnp.sqrt(1 + relative**2) + 1))

    return least_squares(residuals, start, (sizes, times), steps=100).point
