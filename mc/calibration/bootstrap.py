"""Uncertainty by refitting: a thousand fits to reweighted data, all in one call.

Each draw gives every row a weight of its own, exponential with mean 1 (Rubin's Bayesian bootstrap, Annals of Statistics 9,
1981), and moves every prior's centre by a draw of that prior, so that what data leave free keeps the width that the
prior gives it (Newton, Polson, Xu, "Weighted Bayesian bootstrap", Canadian Journal of Statistics 49, 2021). Descents
begin at the optimum. Unlike Laplace's approximation it assumes neither a normal posterior nor that the assumed scatter
is right.
"""

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mc.calibration.fit import TEMPERATURES, Fit
from mc.calibration.fitted import LEVEL
from mc.calibration.least_squares import least_squares
from mc.calibration.loss import CurveData, curve_residuals, predictor

# Which fields of the data differ between draws.
_AXES = CurveData(weights=0, centers=0, sigma=None, temperature=None)  # pyright: ignore[reportArgumentType]


def bootstrap(fit: Fit, draws: int, *, seed: int = 0, steps: int = 30) -> NDArray[np.float64]:
    """Coordinates of so many refits, float64[draws, parameters].

    Args:
        fit: where to begin.
        draws: how many.
        seed: of weights and centres.
        steps: at most so many per refit.
    """
    generator = np.random.default_rng(seed)
    weights = fit.weights * generator.exponential(size=(draws, len(fit.weights)))
    centers = generator.normal(size=(draws, len(fit.parameters)))
    with jax.enable_x64(True):
        residuals = curve_residuals(predictor(fit.config, fit.parameters, fit.curves), fit.curves)
        data = CurveData(
            jnp.asarray(weights), jnp.asarray(centers), jnp.asarray(fit.sigma), jnp.asarray(TEMPERATURES[-1])
        )
        starts = jnp.asarray(np.broadcast_to(fit.z, centers.shape))
        descend = jax.jit(lambda z, data: least_squares(residuals, z, data, steps=steps, data_axes=_AXES))
        return np.asarray(descend(starts, data).point)


def bootstrap_interval(fit: Fit, draws: NDArray[np.float64], level: float = LEVEL) -> NDArray[np.float64]:
    """Low, fitted and high of every parameter, in SI units: quantiles of the refits around the fit itself."""
    ends = np.quantile(draws, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    with jax.enable_x64(True):
        found = fit.parameters.values(jnp.asarray(np.stack([ends[0], fit.z, ends[1]])))
    return np.asarray(found).T
