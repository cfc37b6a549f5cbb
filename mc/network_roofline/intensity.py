"""A plan's arithmetic intensity against the ridge of each tier.

A rank computes F FLOP in a step and sends W bytes over a tier for one dimension of the plan. Its intensity F/W against the
ridge P/b says which takes longer, all computing at the peak or all bytes at the bandwidth:

    (F/W)/(P/b) = (F/P)/(W/b).

Above 1 the dimension is compute-bound: its bytes fit beside computing, with F/P − W/b to spare. Below 1 the fabric is the
bound, and the chip can reach that part of its peak at most. Neither latency nor what computing takes beyond the peak is in
it: a compute-bound dimension may still be waited for, where the plan does not overlap it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mc.parallel import Traffic


ALL = "all"


@dataclass(frozen=True)
class Roof:
    """A tier, with what a rank has there.

    Attributes:
        name: of the tier.
        bandwidth: bytes/s in one direction.
        peak: FLOP/s of the chip, in the format of the plan.
    """

    name: str
    bandwidth: float
    peak: float

    @property
    def ridge(self) -> float:
        """FLOP per byte."""
        return self.peak / self.bandwidth


@dataclass(frozen=True)
class Point:
    """A dimension of a plan on a tier.

    Attributes:
        dimension: as in `mc.parallel.Message`; `all` for all on the tier.
        roof: of the tier.
        flop: that a rank computes in a step.
        bytes: that the busiest rank sends over the tier in a step.
    """

    dimension: str
    roof: Roof
    flop: float
    bytes: float

    @property
    def intensity(self) -> float:
        """FLOP per byte on the wire."""
        return self.flop / self.bytes

    @property
    def factor(self) -> float:
        """Intensity over the ridge: above 1 compute-bound, below fabric-bound."""
        return self.intensity / self.roof.ridge

    @property
    def bound(self) -> str:
        """What bounds it, `compute` or `fabric`."""
        return "compute" if self.factor >= 1 else "fabric"

    @property
    def computing(self) -> float:
        """Seconds of computing at the peak."""
        return self.flop / self.roof.peak

    @property
    def sending(self) -> float:
        """Seconds of bytes at the bandwidth."""
        return self.bytes / self.roof.bandwidth

    @property
    def slack(self) -> float:
        """Seconds of a step that computing takes beyond the bytes; negative where the fabric is the bound."""
        return self.computing - self.sending

    @property
    def attainable(self) -> float:
        """FLOP/s, all bytes behind computing."""
        return min(self.roof.peak, self.intensity * self.roof.bandwidth)


@dataclass(frozen=True)
class Load:
    """A plan on the roofs of its cluster.

    Attributes:
        points: by dimension and tier.
        totals: all dimensions of each tier that has traffic.
    """

    points: tuple[Point, ...]
    totals: tuple[Point, ...]


def plan_points(sent: "Sequence[Traffic]", roofs: Sequence[Roof], flop: float) -> Load:
    """Points of a plan.

    Args:
        sent: what ranks send.
        roofs: by index of the tier.
        flop: that a rank computes in a step.
    """
    points = [Point(each.dimension, roofs[each.tier], flop, each.bytes) for each in sent if each.bytes > 0]
    totals = [
        Point(ALL, roof, flop, summed)
        for tier, roof in enumerate(roofs)
        if (summed := sum(each.bytes for each in sent if each.tier == tier)) > 0
    ]
    order = {roof.name: place for place, roof in enumerate(roofs)}
    points.sort(key=lambda point: (order[point.roof.name], point.factor))
    return Load(tuple(points), tuple(totals))
