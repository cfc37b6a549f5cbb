"""Time against message size, as nccl-tests users know it, and where one algorithm overtakes another."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import PRNGKeyArray
from numpy.typing import NDArray

from mc.collectives import plans
from mc.collectives.candidates import ALL
from mc.collectives.stages import AUTO
from mc.exchange.sample import SampledTimes, sample_times
from mc.fabric import Cluster, LinkNoise

# nccl-tests goes from a few bytes to gigabytes in factors of 2.
SMALLEST, LARGEST = 1024.0, 16 * 1024.0**3


@dataclass(frozen=True)
class Curve:
    """One algorithm over sizes, by the fastest of its protocols at each.

    Attributes:
        algorithm: its name.
        sizes: bytes, float64[sizes].
        floor: seconds without noise, float64[sizes].
        times: what was sampled at each size; empty without noise.
    """

    algorithm: str
    sizes: NDArray[np.float64]
    floor: NDArray[np.float64]
    times: tuple[SampledTimes, ...] = ()


@dataclass(frozen=True)
class FastestRange:
    """Sizes over which one algorithm and protocol is the fastest.

    Attributes:
        algorithm: its name.
        protocol: of the links.
        smallest: bytes, where it begins to be.
        largest: bytes, where it ceases to be.
    """

    algorithm: str
    protocol: str
    smallest: float
    largest: float


def sizes_between(
    smallest: float = SMALLEST, largest: float = LARGEST, *, per_octave: float = 1
) -> NDArray[np.float64]:
    """Sizes in equal factors, `per_octave` of them to a doubling, both ends included."""
    octaves = np.log2(largest / smallest)
    return smallest * 2 ** np.linspace(0, octaves, int(np.ceil(octaves * per_octave)) + 1)


def curves(
    cluster: Cluster,
    collective: str,
    ranks: int,
    sizes: Sequence[float] | NDArray[np.float64],
    *,
    algorithm: str = ALL,
    protocol: str = AUTO,
    noise: LinkNoise | None = None,
    key: PRNGKeyArray | None = None,
    samples: int = 200,
    most_updates: int = 20_000_000,
    advance: Callable[[int], None] = lambda count: None,
) -> list[Curve]:
    """The time of every algorithm over sizes.

    Args:
        cluster: where it runs.
        collective: any that carries bytes.
        ranks: consecutive ranks in the group.
        sizes: bytes, ascending.
        algorithm: a name, or `all`.
        protocol: a name, `none`, or `auto` for the fastest of each algorithm and size.
        noise: of the links, with its tables; None for floors alone.
        key: a threefry key, with noise.
        samples: trials for each algorithm and size.
        most_updates: see `sample_times`.
        advance: told when another size is done.

    Raises:
        InputError: as `stages` does.
    """
    floors: dict[str, list[float]] = {}
    times: dict[str, list[SampledTimes]] = {}
    for size in sizes:
        by_name = {}
        wanted = AUTO if protocol == ALL else protocol
        for row, stages in plans(cluster, collective, ranks, float(size), algorithm, protocol=wanted):
            by_name.setdefault(row.algorithm, (row, stages))
        for name, (row, stages) in by_name.items():
            floors.setdefault(name, []).append(row.time)
            if noise is not None and key is not None:
                found = sample_times(
                    cluster, stages, float(size), noise, key, samples, most_updates=most_updates
                )
                times.setdefault(name, []).append(found)
        advance(1)
    grid = np.asarray(sizes, np.float64)
    return [
        Curve(name, grid, np.asarray(floor), tuple(times.get(name, ()))) for name, floor in floors.items()
    ]


def fastest_ranges(
    cluster: Cluster, collective: str, ranks: int, *, protocol: str = AUTO, per_octave: int = 4
) -> list[FastestRange]:
    """Which way is the fastest at which sizes, without noise: from 1 KiB to 16 GiB, to a quarter of a doubling."""
    wanted = AUTO if protocol == ALL else protocol
    found: list[FastestRange] = []
    for size in sizes_between(per_octave=per_octave):
        (row, _), *_ = plans(cluster, collective, ranks, float(size), AUTO, protocol=wanted)
        last = found[-1] if found else None
        if last is not None and (last.algorithm, last.protocol) == (row.algorithm, row.protocol):
            found[-1] = FastestRange(row.algorithm, row.protocol, last.smallest, float(size))
        else:
            smallest = float(size) if last is None else last.largest
            found.append(FastestRange(row.algorithm, row.protocol, smallest, float(size)))
    return found
