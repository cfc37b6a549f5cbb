"""The study of calibration: what it fits, and its own yardstick."""

import numpy as np
import pytest

from experiments.calibration.logs import LEAST_SIZES, fittable, logs
from experiments.calibration.transfer import SYSTEMS, _lines
from mc.calibration import Curve


def test_every_log_with_enough_sizes_is_there_once():
    found = logs()
    assert len(found) >= 60
    assert all(len(log.sizes) >= LEAST_SIZES for log in found)
    assert len({tuple(log.measured) for log in found}) == len(found)
    assert set(SYSTEMS) <= {log.system.name for log in found}


def test_a_log_becomes_a_curve_on_its_own_cluster():
    log = next(each for each in logs() if each.system.nodes > 1)
    config, curve = fittable(log)
    assert config.size == curve.ranks == log.system.nodes * log.system.per_node
    assert (np.diff(curve.sizes) > 0).all()


def test_the_line_of_a_ring_is_exact_for_a_ring():
    def ring(ranks):
        sizes = np.logspace(2, 9, 12)
        return Curve(
            "all-reduce", ranks, ("ring",), "auto", sizes, 2 * (ranks - 1) * (3e-6 + sizes / ranks / 20e9), ""
        )

    (found,) = _lines([ring(8), ring(32)], [ring(256)])
    assert found == pytest.approx(ring(256).times, rel=1e-3)
