"""What is computed again takes the time of exactly its operations, in exactly its layers."""

import pytest

from mc.config import ClusterConfig
from mc.training import Price, build_chip
from mc.training.roofline import Roofline
from mc.training.times import times_of
from mc.transformer import segments
from tests.parallel.plans import plan, shipped
from tests.training.test_evaluate import CLUSTER, Free

CHIP = build_chip(ClusterConfig.model_validate(CLUSTER).chip)
KEYS = {"pp": 4, "ep": 8, "global_batch": 64, "sequence_length": 4096, "layers_per_stage": "spread"}
NAMES = {
    "attention": ["attention"],
    "norms": ["attention norm", "query norm", "key and value norm", "experts norm"],
    "mla_up": ["query up", "key and value up", "rotary"],
    "activations": ["expert activation", "shared activation"],
}


class Dear:
    """Every message takes a second."""

    def price(self, collective, group, size):
        """A second."""
        return Price(0.0, 1.0)

    def tier(self, group):
        """Anywhere."""
        return 0


def backward(prices=None, **keys):
    shape = shipped("deepseek-v3")
    found = times_of(plan(shape, 64, **KEYS, **keys), shape, CHIP, prices or Free())
    return found.parts[1][0].backward_input


@pytest.mark.parametrize("part", NAMES)
def test_the_time_of_a_part(part):
    """Of 15 layers on the second stage."""
    shape = shipped("deepseek-v3")
    made = plan(shape, 64, **KEYS)
    layers = len(made.layers[1][0])
    roofline = Roofline(CHIP, made.formats)
    one = sum(
        roofline.seconds(each)[0]
        for segment in segments(shape, "moe", made.split)
        for each in segment.forward
        if each.name in NAMES[part]
    )
    plain, again = backward(), backward(recompute=[part])
    assert again.compute - plain.compute == pytest.approx(layers * one)
    some = backward(recompute=[part], recompute_layers=4)
    assert some.compute - plain.compute == pytest.approx(4 * one)
    assert again.waiting == plain.waiting


def test_experts_wait_for_their_tokens_again():
    """Gradients to experts and back; and dispatch and combine before, in as many layers."""
    plain = backward(Dear()).waiting["ep"]
    assert backward(Dear(), recompute=["experts"]).waiting["ep"] == pytest.approx(2 * plain)
    some = backward(Dear(), recompute=["experts"], recompute_layers=3).waiting["ep"]
    layers = len(plan(shipped("deepseek-v3"), 64, **KEYS).layers[1][0])
    assert some - plain == pytest.approx(plain * 3 / layers)
    assert backward(Dear(), recompute=["norms", "mla_up"]).waiting["ep"] == plain
