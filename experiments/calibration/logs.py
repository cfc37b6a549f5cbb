"""The published logs of `experiments.nccl_logs` as curves to fit."""

import numpy as np

from experiments.nccl_logs import data
from experiments.nccl_logs.compare import Curve as Log
from experiments.nccl_logs.compare import algorithms_of, config_of
from mc.calibration import Curve, uncorrected
from mc.config import ClusterConfig

# Half of six sizes still makes a curve.
LEAST_SIZES = 6


def logs() -> list[Log]:
    """Those with enough sizes to leave out some, each once."""
    found: dict[tuple[float, ...], Log] = {}
    for log in data.read():
        if len(log.sizes) >= LEAST_SIZES:
            # Some logs are published twice, in another form.
            found.setdefault(tuple(log.measured), log)
    return list(found.values())


def fittable(log: Log) -> tuple[ClusterConfig, Curve]:
    """The cluster of a log, and its rows as a curve: sizes rising, the median where one was measured twice."""
    system = log.system
    sizes = np.unique(log.sizes)
    times = np.array([np.median(log.measured[log.sizes == size]) for size in sizes])
    curve = Curve(
        "all-reduce",
        system.nodes * system.per_node,
        algorithms_of(system),
        system.protocol,
        sizes,
        times,
        f"{system.name}, {system.nodes} x {system.per_node}",
        (log.source,),
    )
    return uncorrected(config_of(system)), curve
