"""The study of sensitivity: its differences, and the experiments that it carries."""

from types import SimpleNamespace

import pytest

from experiments import sensitivity as study
from mc.config import load_experiment
from mc.config.figures import figure_at
from mc.estimate import Estimate
from mc.sensitivity.derivatives import Elasticity


def test_differences_of_a_power_law_are_its_exponent(monkeypatch):
    path = "model.compute.efficiency"
    value = figure_at(load_experiment("quickstart"), path)

    def run(config):
        now = figure_at(config, path)
        return SimpleNamespace(
            estimates=SimpleNamespace(
                mean=Estimate(3 * now**0.25, 0.0, 1.0), p99=Estimate(5 * now**-2, 0.0, 1.0)
            )
        )

    def sensitivity(config, samples, only):
        one = Estimate(0.25, 0.2, 0.3)
        return SimpleNamespace(elasticities=(Elasticity(path, value, one, one, one, "gradient"),))

    monkeypatch.setattr(study, "run", run)
    monkeypatch.setattr(study, "sensitivity", sensitivity)
    mean, p99 = study.barrier(64, samples=1000, figures=(path, "cluster.noise.spread.sigma"))
    assert mean.differences == pytest.approx(0.25)
    assert p99.differences == pytest.approx(-2)
    assert (mean.gradient, mean.low, mean.high) == (0.25, 0.2, 0.3)


def test_every_figure_asked_for_is_there():
    quickstart, transformer = load_experiment("quickstart"), load_experiment(study.TRANSFORMER)
    assert all(figure_at(quickstart, path) > 0 for path in study.FIGURES)
    assert all(figure_at(transformer, path) > 0 for path in study.TRANSFORMER_FIGURES)
