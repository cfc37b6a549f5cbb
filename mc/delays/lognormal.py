"""Lognormal jitter: many small factors multiplied."""

import math

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.special import erfc, ndtri
from jaxtyping import Array, ArrayLike, Float

from mc.delays.base import AbstractDelay
from mc.delays.checks import scalar
from mc.delays.numerics import LOG_2

_EARLIEST = 1e-30  # seconds: nothing is faster, and the slope of the logarithm still fits into 32 bits
# Normal scores beyond which the series is exact to the last bits, and up to which no tail is lost below the smallest number; in
# double precision not its square either, which second derivatives divide by.
_FAR = {jnp.dtype("float32"): 11.0, jnp.dtype("float64"): 26.0}


class Lognormal(AbstractDelay):
    """log T is normal with mean log `median` and standard deviation `sigma`."""

    median: Float[Array, ""] = eqx.field(converter=scalar("median", minimum=0.0, open_minimum=True))
    sigma: Float[Array, ""] = eqx.field(converter=scalar("sigma", minimum=0.0, open_minimum=True))

    @staticmethod
    def from_mean_cv(mean: ArrayLike, cv: ArrayLike) -> "Lognormal":
        """From the mean and the coefficient of variation: σ² = log(1 + cv²), median = mean·e^{−σ²/2}."""
        checked = scalar("mean", minimum=0.0, open_minimum=True)(mean)
        variance = jnp.log1p(jnp.square(scalar("cv", minimum=0.0, open_minimum=True)(cv)))
        return Lognormal(checked * jnp.exp(-variance / 2), jnp.sqrt(variance))

    def log_survival(self, t):
        """Log Φ(−z) with z = log(t/median)/σ."""
        positive = t > _EARLIEST
        z = jnp.log(jnp.where(positive, t, self.median) / self.median) / self.sigma
        return jnp.where(positive, log_normal_survival(z), 0.0)

    def quantile(self, log_survival):
        """Median·e^{σz} at the normal quantile z."""
        return self.median * jnp.exp(self.sigma * normal_quantile(log_survival))


def log_normal_survival(z: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Log Φ(−z), to relative precision at both ends.

    From one complementary error function, that of the nearer tail, and far out from the asymptotic series of Mills' ratio:
    what takes several of them (`log_ndtr` and `ndtr`) is the greater part of what a table takes to compile.
    """
    far = _FAR[jnp.result_type(z)]
    upper, beyond = z > 0, z > far
    tail = 0.5 * erfc(jnp.where(beyond, far, jnp.where(upper, z, -z)) * math.sqrt(0.5))
    near = jnp.where(upper, jnp.log(jnp.where(upper, tail, 1.0)), jnp.log1p(-jnp.where(upper, 0.0, tail)))
    square = jnp.square(jnp.where(beyond, z, far))
    mills = 1 - 1 / square * (1 - 3 / square * (1 - 5 / square * (1 - 7 / square * (1 - 9 / square))))
    deep = -0.5 * (square + jnp.log(2 * math.pi * square)) + jnp.log(mills)
    return jnp.where(beyond, deep, near)


def normal_quantile(log_survival: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Z with log Φ(−z) = `log_survival`, from whichever tail is the smaller number; ±∞ at the ends."""
    upper = log_survival < -LOG_2
    tail = jnp.where(
        upper, jnp.exp(jnp.where(upper, log_survival, -1.0)), -jnp.expm1(jnp.where(upper, -1.0, log_survival))
    )
    inside = tail > 0
    z = ndtri(jnp.where(inside, tail, 0.5))
    z = jnp.where(inside, z, -jnp.inf)
    return jnp.where(upper, -z, z)
