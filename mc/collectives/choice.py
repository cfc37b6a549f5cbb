"""Which algorithm and protocol is the fastest, over sizes: a row of the map that tuners draw.

Priced size by size this would be a compilation for each number of ranks. Costs are a few arithmetic operations, so here they are
carried out as they come, for all sizes at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mc.collectives.candidates import Pair, candidates
from mc.collectives.cost import total
from mc.collectives.phases import phases_of
from mc.collectives.stages import AUTO, HIERARCHICAL, Stage
from mc.config.protocol import NONE
from mc.fabric import Cluster


@dataclass(frozen=True)
class Choice:
    """The fastest way at each size, among a number of ranks.

    Attributes:
        ranks: of the group.
        ways: algorithm and protocol, by size.
        times: seconds, float64[sizes].
    """

    ranks: int
    ways: tuple[Pair, ...]
    times: NDArray[np.float64]


def fastest_by_size(
    cluster: Cluster,
    collective: str,
    ranks: int,
    sizes: NDArray[np.float64],
    algorithm: str = AUTO,
    *,
    protocol: str = AUTO,
) -> Choice:
    """The fastest way to carry out a collective, at each of several sizes.

    Args:
        cluster: the cluster.
        collective: such as `all-reduce`.
        ranks: how many consecutive ranks the group has.
        sizes: bytes, of the whole buffer as in nccl-tests.
        algorithm: a name, or `auto` for all.
        protocol: a name, `none`, or `auto` for all.

    Raises:
        InputError: as `mc.collectives.stages` does.
    """
    found = candidates(cluster, collective, ranks, algorithm, protocol)
    at = jnp.asarray(sizes, jnp.result_type(float))

    def priced(stages: tuple[Stage, ...]) -> NDArray[np.float64]:
        time = total(phase.cost for phase in phases_of(cluster, stages, at)).time
        return np.broadcast_to(np.asarray(time, np.float64), sizes.shape)

    flat = {pair: priced(stages) for pair, stages in found.flat.items()}
    slots = [{pair: priced((stage,)) for pair, stage in ways.items()} for ways in found.slots]
    times = np.array(list(flat.values())).reshape(len(flat), len(sizes))
    ways = [[pair] * len(sizes) for pair in flat]
    if slots:
        # Each part goes its fastest way.
        parts = [np.array(list(each.values())) for each in slots]
        chosen = [part.argmin(axis=0) for part in parts]
        ways.append([_joined(slots, [best[place] for best in chosen]) for place in range(len(sizes))])
        times = np.vstack([times, sum(part.min(axis=0) for part in parts)])
    best = times.argmin(axis=0)
    return Choice(
        ranks, tuple(ways[way][place] for place, way in enumerate(best)), times[best, np.arange(len(sizes))]
    )


def _joined(slots: Sequence[Mapping[Pair, object]], places: Sequence[int]) -> Pair:
    """The hierarchical way whose parts go the ways at these places."""
    protocols = [list(ways)[place][1] for ways, place in zip(slots, places, strict=True)]
    return HIERARCHICAL, "+".join(dict.fromkeys(each or NONE for each in protocols))
