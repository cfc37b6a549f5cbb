"""The tiers that a group spans, as plain numbers for whoever counts bytes (`mc.parallel.wires`)."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from mc.config.axes import Axes
from mc.fabric.cluster import Cluster
from mc.fabric.shape import Shape, Torus
from mc.fabric.span import Extent, span
from mc.parallel import Crossed, Group

# Units whose distances are measured pair by pair, at most.
_PAIRS = 1024


def crossed(cluster: Cluster, group: Group) -> Sequence[Crossed]:
    """The tiers that a group spans, innermost first: units, the mean distance between them, whether switches reduce."""
    if not group.axes:
        return ()
    return tuple(
        Crossed(each.index, each.units, _hops(each), each.tier.reduction_radix is not None)
        for each in span(cluster, group.axes)
    )


def _hops(extent: Extent) -> float:
    shape = extent.tier.shape
    return _mean_distance(shape, extent.units, extent.axes) if isinstance(shape, Torus) else 1.0


@lru_cache(maxsize=256)
def _mean_distance(shape: Shape, units: int, axes: Axes) -> float:
    """Between two different units of a torus, on average."""
    assert isinstance(shape, Torus)
    box = shape.box(units, axes)
    if box is not None:
        # Dimensions add up, each the mean over all pairs of coordinates, of which 1/n are the same.
        summed = sum(_along(extent, around) for extent, around in zip(box.dims, box.wrap, strict=True))
        return summed * units / (units - 1)
    places = np.zeros(1, np.int64)
    for size, stride in axes:
        places = np.add.outer(stride * np.arange(size), places).ravel()
    places = places[:_PAIRS]
    apart = shape.distance(places[:, None], places[None, :])
    return float(apart.sum() / (places.size * (places.size - 1)))


def _along(extent: int, around: bool) -> float:  # noqa: FBT001
    apart = np.abs(np.subtract.outer(np.arange(extent), np.arange(extent)))
    return float(np.where(around, np.minimum(apart, extent - apart), apart).mean())
