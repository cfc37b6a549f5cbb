"""What a report says of a transformer on more ranks and with faster chips: Amdahl's law, and a network that costs nothing."""

import pytest

from mc.errors import InputError
from mc.experiment.quiet_step import build_quiet
from mc.experiment.training_outlook import plan_curves, plan_saturation, sizes_of_plan
from tests.experiment.test_scale import FREE

# Without a price for messages and the work of hosts, all of a step shrinks with the chip but a fixed part of 1 ms.
ALONE = [
    f"cluster.chip.efficiency.{each}=0 s" for each in ("kernel", "launch", "collective_launch", "pass_launch")
]


@pytest.fixture
def load(load):
    return lambda *overrides: load(FREE, "plan.pp=2", *ALONE, *overrides)


def test_faster_chips_follow_amdahl(load):
    config = load()
    found = plan_saturation(config)
    step, fixed = float(build_quiet(config).breakdown.step), 1e-3
    assert list(found.factors) == [1, 2, 4, 8, 16]
    expected = [step / (fixed + (step - fixed) / factor) for factor in found.factors]
    assert found.speedups == pytest.approx(expected, rel=1e-5)
    assert found.limit == pytest.approx(step / fixed, rel=1e-4)


def test_weak_scaling_on_a_free_network_loses_nothing_and_strong_the_bubble(load):
    config = load("cluster.chip.efficiency.step=0 s")
    sizes = sizes_of_plan(config)
    assert sizes == (4, 16, 64, 256)
    found = plan_curves(config, sizes)
    assert found["weak"].efficiency == pytest.approx(1, abs=1e-6)
    assert found["weak"].speedup == pytest.approx(sizes, rel=1e-6)
    # 16 sequences on 1, 4 and 16 replicas; 64 replicas have none each.
    strong = found["strong"]
    assert list(strong.ranks) == [4, 16, 64]
    assert strong.efficiency[0] == 1 > strong.efficiency[1] > strong.efficiency[2]
    # Equal stages of m micro-batches take m + 1 turns. The last has the head as well, so the others wait for it already.
    passes = strong.steps - float(build_quiet(config).breakdown.parts["optimizer"])
    assert passes[0] / passes[1] > 17 / 5
    assert passes[0] / passes[2] > 17 / 2


def test_chips_of_several_kinds_are_refused(load):
    slow = "{units: [0], chip: {name: slow, peak: {bf16: 50 TFLOP/s}, memory_bandwidth: 1 TB/s, memory_size: 80 GB}}"
    with pytest.raises(InputError):
        plan_saturation(load(f"cluster.tiers.pod.exceptions=[{slow}]"))
