"""One box: fitted to every other size of half of the machines, scored on the other sizes and on the other machines.

Collectives of channels (all-reduce, all-gather, reduce-scatter) share a fit; an all-to-all, which NCCL sends as messages
between pairs, has its own. A machine that nobody measured is its catalog entry, with each figure off by the factor that the
machine before it was off by: latencies and efficiencies are the library's and stay, bandwidths scale with the link.
Beside both: NCCL's constants with nothing fitted.

ASTRA-sim's authors state a geometric mean error of 17 % for an H100 HGX (astra-sim/astra-sim, pull request 320); it is taken here
as exp(mean |log predicted/measured|) − 1.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from experiments.calibration.machines import HOST, MACHINES, Machine, config_of, curves_of, machine
from mc.calibration import Curve, Fit, Parameters, fit_curves, free_parameters, predict_curves, uncorrected
from mc.config import ClusterConfig

ASTRA_SIM = 0.17
# The machine that stands for one: of the same links where there is one, else of the generation before.
FOLLOWS = {
    "8x H200": "8x H100",
    "8x B300": "8x B200",
    "4x GB300": "4x GB200",
    "8x RTX PRO 6000": "8x L40S",
    "8x H100": "8x A100",
    "8x B200": "8x H100",
    "4x GB200": "8x B200",
}
# A link through a host says little of what goes through: its memory, its bridges and its sockets decide.
_HOST_SPREAD = 1.5
_STARTS = 2


@dataclass(frozen=True)
class BoxScore:
    """Errors |predicted/measured − 1| on one machine.

    Attributes:
        machine: its name.
        fitted_to: `every other size`, or the machine that stands for it.
        rows: how many were predicted.
        median: of the errors.
        mean: likewise.
        geometric: exp(mean |log predicted/measured|) − 1.
        nccl_median: of NCCL's constants on the same rows.
        nccl_geometric: likewise.
    """

    machine: str
    fitted_to: str
    rows: int
    median: float
    mean: float
    geometric: float
    nccl_median: float
    nccl_geometric: float


def box_scores(
    advance: Callable[[int], None] = lambda done: None, machines: Sequence[Machine] = MACHINES
) -> list[BoxScore]:
    """Of every machine on sizes held out; then of those that follow another of them."""
    fits: dict[str, list[Fit]] = {}
    for box in machines:
        fits[box.name] = _fits(box, [_halved(each) for each in curves_of(box)])
        advance(1)
    scores = []
    for box in machines:
        groups = _groups(_halved(each, seen=False) for each in curves_of(box))
        clusters = [fit.calibrated for fit in fits[box.name]]
        scores.append(_score(box, "every other size", groups, clusters))
    for name, before in FOLLOWS.items():
        if name in fits and before in fits:
            box = machine(name)
            groups = _groups(curves_of(box))
            clusters = [scaled(fit, box, group) for fit, group in zip(fits[before], groups, strict=True)]
            scores.append(_score(box, before, groups, clusters))
    return scores


def scaled(fit: Fit, box: Machine, curves: Sequence[Curve]) -> ClusterConfig:
    """A machine by the fit of another: its own figures, each off by as much as the other's; others as they are.

    Coordinates are in units of priors, whose centres are the catalog's, so the same coordinate is the same factor.
    """
    config = uncorrected(config_of(box))
    own = _free(box, config, curves)
    known = {each.paths: z for each, z in zip(fit.parameters.items, fit.z, strict=True)}
    return own.settled(config, np.array([known.get(each.paths, 0.0) for each in own.items]))


def _fits(box: Machine, curves: Sequence[Curve]) -> list[Fit]:
    config = uncorrected(config_of(box))
    return [
        fit_curves(config, group, _free(box, config, group), starts=_STARTS, held_out=False)
        for group in _groups(curves)
    ]


def _free(box: Machine, config: ClusterConfig, curves: Sequence[Curve]) -> Parameters:
    found = free_parameters(config, curves)
    if box.tiers != HOST:
        return found
    far = tuple(f"tiers.{name}.link.bandwidth" for name, _ in box.tiers[1:])
    return Parameters(
        tuple(replace(each, spread=_HOST_SPREAD) if each.paths[0] in far else each for each in found.items)
    )


def _groups(curves: Iterable[Curve]) -> list[list[Curve]]:
    curves = list(curves)
    return [
        [each for each in curves if (each.collective == "all-to-all") == pairs] for pairs in (False, True)
    ]


def _halved(curve: Curve, *, seen: bool = True) -> Curve:
    part = slice(0 if seen else 1, None, 2)
    return replace(curve, sizes=curve.sizes[part], times=curve.times[part])


def _score(
    box: Machine, fitted_to: str, groups: Sequence[Sequence[Curve]], clusters: Sequence[ClusterConfig]
) -> BoxScore:
    """Of curves in groups, each with its cluster."""
    curves = [each for group in groups for each in group]
    measured = np.concatenate([each.times for each in curves])
    predicted = [predict_curves(*each) for each in zip(clusters, groups, strict=True)]
    ratio = np.concatenate([part for each in predicted for part in each]) / measured
    nccl = np.concatenate(predict_curves(config_of(box), curves)) / measured
    errors = np.abs(ratio - 1)
    return BoxScore(
        box.name,
        fitted_to,
        len(measured),
        float(np.median(errors)),
        float(errors.mean()),
        _geometric(ratio),
        float(np.median(np.abs(nccl - 1))),
        _geometric(nccl),
    )


def _geometric(ratio: NDArray[np.float64]) -> float:
    return float(np.exp(np.abs(np.log(ratio)).mean()) - 1)
