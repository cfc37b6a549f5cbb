"""The slowest rank over all realisations of the cluster at once, as one law and without a draw.

Units draw what is persistent independently of each other, so over realisations those of a scope are alike, though within one they
are not: a chip is a mixture of a healthy and a slow one. From the rank outwards, at each scope first the transient noise and then
the persistent factor, as in `mc.step.compute`:

    X_unit = persistent · (factor · max of the units inside + delay)

and the maximum of n of them is `Slowest`. Exact where all units are filled; of one that is filled in part only, the units inside it
are rounded up.
"""

import jax.numpy as jnp
from jaxtyping import ArrayLike

from mc.delays import AbstractDelay, Mixture, ParameterError, Scaled, Slowest, multiply
from mc.step.compute import Compute, scopes_of
from mc.step.persistent import Persistent


def slowest_over_realisations(compute: Compute, ranks: ArrayLike) -> AbstractDelay:
    """The compute time of the slowest of the first `ranks` ranks, over steps and realisations.

    Args:
        compute: of at least so many ranks, all chips of one kind.
        ranks: how many take part; may be traced.

    Raises:
        ParameterError: chips are of several kinds.
    """
    if compute.kinds:
        raise ParameterError("expected chips of one kind; got several")
    law, inner = compute.rank, 1
    for unit, persistent, noise in scopes_of(compute.persistent, (*compute.shared, *compute.job)):
        filled = jnp.minimum(ranks, unit)
        law, inner = Slowest(law, jnp.ceil(filled / inner)), unit
        law = law if noise is None else noise.law(law)
        for entry in persistent:
            law = _over_units(entry, law)
    return Slowest(law, jnp.ceil(jnp.asarray(ranks, jnp.result_type(float)) / inner))


def _over_units(entry: Persistent, law: AbstractDelay) -> AbstractDelay:
    """The law of a unit that is slow or not, by chance."""
    if entry.spread is not None:
        return multiply(entry.spread, law)
    assert entry.fraction is not None
    shares = jnp.stack([1 - entry.fraction, entry.fraction])
    return Mixture(shares, (law, Scaled(law, entry.slowdown)))
