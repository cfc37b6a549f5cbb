"""The study of DeepEP's figures: the errors it reports, and that they come from what it models."""

import json
from dataclasses import replace

import numpy as np
import pytest

from experiments.deepep import (
    Parameters,
    Row,
    as_served,
    case,
    choice_on,
    fit,
    load,
    main,
    study,
    summary,
)
from mc.config import ServingKernelsConfig
from mc.training.routing import node_load

FIRST = Row("V1", "normal", "H800", 32, "CX7", "dispatch", "GB/s", 58.0, np.nan, False)


def test_errors_of_what_was_not_fitted():
    parameters, rows = study()
    found = summary(rows)
    assert found["predicted_rows"] == 20
    assert found["predicted_absolute"] < 0.055
    assert found["predicted_largest"] < 0.105
    assert abs(found["predicted_signed"]) < 0.01
    assert 0.8 < parameters.network < 0.95
    assert 0.6 < parameters.nvlink < 0.8


def test_latencies_as_serving_has_them():
    """One set of parameters for 8 to 256 ranks, dispatch and combine; it is the fitted one, rounded."""
    found = as_served(load())
    assert found["served_rows"] == 12
    assert found["served_median"] < 0.03
    assert found["served_largest"] < 0.08
    fitted, kernels = study()[0], ServingKernelsConfig()
    for one, other in (
        (fitted.network, kernels.between),
        (fitted.nvlink, kernels.inside),
        (fitted.start, kernels.start),
    ):
        assert one == pytest.approx(other, rel=0.01)


def test_two_nodes_wait_for_nvlink_and_more_for_the_network():
    parameters = Parameters(0.87, 0.69, 24e-6)
    two, four = (case(replace(FIRST, ranks=ranks), 4_096) for ranks in (16, 32))
    assert two.inside / parameters.nvlink > two.across / parameters.network
    assert four.inside / parameters.nvlink < four.across / parameters.network


def test_bytes_by_hand():
    # 4 nodes, 8 of 256 experts: 4(1 − C(192,8)/C(256,8)) = 3.61 nodes, of which a quarter is the token's own.
    found = case(FIRST, 4_096)
    nodes = 4 * (1 - np.prod((192 - np.arange(8)) / (256 - np.arange(8))))
    assert found.counted == pytest.approx(4_096 * 7_168 * (1 + 4 / 128) * nodes)
    assert found.across == pytest.approx(found.counted * 0.75 / 50e9, rel=1e-5)


def test_without_sending_once_per_node_it_does_not_fit():
    wrong = []
    for each in load():
        factor = 8 / 3.6 if each.row.kernel != "low-latency" and each.row.ranks > 8 else 1.0
        wrong.append(replace(each, across=each.across * factor))
    parameters = fit(wrong)
    rows = [replace(each.row, predicted=each.predicted(parameters)) for each in wrong]
    assert summary(rows)["predicted_absolute"] > 0.15


def test_a_node_averages_what_its_ranks_do_not():
    choice = choice_on(8, limited=True)
    assert node_load(choice, 64, 0.0, 2, 2) == pytest.approx(1)
    node, rank = (node_load(choice, parts, 0.8, 10, 4) for parts in (8, 64))
    assert 1 < node < 1.5 < rank


def test_as_json_with_a_picture(capsys, tmp_path):
    assert main(["--quick", "--json", "--plot", str(tmp_path / "deepep.svg")]) == 0
    assert "<svg" in (tmp_path / "deepep.svg").read_text(encoding="utf-8")
    found = json.loads(capsys.readouterr().out)
    assert len(found["rows"]) == 36
    (skew,) = found["skew"]
    assert 1.5 < skew["choices"] < 2.1
    assert skew["choices_p99"] > skew["choices"]
