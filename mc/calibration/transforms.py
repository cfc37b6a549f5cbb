"""From coordinates without borders to figures that have some.

A fit sees standard normal coordinates z; x = center + spread · z is

- `positive`: the logarithm of the figure; `factor`, which is at least 1: that of what is beyond 1;
- `share`: the log-odds, of the figure over its limit (1 but for a time that is known to be below another);
- `simplex`: log(pₖ/p₀), with p₀ what all others leave: pₖ = exp xₖ / (1 + Σ exp xⱼ). One of them alone is a share;
- `ordered`: the logarithm of a step up, vₖ = 1 + exp x₁ + … + exp xₖ, so states stay in their order.
"""

from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float
from numpy.typing import NDArray

from mc.calibration.kinds import Space

# How near a share may begin to 1, where there is no slope; and a step up to none.
_MOST, _LEAST_STEP = 0.98, 0.02


@dataclass(frozen=True, eq=False)
class Transform:
    """What figures are of coordinates; entries agree.

    Attributes:
        spaces: of each figure.
        groups: name of the simplex or the chain that a figure is part of; those of one group follow each other.
        figures: centres of the priors.
        spreads: of the priors, in x.
        limits: of shares.
    """

    spaces: tuple[Space, ...]
    groups: tuple[str, ...]
    figures: NDArray[np.float64]
    spreads: NDArray[np.float64]
    limits: NDArray[np.float64]

    def values(self, z: Float[ArrayLike, "*batch n"]) -> Float[Array, "*batch n"]:
        """Figures of coordinates; traceable."""
        return jnp.vectorize(self._values, signature="(n)->(n)")(jnp.asarray(z))

    def rest(self, z: Float[ArrayLike, "*batch n"], group: str) -> Float[Array, "*batch"]:
        """What the shares of a simplex leave."""
        place = self.groups.index(group)
        left = jnp.vectorize(lambda each: self._log_rest(self._x(each))[place], signature="(n)->()")
        return jnp.exp(left(jnp.asarray(z)))

    def _x(self, z: Array) -> Array:
        return jnp.asarray(self.centers) + self.spreads * z

    def _values(self, z: Array) -> Array:
        x = self._x(z)
        steps = jnp.exp(jnp.where(self._is_bounded, 0.0, x))
        shares = jnp.exp(jnp.where(self._is_bounded, x + self._log_rest(x), 0.0))
        return jnp.where(self._is_bounded, self.limits * shares, self._from_one + self._climbs @ steps)

    def _log_rest(self, x: Array) -> Array:
        """Log of what is left of 1 by the simplex of each figure."""
        others = jnp.where(self._same & self._is_bounded[None], x[None], -jnp.inf)
        top = jnp.maximum(jnp.max(others, axis=1), 0.0)
        return -top - jnp.log(jnp.exp(-top) + jnp.sum(jnp.exp(others - top[:, None]), axis=1))

    @cached_property
    def centers(self) -> NDArray[np.float64]:
        """X of the priors' centres."""
        found = np.empty(len(self.spaces))
        for place, space in enumerate(self.spaces):
            figure = self.figures[place] / self.limits[place]
            own = [other for other, group in enumerate(self.groups) if group == self.groups[place]]
            if space == "positive":
                found[place] = np.log(figure)
            elif space == "share":
                share = min(figure, _MOST)
                found[place] = np.log(share / (1 - share))
            elif space == "simplex":
                found[place] = np.log(figure / max(1 - self.figures[own].sum(), 1 - _MOST))
            else:
                below = [other for other in own if other < place and space == "ordered"]
                step = figure - (self.figures[below[-1]] if below else 1.0)
                found[place] = np.log(max(step, _LEAST_STEP))
        return found

    @cached_property
    def _is_bounded(self) -> NDArray[np.bool_]:
        return np.array([space in ("share", "simplex") for space in self.spaces])

    @cached_property
    def _from_one(self) -> NDArray[np.float64]:
        return np.array([float(space in ("factor", "ordered")) for space in self.spaces])

    @cached_property
    def _same(self) -> NDArray[np.bool_]:
        """[n, n], whether two figures are one or of one group."""
        names = np.array([group or f"\0{place}" for place, group in enumerate(self.groups)])
        return names[:, None] == names[None, :]

    @cached_property
    def _climbs(self) -> NDArray[np.float64]:
        """[n, n], which steps make up a figure: its own, and those below it."""
        return np.tril(self._same).astype(float)

    @property
    def coupled(self) -> NDArray[np.bool_]:
        """Which figures depend on more than their own coordinate."""
        return self._same.sum(axis=1) > 1
