"""The shipped experiments, as far as a reader relies on them."""

from mc.config import load_experiment
from mc.config.shipped import names


def test_the_quickstart_is_what_its_comments_say():
    config = load_experiment()
    assert config == load_experiment("quickstart")
    assert config.ranks == 1024
    assert config.cluster.chip.name == "H100"
    assert config.cluster.noise.spread is not None
    assert config.cluster.noise.pauses is not None
    assert config.cluster.noise.slow_chips is not None
    compute, peak = config.model.compute, config.cluster.chip.peak.bf16
    assert compute.flop is not None
    assert compute.efficiency is not None
    assert peak is not None
    # 6 FLOP per parameter and token, which take about 40 ms.
    assert abs(compute.flop / (6 * 1.3e9 * 2048) - 1) < 0.01
    assert abs(compute.flop / (peak * compute.efficiency) / 40e-3 - 1) < 0.02
    assert config.model.exchange.size == 2 * 1.3e9


def test_quiet_chips_is_the_quickstart_without_its_stragglers():
    loud, quiet = load_experiment(), load_experiment("quiet-chips")
    assert quiet.cluster.noise.pauses is None
    assert quiet.cluster.noise.slow_chips is None
    assert quiet.cluster.noise.spread == loud.cluster.noise.spread
    assert (quiet.model, quiet.plan, quiet.run) == (loud.model, loud.plan, loud.run)


def test_every_shipped_experiment_loads():
    for name in names("experiment"):
        assert load_experiment(name).ranks >= 1
