"""Gamma jitter: a sum of exponential stages; narrow and nearly normal for a large shape.

The series and the continued fraction of the incomplete gamma function lose digits in float32 as the shape
grows (they subtract logarithms of size a·log a), and a compute time that varies by 1 % has shape 10⁴. From
shape 16 on Temme's uniform expansion takes over: it measures distance from the mean by η with ½η² = λ − 1 −
log λ, λ = t/(a·scale), and has no cancellation in either tail:

    Q(a, x) = ½ erfc(η√(a/2)) + e^{−aη²/2}/√(2πa) · (c₀(η) + c₁(η)/a + …).

References:
    Temme: The asymptotic expansion of the incomplete gamma functions. SIAM J. Math. Anal. 10, 1979; DLMF
        8.12.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jaxtyping import Array, ArrayLike, Float

from mc.delays.base import AbstractDelay
from mc.delays.checks import scalar
from mc.delays.inverse import solve_quantile
from mc.delays.lognormal import log_normal_survival

# With two terms of the expansion the quantile is exact to 10⁻⁶ from this shape on.
_LARGE_SHAPE = 16.0
_STEPS = 80
_FARTHEST = 1e4  # log Q is below −9,000 there for every smaller shape
# Taylor coefficients of c₀ and c₁ around η = 0 (DLMF 8.12.12 and 8.12.13), used for |η| < _NEAR; the closed
# forms cancel there.
_NEAR = 0.8
_C0 = (
    -1 / 3,
    1 / 12,
    -2 / 135,
    1 / 864,
    1 / 2835,
    -1.78755144e-4,
    3.91926318e-5,
    -2.18544851e-6,
    -1.85406221e-6,
)
_C1 = (
    -1 / 540,
    -1 / 288,
    2.6455026455e-3,
    -9.90226337e-4,
    2.05761317e-4,
    -4.01877572e-7,
    -1.80985503e-5,
    7.64916092e-6,
)


class Gamma(AbstractDelay):
    """Shape a and scale θ: mean aθ, coefficient of variation 1/√a."""

    shape: Float[Array, ""] = eqx.field(converter=scalar("shape", minimum=0.0, open_minimum=True))
    scale: Float[Array, ""] = eqx.field(converter=scalar("scale", minimum=0.0, open_minimum=True))

    @staticmethod
    def from_mean_cv(mean: ArrayLike, cv: ArrayLike) -> "Gamma":
        """From the mean and the coefficient of variation: a = 1/cv², θ = mean·cv²."""
        square = jnp.square(scalar("cv", minimum=0.0, open_minimum=True)(cv))
        return Gamma(1 / square, scalar("mean", minimum=0.0, open_minimum=True)(mean) * square)

    def log_survival(self, t):
        """Log Q(a, t/θ)."""
        large = self.shape >= _LARGE_SHAPE
        positive = t > 0
        x = jnp.where(positive, t, 1.0) / self.scale
        direct = _direct(jnp.where(large, 1.0, self.shape), x)
        expansion = _expansion(jnp.where(large, self.shape, _LARGE_SHAPE), x)
        return jnp.where(positive, jnp.where(large, expansion, direct), 0.0)

    def quantile(self, log_survival):
        """By bisection; tabulate the law to draw from it often."""
        return solve_quantile(self, log_survival)


def _direct(a: Float[Array, ""], x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    # Series for P up to about x = a + 1, continued fraction for Q beyond (DLMF 8.7.1 and 8.9.2), each with a fixed
    # number of steps that is enough below the large shapes. `jax.scipy.special` carries both in both of its
    # functions and takes seconds to compile. A small shape has little survival long before a + 1, where 1 − P has lost digits;
    # there the fraction ends soon enough from ½ on.
    early = x < jnp.where(a < 1, 0.5, a + 1)
    low, high = jnp.where(early, x, a), jnp.minimum(jnp.where(early, a + 2, x), _FARTHEST)

    def series(n, state):
        term, total = state
        term = term * low / (a + n)
        return term, total + term

    start = jnp.ones_like(low), jnp.ones_like(low)
    _, total = jax.lax.fori_loop(1, _STEPS, series, start)
    below = jnp.exp(a * jnp.log(low) - low - gammaln(a + 1)) * total

    def fraction(n, value):
        # From the tail of x + 1 − a − 1(1−a)/(x + 3 − a − 2(2−a)/(x + 5 − a − …)).
        k = jnp.asarray(_STEPS - n, high.dtype)
        return high + 2 * k - 1 - a - k * (k - a) / value

    value = jax.lax.fori_loop(0, _STEPS, fraction, high + 2 * _STEPS + 1 - a)
    return jnp.where(
        early,
        jnp.log1p(-jnp.minimum(below, 1 - 1e-6)),
        a * jnp.log(high) - high - gammaln(a) - jnp.log(value),
    )


def _expansion(a: Float[Array, ""], x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    # Beyond these ends S or F is below 10⁻⁸⁰ for every shape that comes here.
    mu = jnp.clip(x / a - 1, -1 + 1e-6, 100.0)
    half_square = _minus_log1p(mu)
    centre = jnp.abs(mu) < 1e-6
    eta = jnp.sign(mu) * jnp.sqrt(2 * jnp.where(centre, 0.5, half_square))
    eta = jnp.where(centre, mu, eta)
    z = jnp.sqrt(a) * eta
    series = (_coefficient_0(eta, mu) + _coefficient_1(eta, mu) / a) / jnp.sqrt(a)
    # R_a = φ(z)·series, to be added to the normal survival Φ(−z) and taken from Φ(z): in each tail as a
    # relative correction.
    upper = z > 0
    log_tail = log_normal_survival(jnp.abs(z))
    log_phi = -0.5 * z**2 - 0.5 * math.log(2 * math.pi)
    correction = jnp.exp(log_phi - log_tail) * series
    log_upper = log_tail + jnp.log1p(jnp.where(upper, correction, 0.0))
    log_lower = log_tail + jnp.log1p(-jnp.where(upper, 0.0, correction))
    return jnp.where(upper, log_upper, jnp.log1p(-jnp.exp(jnp.where(upper, -1.0, log_lower))))


def _minus_log1p(mu: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    # μ − log(1+μ) ≥ 0. Near 0 with u = μ/(2+μ): log(1+μ) = 2(u + u³/3 + …) and μ − 2u = μu, so nothing
    # cancels.
    near = jnp.abs(mu) < 0.4
    small = jnp.where(near, mu, 0.0)
    u = small / (2 + small)
    u2 = u * u
    series = 1 / 3 + u2 * (1 / 5 + u2 * (1 / 7 + u2 * (1 / 9 + u2 / 11)))
    far = jnp.where(near, 1.0, mu)
    return jnp.where(near, small * u - 2 * u * u2 * series, far - jnp.log1p(far))


def _coefficient_0(eta: Float[Array, "*shape"], mu: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    near = jnp.abs(eta) < _NEAR
    e, m = jnp.where(near, 1.0, eta), jnp.where(near, 1.0, mu)
    return jnp.where(near, _polynomial(_C0, jnp.where(near, eta, 0.0)), 1 / m - 1 / e)


def _coefficient_1(eta: Float[Array, "*shape"], mu: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    near = jnp.abs(eta) < _NEAR
    e, m = jnp.where(near, 1.0, eta), jnp.where(near, 1.0, mu)
    far = 1 / e**3 - 1 / m**3 - 1 / m**2 - 1 / (12 * m)
    return jnp.where(near, _polynomial(_C1, jnp.where(near, eta, 0.0)), far)


def _polynomial(coefficients: tuple[float, ...], x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    return jnp.polyval(jnp.asarray(coefficients[::-1], x.dtype), x)
