"""The posterior of a fit by NUTS, where a normal one around the optimum is not good enough.

Chains of blackjax's No-U-Turn sampler (Hoffman, Gelman, *Journal of Machine Learning Research* 15, 2014) begin at draws of Laplace's
approximation, in coordinates in which that is a standard normal, so that little is left to adapt. Whether they agree is said by
R-hat, and how many independent draws they are worth by the effective sample size, both of split and ranked chains (Vehtari et al.,
*Bayesian Analysis* 16, 2021). Needs the extra `bayes`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax import diagnostics
from numpy.typing import NDArray

from mc.calibration.fit import TEMPERATURES, Fit
from mc.calibration.fitted import LEVEL
from mc.calibration.loss import CurveData, curve_residuals, predictor

CHAINS, DRAWS, WARM_UP = 4, 500, 300


@dataclass(frozen=True)
class Sampled:
    """Draws of a posterior.

    Attributes:
        draws: coordinates, [chains, draws, parameters].
        rhat: of each coordinate: 1 where chains agree.
        effective: how many independent draws they are worth, the less of bulk and tails, of each coordinate.
        divergences: steps whose energy ran off.
    """

    draws: NDArray[np.float64]
    rhat: NDArray[np.float64]
    effective: NDArray[np.float64]
    divergences: int

    @property
    def together(self) -> NDArray[np.float64]:
        """All chains' draws, [draws, parameters]."""
        return self.draws.reshape(-1, self.draws.shape[-1])


def sample(
    log_density: Callable[[Any], Any],
    center: NDArray[np.float64],
    covariance: NDArray[np.float64],
    *,
    chains: int = CHAINS,
    draws: int = DRAWS,
    warm_up: int = WARM_UP,
    seed: int = 0,
) -> Sampled:
    """Draws of a density.

    Args:
        log_density: of coordinates, up to a constant; differentiable.
        center: of a normal law that is near it.
        covariance: of that law.
        chains: how many, each from a draw of that law.
        draws: of each chain.
        warm_up: steps before them, in which the step size is found.
        seed: of all.
    """
    # The sampler adds numbers to vectors where it likes.
    with jax.enable_x64(True), jax.numpy_rank_promotion("allow"):
        lower = jnp.asarray(np.linalg.cholesky(covariance))
        middle = jnp.asarray(center)

        def log_white(y: Any) -> Any:
            return log_density(middle + lower @ y)

        def chain(key: Any, start: Any) -> Any:
            first, second = jax.random.split(key)
            warm: Any = blackjax.window_adaptation(blackjax.nuts, log_white)
            (state, tuned), _ = warm.run(first, start, num_steps=warm_up)
            kernel: Any = blackjax.nuts(log_white, **tuned)

            def step(at: Any, own: Any) -> Any:
                at, told = kernel.step(own, at)
                return at, (at.position, told.is_divergent)

            return jax.lax.scan(step, state, jax.random.split(second, draws))[1]

        starts = np.random.default_rng(seed).normal(size=(chains, len(center)))
        keys = jax.random.split(jax.random.key(seed), chains)
        found, diverged = jax.jit(jax.vmap(chain))(keys, jnp.asarray(starts))
        placed = middle + jnp.einsum("cdj,ij->cdi", found, lower)
        rhat, effective = _diagnosed(placed)
        return Sampled(np.asarray(placed), np.asarray(rhat), np.asarray(effective), int(diverged.sum()))


@jax.jit
def _diagnosed(draws: Any) -> tuple[Any, Any]:
    """R-hat, and the lesser effective sample size of bulk and tails; one program is sooner there than many operations."""
    effective = jnp.minimum(diagnostics.ess_bulk(draws), diagnostics.ess_tail(draws))
    return diagnostics.rhat(draws), effective


def sample_fit(fit: Fit, *, seed: int = 0) -> tuple[Fit, Sampled]:
    """The fit with the covariance of its posterior's draws, and the draws.

    Args:
        fit: of curves; its scatter is taken as known.
        seed: of the chains.
    """
    with jax.enable_x64(True):
        residuals = curve_residuals(predictor(fit.config, fit.parameters, fit.curves), fit.curves)
        numbers = (fit.weights, np.zeros(len(fit.parameters)), fit.sigma, TEMPERATURES[-1])
        data = CurveData(*(jnp.asarray(each, float) for each in numbers))
        found = sample(lambda z: -jnp.sum(residuals(z, data) ** 2) / 2, fit.z, fit.covariance, seed=seed)
    return replace(fit, covariance=np.atleast_2d(np.cov(found.together, rowvar=False))), found


def sampled_interval(fit: Fit, sampled: Sampled, level: float = LEVEL) -> NDArray[np.float64]:
    """Low, fitted and high of every parameter, in SI units: quantiles of the draws, and the optimum."""
    with jax.enable_x64(True):
        values = np.asarray(fit.parameters.values(jnp.asarray(sampled.together)))
        middle = np.asarray(fit.parameters.values(jnp.asarray(fit.z)))
    low, high = np.quantile(values, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    return np.stack([low, middle, high], axis=-1)
