"""Where two algorithms cost the same.

On one link both times are straight lines in the message size, a + b·B, so they meet once at most:
B = (a₂ − a₁)/(b₁ − b₂). For the tree and the ring that is n(n − 1 − ⌈log₂ n⌉)·α·bandwidth: the tree wins
below, the ring above, and the size grows with n.

On a cluster whose links have protocols the times are envelopes of several lines and may meet several times;
they are looked for on a grid of sizes and then closed in on.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from mc.collectives.cost import DEFAULT_RADIX
from mc.collectives.envelope import envelope
from mc.collectives.registry import CollectiveError, algorithms
from mc.config.protocol import AUTO
from mc.document import did_you_mean
from mc.fabric import Cluster, Link


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


# 16 sizes for each doubling from a byte to 16 TiB.
_GRID = np.exp2(np.linspace(0.0, 44.0, 44 * 16 + 1))


def crossings(
    cluster: Cluster,
    ranks: int,
    first: str = "tree",
    second: str = "ring",
    *,
    collective: str = "all-reduce",
    protocol: str = AUTO,
) -> list[float]:
    """The message sizes at which two algorithms change places on a cluster, each by its fastest protocol.

    Args:
        cluster: the cluster.
        ranks: consecutive ranks in the group.
        first: name of an algorithm.
        second: name of another.
        collective: what they carry out.
        protocol: a name, `auto`, or `none`.

    Returns:
        Bytes, ascending, to a part in a thousand, between a byte and 16 TiB; changes that last for less than a
        sixteenth of a doubling may be missed.

    Raises:
        InputError: as `stages` does.
    """

    def ahead(sizes: np.ndarray) -> np.ndarray:
        one, two = (
            np.asarray(envelope(cluster, collective, ranks, jnp.asarray(sizes), name, protocol=protocol))
            for name in (first, second)
        )
        # Ties at the last bit are no change of places.
        return np.where(np.isclose(one, two, rtol=1e-6, atol=0), 0, np.sign(two - one))

    sides = ahead(_GRID)
    decided = np.flatnonzero(sides)
    found = []
    for before, after in itertools.pairwise(decided):
        if sides[before] == sides[after]:
            continue
        between = np.geomspace(_GRID[before], _GRID[after], len(_GRID))
        within = ahead(between)
        found.append(float(between[np.flatnonzero(within != sides[before])[0]]))
    return found


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
