"""Another network for large messages, where that forecasts better: chosen by what fits miss that have not seen it.

Above some size a library may ask the receiver first (a rendezvous), which costs each hop a round trip, or take other paths. Every
protocol of the tiers that curves span is then there twice, each with figures of its own: for sizes below a threshold, and from it on.
Whether that is worth twice as many figures is decided by cross-validation: the curves of the most ranks are forecast from the
others, or, where all have as many, every other size from the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mc.calibration.curves import Curve
from mc.calibration.errors import CalibrationError
from mc.calibration.fit import score_held_out
from mc.calibration.free import free_parameters
from mc.config import ClusterConfig, TierConfig
from mc.config.axes import count
from mc.fabric import build_cluster, span

SUFFIX = "-large"


@dataclass(frozen=True)
class Networks:
    """What was decided.

    Attributes:
        config: the cluster with one network or two, to be fitted.
        first: the size that the second begins at, bytes.
        one: median of |predicted/measured − 1| on what was held out, with one network.
        two: likewise, with two.
        by: what was held out, for people.
    """

    config: ClusterConfig
    first: float
    one: float
    two: float
    by: str

    @property
    def kept(self) -> bool:
        """Whether there are two."""
        return self.two < self.one


def choose_networks(
    config: ClusterConfig, curves: Sequence[Curve], first: float, *, starts: int = 1, steps: int = 60
) -> Networks:
    """One network or two, whichever forecasts better.

    Args:
        config: the cluster, without factors by size.
        curves: what was measured.
        first: where the second network begins, bytes.
        starts: descents of each fit.
        steps: at most so many per descent and temperature.

    Raises:
        CalibrationError: the curves do not show both, or the cluster has no protocols to have twice.
    """
    both = with_second_network(config, curves, first)
    used, by = _folds(curves)
    found = []
    for each in (config, both):
        score = score_held_out(
            each, curves, free_parameters(each, curves), used=used, starts=starts, steps=steps
        )
        found.append(float(np.median(score.errors)))
    one, two = found
    return Networks(both if two < one else config, first, one, two, by)


def with_second_network(config: ClusterConfig, curves: Sequence[Curve], first: float) -> ClusterConfig:
    """The cluster with every protocol of the tiers that curves span twice: below `first` bytes, and from there on.

    Raises:
        CalibrationError: likewise.
    """
    cluster = build_cluster(config)
    names = {extent.tier.name for curve in curves for extent in span(cluster, curve.ranks)}
    tables = [tier for tier in config.tiers if tier.name in names and tier.link.protocols]
    if not tables:
        raise CalibrationError(
            f"second_network: expected a link with protocols among {', '.join(sorted(names))}, to have twice; got lines of latency "
            "and bandwidth alone"
        )
    for tier in tables:
        if any(each.sizes_from or each.sizes_below for each in tier.link.protocols or ()):
            raise CalibrationError(
                f"second_network: expected one network at `{tier.name}`; its protocols have `sizes_from` or `sizes_below` already"
            )
    for curve in curves:
        if curve.protocol != "auto":
            raise CalibrationError(
                f"second_network: expected times of whichever protocol is the fastest; those of {curve.label} are of one"
            )
    sizes = np.concatenate([curve.sizes for curve in curves])
    if not (np.sum(np.unique(sizes) < first) >= 3 and np.sum(np.unique(sizes) >= first) >= 3):
        raise CalibrationError(
            f"second_network: expected three sizes or more on either side of {first:.0f} bytes; got {sizes.min():.0f} to "
            f"{sizes.max():.0f}"
        )
    # A protocol belongs to all tiers that have it by its name.
    return config.model_copy(update={"tiers": tuple(_twice(tier, first) for tier in config.tiers)})


def _twice(tier: TierConfig, first: float) -> TierConfig:
    small = [each.model_copy(update={"sizes_below": first}) for each in tier.link.protocols or ()]
    large = [
        each.model_copy(update={"name": f"{each.name}{SUFFIX}", "sizes_from": first})
        for each in tier.link.protocols or ()
    ]
    if not small:
        return tier
    return tier.model_copy(update={"link": tier.link.model_copy(update={"protocols": (*small, *large)})})


def _folds(curves: Sequence[Curve]) -> tuple[list[np.ndarray], str]:
    """Which rows a fit sees, and what it does not, in words."""
    ranks = [each.ranks if isinstance(each.ranks, int) else count(each.ranks) for each in curves]
    most = max(ranks)
    if min(ranks) < most:
        seen = [np.full(len(curve.sizes), own < most) for curve, own in zip(curves, ranks, strict=True)]
        return seen, f"all rows of {most} ranks"
    return [np.arange(len(curve.sizes)) % 2 == 0 for curve in curves], "every other size"
