"""Fitted to up to 8 nodes of a system, scored on every larger run of it.

Beside the fit: what a plain line, fitted to the same rows, says of larger runs (a ring's rounds and bytes are known, so the
line is one of latency per round and bandwidth of the ring), and NCCL's own constants with nothing fitted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from experiments.calibration.logs import fittable
from experiments.nccl_logs.compare import Curve as Log
from experiments.nccl_logs.compare import config_of, predict
from mc.calibration import Curve, fit_curves, free_parameters, line, predict_curves, uncorrected

SYSTEMS = (
    "ABCI V100, 2x EDR",
    "ABCI A100, 4x HDR",
    "Alps GH200, 4x Slingshot",
    "Polaris A100, 2x Slingshot",
)
MOST_NODES = 8


@dataclass(frozen=True)
class Transfer:
    """Median errors on the larger runs of one system.

    Attributes:
        system: its name.
        seen: how many nodes the fitted runs had.
        unseen: how many nodes the others had.
        rows: how many times were predicted.
        error: of the fit, |predicted/measured − 1|, the median.
        line: of the line.
        prior: of NCCL's constants.
    """

    system: str
    seen: tuple[int, ...]
    unseen: tuple[int, ...]
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
    seen = [log for log in own if log.system.nodes <= MOST_NODES]
    unseen = [log for log in own if log.system.nodes > MOST_NODES]
    # One cluster as large as the largest run; smaller groups are its first nodes.
    largest = max(own, key=lambda log: log.system.nodes).system
    config = uncorrected(config_of(largest))
    fit = fit_curves(
        config,
        (curves := [_curve(log) for log in seen]),
        free_parameters(config, curves),
        starts=2,
        held_out=False,
    )
    others = [_curve(log) for log in unseen]
    measured = np.concatenate([curve.times for curve in others])
    fitted = np.concatenate(predict_curves(fit.calibrated, others))
    prior = np.concatenate(
        [predict(log.system, curve.sizes) for log, curve in zip(unseen, others, strict=True)]
    )
    straight = np.concatenate(_lines(curves, others))
    return Transfer(
        name,
        tuple(sorted({log.system.nodes for log in seen})),
        tuple(sorted({log.system.nodes for log in unseen})),
        len(measured),
        *(float(np.median(np.abs(each / measured - 1))) for each in (fitted, straight, prior)),
    )


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
