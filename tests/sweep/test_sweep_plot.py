"""What the picture of a sweep says: which path it is over, and where doubling stops paying."""

import numpy as np
import pytest

from mc.config.load_sweep import load_sweep
from mc.errors import InputError
from mc.report.pictures.sweep import Curve, doubling_lines, path_to_plot
from tests.sweep.test_sweep_files import EXPERIMENT


def curve(at, times) -> Curve:
    return Curve("x", np.array(at, float), {"step_time_mean_s": np.array(times, float)})


def test_a_doubling_brings_two_where_the_step_stays_and_is_taken_by_doubling_over_gaps():
    assert curve([1, 2, 8], [1, 1, 1]).doublings() == pytest.approx([2, 2])
    # From 2 to 8 the step gets 1.21 times longer: 1.1 per doubling.
    assert curve([1, 2, 8], [1, 1, 1.21]).doublings() == pytest.approx([2, 2 / 1.1])


def test_it_says_up_to_where_doubling_pays():
    assert curve([8, 16, 32, 64], [1, 1.01, 1.2, 1.21]).stops() == 16
    (line,) = doubling_lines("plan.ranks", [curve([8, 16, 32], [1, 1.01, 1.2])])
    assert line == "x: doubling pays up to 16 chips; the next brings less than 1.9x"
    (line,) = doubling_lines("plan.ranks", [curve([8, 16], [1, 1.01])])
    assert "up to 16 chips; the least that one brings is 1.98x" in line


def test_a_picture_is_over_rank_counts_or_the_longest_axis(tmp_path):
    def path(block: str) -> str:
        (tmp_path / "sweep.yaml").write_text(EXPERIMENT + f"  grid: {block}\n")
        return path_to_plot(load_sweep(tmp_path / "sweep.yaml"))

    assert path("{plan.ranks: [8, 16], model.exchange.size: [1 MB, 2 MB, 3 MB]}") == "plan.ranks"
    assert (
        path("{plan.algorithm: [ring, tree], model.exchange.size: [1 MB, 2 MB, 3 MB]}")
        == "model.exchange.size"
    )
    with pytest.raises(InputError, match="several numbers"):
        path("{plan.algorithm: [ring, tree]}")
    with pytest.raises(InputError, match=r"at most 7 curves over plan\.ranks; got 8"):
        path("{plan.ranks: [8, 16], run.seed: [1, 2, 3, 4, 5, 6, 7, 8]}")
