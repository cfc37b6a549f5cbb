"""Waiting for the slowest: the maximum of independent delays.

For n identical ranks F_max = F^n. Read on the survival side, log F = log F_max/n: the quantile of the maximum
is the quantile of one rank at a shifted level, so neither sampling nor inverting it costs more for 10⁹ ranks
than for one. For ranks that differ, F_max = Π F_i.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mc.delays.base import AbstractDelay
from mc.delays.checks import ParameterError, scalar
from mc.delays.inverse import solve_quantile
from mc.delays.numerics import log_complement


class Slowest(AbstractDelay):
    """The maximum of `ranks` independent copies of `delay`.

    `ranks` is a traced number (≥ 0; 0 is the delay that is always 0), so a sweep over cluster sizes compiles
    once.
    """

    delay: AbstractDelay
    ranks: Float[Array, ""] = eqx.field(converter=scalar("ranks", minimum=0.0))

    def log_survival(self, t):
        """log(1 − F^n)."""
        log_cdf = log_complement(self.delay.log_survival(t))
        # 0·(−∞) is not 0 in floating point: with no ranks, or before the support, say what is meant.
        started = jnp.isfinite(log_cdf)
        power = self.ranks * jnp.where(started, log_cdf, 0.0)
        log_s = log_complement(power)
        before = jnp.where(self.ranks > 0, 0.0, -jnp.inf)
        return jnp.where(started, log_s, before)

    def quantile(self, log_survival):
        """The quantile of one rank at log F_max/n."""
        none = self.ranks <= 0
        log_cdf = log_complement(log_survival) / jnp.where(none, 1.0, self.ranks)
        one = self.delay.quantile(log_complement(log_cdf))
        return jnp.where(none, 0.0, one)


class SlowestOf(AbstractDelay):
    """The maximum over a batch of independent delays that differ.

    `delays` is one delay whose every parameter has a leading axis (one entry per rank, or per class of ranks:
    a batch of `Slowest` with their own counts).
    """

    delays: AbstractDelay

    def __check_init__(self):
        """All parameters must agree on the length of the leading axis."""
        lengths = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(self.delays) if eqx.is_array_like(leaf)}
        if len(lengths) != 1 or lengths == {()}:
            raise ParameterError(
                f"expected a batch of delays with one common leading axis; got leading axes {sorted(lengths)}"
            )

    @property
    def size(self) -> int:
        """How many delays the batch holds."""
        return jax.tree.leaves(self.delays)[0].shape[0]

    def log_survival(self, t):
        """log(1 − Π F_i), summed in chunks so that ranks × times is never held whole."""
        t = jnp.asarray(t)

        def log_cdf(delay):
            return log_complement(delay.log_survival(t))

        def accumulate(total, delay):
            return total + log_cdf(delay), None

        total, _ = jax.lax.scan(accumulate, jnp.zeros(t.shape, jnp.result_type(float)), self.delays)
        return log_complement(total)

    def quantile(self, log_survival):
        """By bisection; tabulate the law to draw from it often."""
        return solve_quantile(self, log_survival)


class Latest(AbstractDelay):
    """The maximum of a few independent delays of different kinds, F = Π F_i.

    Of one kind with different parameters `SlowestOf` is cheaper to compile.
    """

    delays: tuple[AbstractDelay, ...]

    def __check_init__(self):
        """At least one."""
        if not self.delays:
            raise ParameterError("expected at least one delay; got none")

    def log_survival(self, t):
        """log(1 − Π F_i)."""
        log_cdf = jnp.zeros((), jnp.result_type(float))
        for delay in self.delays:
            log_cdf = log_cdf + log_complement(delay.log_survival(t))
        return log_complement(log_cdf)

    def quantile(self, log_survival):
        """By bisection; tabulate the law to draw from it often."""
        return solve_quantile(self, log_survival)
