"""Where two algorithms cost the same.

Both times are straight lines in the message size, a + b·B, so they meet once at most:
B = (a₂ − a₁)/(b₁ − b₂). For the tree and the ring that is n(n − 1 − ⌈log₂ n⌉)·α·bandwidth: the tree wins
below, the ring above, and the size grows with n.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from mc.collectives.cost import DEFAULT_RADIX
from mc.collectives.registry import CollectiveError, algorithms
from mc.document import did_you_mean
from mc.fabric import Link


def crossover_size(
    ranks: int,
    link: Link,
    first: str = "tree",
    second: str = "ring",
    *,
    collective: str = "all-reduce",
    reduction_time_per_byte: ArrayLike = 0.0,
    hop_latency: ArrayLike = 0.0,
    radix: int = DEFAULT_RADIX,
) -> Float[Array, ""]:
    """The message size at which two algorithms take equally long on one link.

    Args:
        ranks: how many take part, at least 1.
        link: latency and bandwidth; may be traced, and the size is differentiable in both.
        first: name of an algorithm.
        second: name of another.
        collective: what they carry out.
        reduction_time_per_byte: γ, seconds per byte.
        hop_latency: seconds per switch hop.
        radix: of k-ary and in-network trees.

    Returns:
        Bytes; 0 where the latencies are equal and the bandwidths are not; NaN where there is no such size,
        since one of the two is the faster at every size or they are the same.
    """
    # The counts nearly cancel: ring and tree differ by 2/n of the buffer, which float32 would lose for large
    # n. So they are subtracted in double precision; only their differences meet the (traced) link.
    apart = _counts_of(collective, second, ranks, radix) - _counts_of(collective, first, ranks, radix)
    rounds, hops, carried, combined = (float(each) for each in apart)
    fixed = rounds * link.latency + hops * jnp.asarray(hop_latency)
    per_byte = -carried / link.bandwidth - combined * jnp.asarray(reduction_time_per_byte)
    meets = (per_byte != 0) & (fixed * per_byte >= 0)
    return jnp.where(meets, fixed / jnp.where(meets, per_byte, 1.0), jnp.nan)


def _counts_of(collective: str, name: str, ranks: int, radix: int) -> np.ndarray:
    """(rounds, hops, carried, combined) in double precision."""
    known = algorithms(collective)
    if name not in known:
        raise CollectiveError(f"unknown algorithm `{name}` for {collective}; {did_you_mean(name, known)}")
    if ranks < 1:
        raise CollectiveError(f"ranks: expected a whole number of at least 1; got {ranks}")
    if ranks == 1:
        return np.zeros(4)
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        counts = known[name].counts(jnp.asarray(ranks, float), jnp.asarray(radix, jnp.int32))
        return np.asarray([counts.rounds, counts.hops, counts.carried, counts.combined], np.float64)
