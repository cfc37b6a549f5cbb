"""What a message costs: seconds for a collective, a group and a size.

Two ways to the same numbers. `ClusterPrices` asks the cluster each time, so it can be traced and differentiated in
bandwidths and latencies. `TabulatedPrices` asks it once for each collective and group, on sizes a factor 2^(1/4) apart,
and interpolates the logarithm of the time linearly in that of the size: NumPy and floats only, for thousands of
different plans a second. On a straight line (a + b·s) that is too much by (ln q)²/32 at most between points a factor q
apart, since the second derivative of log(a + b·e^x) is p(1 − p) ≤ 1/4: 0.1 %.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mc.collectives import envelope
from mc.config.axes import Axes
from mc.fabric import Cluster, Switched, span
from mc.parallel import Group
from mc.training.arithmetic import Number, minimum

# What NCCL has to offer, where links have its protocols.
NCCL: Mapping[str, tuple[str, ...]] = {
    "all-reduce": ("ring", "tree"),
    "all-gather": ("ring",),
    "reduce-scatter": ("ring",),
    "all-to-all": ("direct",),
    "send-recv": ("direct",),
    "broadcast": ("ring",),
    "reduce": ("ring",),
}
# Of the table: from 1 KiB to 1 TiB.
_FIRST, _LAST, _PER_OCTAVE = 10, 40, 4
# How a group lies on the tiers of a cluster.
Lie = tuple[Hashable, ...]
# Prices that are kept; some ten megabytes.
_REMEMBERED = 100_000


class Price(NamedTuple):
    """Seconds.

    Attributes:
        latency: that a message of no size takes, too.
        bandwidth: the rest.
    """

    latency: Number
    bandwidth: Number

    @property
    def seconds(self) -> Number:
        """In all."""
        return self.latency + self.bandwidth


FREE = Price(0.0, 0.0)


class AbstractPrices(Protocol):
    """Prices of messages."""

    def price(self, collective: str, group: Group, size: Number) -> Price:
        """What a collective of a group costs.

        Args:
            collective: such as `all-reduce`.
            group: of ranks; one rank pays nothing.
            size: bytes, of the whole buffer as nccl-tests counts it.
        """
        ...

    def tier(self, group: Group) -> int:
        """Index of the outermost tier that a group spans; -1 for one rank."""
        ...


class ClusterPrices(eqx.Module):
    """Prices of a cluster with idle links, by the fastest algorithm; traceable in its numbers.

    Attributes:
        cluster: the cluster.
        algorithms: names to choose from, by collective; all there are for one that is left out.
        protocol: as in a plan.
    """

    cluster: Cluster
    algorithms: dict[str, tuple[str, ...]] = eqx.field(static=True, default_factory=dict)
    protocol: str = eqx.field(static=True, default="auto")

    def price(self, collective: str, group: Group, size: Number) -> Price:
        """What a collective of a group costs."""
        if not group.axes:
            return FREE
        sizes = jnp.stack([jnp.ones(()), jnp.asarray(size, jnp.result_type(float))])
        times = self.times(collective, group, sizes)
        latency = minimum(times[0], times[1])
        return Price(latency, times[1] - latency)

    def tier(self, group: Group) -> int:
        """Index of the outermost tier that a group spans; -1 for one rank."""
        return span(self.cluster, group.axes)[-1].index if group.axes else -1

    def times(self, collective: str, group: Group, sizes: jax.Array) -> jax.Array:
        """Seconds for each of some sizes."""
        names = self.algorithms.get(collective, ("auto",))
        return envelope(self.cluster, collective, group.axes, sizes, names, protocol=self.protocol)


class TabulatedPrices:
    """Prices of a cluster from tables, which are made as they are asked for. A plain class: modules look theirs up slowly."""

    def __init__(self, source: ClusterPrices):
        """Args: source, of the prices."""
        self.source = source
        self.tables: dict[tuple[str, Lie], PriceTable] = {}
        self._lies: dict[Axes, Lie] = {}
        self._known: dict[tuple[str, Axes, float], Price] = {}
        self.tiers: dict[Axes, int] = {}

    def price(self, collective: str, group: Group, size: Number) -> Price:
        """What a collective of a group costs; `size` is a float or an array."""
        if not group.axes:
            return FREE
        # Many plans send the same.
        known = (collective, group.axes, size) if isinstance(size, float | int) else None
        if known in self._known:
            return self._known[known]
        lie = self._lies.get(group.axes)
        if lie is None:
            lie = self._lies[group.axes] = _lie(self.source.cluster, group)
        key = (collective, lie)
        table = self.tables.get(key)
        if table is None:
            table = self.tables[key] = _tabulate(self.source, collective, group)
        price = table.at(size)
        if known is not None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[known] = price
        return price

    def tier(self, group: Group) -> int:
        """Index of the outermost tier that a group spans; -1 for one rank."""
        if group.axes not in self.tiers:
            self.tiers[group.axes] = self.source.tier(group)
        return self.tiers[group.axes]


class ManyPrices:
    """Prices of clusters that differ in numbers only: arrays. Compiled once for each sort of message."""

    def __init__(self, source: ClusterPrices):
        """Args: source, with an axis in front of all numbers of its cluster, as `jax.vmap` gives it."""
        self.source = source

    def price(self, collective: str, group: Group, size: Number) -> Price:
        """What a collective of a group costs: an array over clusters."""
        if not group.axes:
            return FREE
        return Price(*(np.asarray(each, np.float64) for each in _each(self.source, collective, group, size)))

    def tier(self, group: Group) -> int:
        """Index of the outermost tier that a group spans; -1 for one rank."""
        return self.source.tier(group)


@eqx.filter_jit
def _each(source: ClusterPrices, collective: str, group: Group, size: float | jax.Array) -> Price:
    return jax.vmap(lambda one: one.price(collective, group, size))(source)


class PriceTable:
    """Seconds at sizes that are evenly spaced in their logarithm."""

    def __init__(self, times: Sequence[float], latency: float):
        """The time of a message at each size of the table, and of one of no size."""
        self.latency = latency
        self.logs = np.log(np.asarray(times, np.float64))
        self._logs = self.logs.tolist()

    def at(self, size: Number) -> Price:
        """The price of a size; below the table and above it as a straight line."""
        one = isinstance(size, float | int)
        seconds = self._one(float(size)) if one else self._many(np.asarray(size, np.float64))
        latency = minimum(self.latency, seconds)
        return Price(latency, seconds - latency)

    def _one(self, size: float) -> float:
        if size <= 0:
            return self.latency
        place = (math.log2(size) - _FIRST) * _PER_OCTAVE
        last = len(self._logs) - 1
        if place <= 0:
            smallest = math.exp(self._logs[0])
            return self.latency + max(smallest - self.latency, 0.0) * size / 2.0**_FIRST
        if place >= last:
            return math.exp(self._logs[last]) * size / 2.0**_LAST
        below = int(place)
        part = place - below
        return math.exp(self._logs[below] * (1 - part) + self._logs[below + 1] * part)

    def _many(self, size: np.ndarray) -> np.ndarray:
        return np.vectorize(self._one, otypes=[np.float64])(size)


def _lie(cluster: Cluster, group: Group) -> "Lie":
    """What a price depends on: behind a switch it does not matter which of its units a group reaches."""
    return group.size, tuple(
        (
            extent.index,
            extent.units,
            extent.even,
            extent.fewest_ranks,
            extent.units_in_all,
            extent.kinds,
            extent.most_ranks,
            None if isinstance(extent.tier.shape, Switched) else extent.axes,
        )
        for extent in span(cluster, group.axes)
    )


@lru_cache(maxsize=1)
def _sizes() -> np.ndarray:
    return 2.0 ** np.linspace(_FIRST, _LAST, (_LAST - _FIRST) * _PER_OCTAVE + 1)


def _tabulate(source: ClusterPrices, collective: str, group: Group) -> PriceTable:
    sizes = jnp.asarray(np.concatenate([[1.0], _sizes()]))
    # Compiling takes longer than running a table once, operation by operation.
    with jax.disable_jit():
        times = np.asarray(source.times(collective, group, sizes), np.float64)
    return PriceTable(np.maximum.accumulate(times[1:]).tolist(), float(times[0]))


def build_prices(cluster: Cluster, protocol: str = "auto") -> TabulatedPrices:
    """Prices of a cluster, from tables; where links have NCCL's protocols, by the algorithms that NCCL has."""
    names = dict(NCCL) if any(tier.protocols for tier in cluster.tiers) else {}
    return TabulatedPrices(ClusterPrices(cluster, names, protocol))
