"""Fitted to up to 8 nodes of a system, scored on every larger run of it.

What is fitted is chosen by runs on few nodes alone: of the ways below that is taken which, fitted without the largest of them, has
the least median error on it. Larger runs are looked at once, for the score. A way says

- whether NCCL's factors on a tree's bandwidth stay as its tuner has them, or go;
- whether the network is another one from 4 KiB on, with figures of its own. Below, a message leaves with its envelope; above,
  libfabric's provider for Slingshot asks first (rendezvous), which costs each hop a round trip.

A larger run is predicted by runs of the same publication under the same settings, where there are several.

Beside the fit: what a plain line, fitted to the same rows, says of larger runs (a ring's rounds and bytes are known, so the
line is one of latency per round and bandwidth of the ring), and NCCL's own constants with nothing fitted.
"""

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from experiments.calibration.logs import fittable
from experiments.nccl_logs.compare import Curve as Log
from experiments.nccl_logs.compare import config_of, predict
from mc.calibration import Curve, fit_curves, free_parameters, line, predict_curves, uncorrected
from mc.config import ClusterConfig

SYSTEMS = (
    "ABCI V100, 2x EDR",
    "ABCI A100, 4x HDR",
    "Alps GH200, 4x Slingshot",
    "Polaris A100, 2x Slingshot",
)
MOST_NODES = 8
RENDEZVOUS = 4096.0


@dataclass(frozen=True)
class Way:
    """What is fitted.

    Attributes:
        corrected: whether NCCL's factors by size stay.
        parted: whether there is another network from `RENDEZVOUS` on.
    """

    corrected: bool
    parted: bool

    def __str__(self):
        """For people."""
        factors = "NCCL's factors" if self.corrected else "without factors"
        return factors + (", two networks" if self.parted else "")


PLAIN = (Way(corrected=True, parted=False), Way(corrected=False, parted=False))


@dataclass(frozen=True)
class Transfer:
    """Median errors on the larger runs of one system.

    Attributes:
        system: its name.
        seen: how many nodes the fitted runs had.
        unseen: how many nodes the others had.
        way: what was fitted; of several settings, for each.
        rows: how many times were predicted.
        error: of the fit, |predicted/measured − 1|, the median.
        line: of the line.
        prior: of NCCL's constants.
    """

    system: str
    seen: tuple[int, ...]
    unseen: tuple[int, ...]
    way: str
    rows: int
    error: float
    line: float
    prior: float


def transfers(
    found: Sequence[Log], advance: Callable[[int], None], systems: Sequence[str] = SYSTEMS
) -> list[Transfer]:
    """One per system, each of which has runs of both kinds."""
    rows = []
    for name in systems:
        # Sockets aside, runs on one node say nothing of the network.
        own = [log for log in found if log.system.name == name and log.system.nodes > 1]
        rows.append(_transfer(name, own))
        advance(1)
    return rows


def _transfer(name: str, own: Sequence[Log]) -> Transfer:
    # One cluster as large as the largest run; smaller groups are its first nodes.
    config = config_of(max(own, key=lambda log: log.system.nodes).system)
    larger = [log for log in own if log.system.nodes > MOST_NODES]
    seen, unseen, ways = list[Log](), list[Log](), list[Way]()
    fitted, straight = list[NDArray[np.float64]](), list[NDArray[np.float64]]()
    for key in dict.fromkeys(map(setting, larger)):
        few = [log for log in own if log.system.nodes <= MOST_NODES and setting(log) == key]
        many = [log for log in larger if setting(log) == key]
        curves, others = ([_curve(log) for log in each] for each in (few, many))
        ways.append(chosen_way(config, curves))
        fitted += forecast(config, curves, others, ways[-1], starts=2)
        straight += _lines(curves, others)
        seen, unseen = seen + few, unseen + many
    measured = [_curve(log) for log in unseen]
    prior = [predict(log.system, curve.sizes) for log, curve in zip(unseen, measured, strict=True)]
    return Transfer(
        name,
        tuple(sorted({log.system.nodes for log in seen})),
        tuple(sorted({log.system.nodes for log in unseen})),
        "; ".join(dict.fromkeys(map(str, ways))),
        sum(len(curve.sizes) for curve in measured),
        _error(fitted, measured),
        _error(straight, measured),
        _error(prior, measured),
    )


def setting(log: Log) -> tuple[str, str]:
    """Where a run is published, and the number of its settings there."""
    number = re.search(r"_set(\d+)$", log.log)
    return log.source.split(" path ")[0], number[1] if number else ""


def chosen_way(config: ClusterConfig, curves: Sequence[Curve]) -> Way:
    """The way that forecasts the largest of some runs best from the others."""

    def ranks(curve: Curve) -> int:
        assert isinstance(curve.ranks, int)
        return curve.ranks

    most = max(map(ranks, curves))
    few = [curve for curve in curves if ranks(curve) < most]
    last = [curve for curve in curves if ranks(curve) == most]

    def error(way: Way) -> float:
        return _error(forecast(config, few, last, way, starts=1), last)

    errors = {way: error(way) for way in PLAIN}
    best = min(errors, key=errors.__getitem__)
    parted = replace(best, parted=True)
    return parted if error(parted) < errors[best] else best


def forecast(
    config: ClusterConfig, seen: Sequence[Curve], unseen: Sequence[Curve], way: Way, *, starts: int
) -> list[NDArray[np.float64]]:
    """Times of runs by a fit to others."""
    prior = config if way.corrected else uncorrected(config)
    edges = (0.0, RENDEZVOUS, np.inf) if way.parted else (0.0, np.inf)
    found: list[list[NDArray[np.float64]]] = [[] for _ in unseen]
    for low, high in itertools.pairwise(edges):
        own, others = ([_between(curve, low, high) for curve in each] for each in (seen, unseen))
        fit = fit_curves(prior, own, free_parameters(prior, own), starts=starts, held_out=False)
        for parts, times in zip(found, predict_curves(fit.calibrated, others), strict=True):
            parts.append(times)
    return [np.concatenate(parts) for parts in found]


def _between(curve: Curve, low: float, high: float) -> Curve:
    inside = (curve.sizes >= low) & (curve.sizes < high)
    return replace(curve, sizes=curve.sizes[inside], times=curve.times[inside])


def _error(predicted: Sequence[NDArray[np.float64]], curves: Sequence[Curve]) -> float:
    measured = np.concatenate([curve.times for curve in curves])
    return float(np.median(np.abs(np.concatenate(predicted) / measured - 1)))


def _curve(log: Log) -> Curve:
    _, curve = fittable(log)
    return replace(curve, label=f"{log.system.nodes} x {log.system.per_node}")


def _lines(seen: Sequence[Curve], unseen: Sequence[Curve]) -> list[NDArray[np.float64]]:
    """A ring's line: 2(n − 1) latencies, and 2(n − 1)/n of the bytes; fitted to all rows seen together."""

    def rounds(curve: Curve) -> float:
        assert isinstance(curve.ranks, int)
        return 2.0 * (curve.ranks - 1)

    # Divided by its rounds, every curve is latency + bytes per rank / bandwidth.
    parts = [(curve.sizes / curve.ranks, curve.times / rounds(curve)) for curve in seen]  # pyright: ignore[reportOperatorIssue]
    sizes, times = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(sizes)
    return [
        rounds(curve) * line(sizes[order], times[order], curve.sizes / curve.ranks)  # pyright: ignore[reportOperatorIssue]
        for curve in unseen
    ]
