"""Passes against closed forms: reading weights and cache once, the floor of latency, guesses, experts that are read."""

import pytest

from mc.config import SpeculationConfig
from mc.inference import tokens_per_step
from mc.inference.speculation import chances
from tests.inference.servers import DENSE, MIXTURE, server


def weights(shape, *, head_only_at_the_end=True):
    """Weights of a dense model that a step multiplies with: all but the embedding's table, which is looked up in."""
    hidden, layers = shape["hidden"], shape["layers"]
    heads, kv_heads, width = shape["heads"], shape["kv_heads"], shape["head_dim"]
    attention = hidden * width * (2 * heads + 2 * kv_heads)
    return layers * (attention + 3 * hidden * shape["ffn"]) + hidden * shape["vocab"]


def test_one_request_takes_the_time_to_read_all_weights():
    found = server({"batch": 1, "prompt": 1, "output": 2})
    parts = found.decode(1).parts()
    assert parts["weights"] == pytest.approx(2 * weights(DENSE) / 3e12, rel=1e-12)
    # What a token and its short context move beside is next to nothing.
    assert found.round(found.decode(1)) == pytest.approx(parts["weights"], rel=0.01)
    assert parts["compute"] == parts["kernel_starts"] == parts["bandwidth"] == 0


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_ranks_share_the_weights_and_wait_for_messages(ranks):
    alone, together = (server({"batch": 1, "tp": tp}, latency="5 us") for tp in (1, ranks))
    one, many = (each.decode(1).parts() for each in (alone, together))
    assert many["weights"] == pytest.approx(one["weights"] / ranks, rel=1e-12)
    # Two all-reduces a layer and two messages at the ends, by the least number of rounds of any algorithm: log2 n for a
    # reduction by recursive doubling, one for an exchange with everybody at once.
    least = 5e-6 * (2 * DENSE["layers"] + 2)
    assert many["latency_floor"] >= least * (1 - 1e-6)
    assert many["latency_floor"] <= 2 * least * ranks.bit_length()


def test_latency_is_the_floor_of_more_ranks():
    """Weights per rank vanish with ever faster memory; messages stay."""
    found = [server({"batch": 1, "tp": tp}, latency="5 us").decode(1) for tp in (2, 8)]
    shares = [stages.parts()["latency_floor"] / stages.through() for stages in found]
    assert shares[0] < shares[1]


def test_reading_the_cache_is_linear_in_context_and_batch():
    def cache(prompt, batch):
        found = server({"batch": batch, "prompt": prompt, "output": 2})
        return found.decode(batch).parts()["kv_cache"]

    per_token = 2 * DENSE["layers"] * 2 * DENSE["kv_heads"] * DENSE["head_dim"] / 3e12
    # The token's own keys and values are written, those before it read: the prompt, and half of an answer of two.
    assert cache(1000, 1) == pytest.approx(1002 * per_token, rel=1e-12)
    assert cache(4000, 3) == pytest.approx(3 * 4002 * per_token, rel=1e-12)


def test_heads_of_keys_are_held_by_several_ranks_where_there_are_few():
    wide = {**DENSE, "kv_heads": 2}
    sizes = [server({"batch": 1, "tp": tp}, wide).memory(1).cache for tp in (1, 2, 4, 8)]
    assert sizes[1] == sizes[0] / 2
    assert sizes[3] == sizes[2] == sizes[1]


def test_a_large_batch_takes_the_time_of_its_products():
    found = server({"batch": 4096, "prompt": 1, "output": 2}, memory_size="8 TB")
    seconds = found.round(found.decode(4096))
    assert seconds >= 2 * 4096 * weights(DENSE) / 1e15
    assert found.decode(4096).parts()["compute"] > found.decode(4096).parts()["weights"]


def test_prefill_takes_the_time_of_its_products():
    found = server({"batch": 1, "prompt": 8192, "output": 2}, memory_size="8 TB")
    inside = weights(DENSE) - DENSE["hidden"] * DENSE["vocab"]
    attention = 2 * DENSE["layers"] * 8192 * 4096 * DENSE["heads"] * 2 * DENSE["head_dim"]
    ideal = (2 * 8192 * inside + attention) / 1e15
    assert ideal < found.prefill.through() < 1.5 * ideal  # and norms, activation functions, rows


def test_expected_tokens_of_guesses():
    for width, alpha in ((1, 0.85), (4, 0.6), (3, 1.0), (2, 0.0)):
        given = SpeculationConfig(width=width, acceptance=alpha)
        law = chances(given)
        assert law.sum() == pytest.approx(1)
        mean = sum((place + 1) * chance for place, chance in enumerate(law))
        assert tokens_per_step(given) == pytest.approx(mean)
        assert tokens_per_step(given) == pytest.approx(sum(alpha**k for k in range(width + 1)))
    assert tokens_per_step(None) == 1


def test_guesses_are_checked_for_the_price_of_reading_once():
    alone = server({"batch": 1})
    ahead = server({"batch": 1, "speculation": {"width": 3, "acceptance": 0.8}})
    one, four = (each.decode(1).parts() for each in (alone, ahead))
    assert four["weights"] == one["weights"]
    assert ahead.decode(1).through() < 1.05 * alone.decode(1).through()
    assert ahead.tokens_per_step == pytest.approx(1 + 0.8 + 0.64 + 0.512)


def test_only_experts_that_tokens_choose_are_read():
    """Sixteen experts of which a token takes two: one token reads two, many read all."""
    per_expert = 3 * MIXTURE["hidden"] * 1024
    others = weights(MIXTURE) - MIXTURE["layers"] * 3 * MIXTURE["hidden"] * MIXTURE["ffn"]
    routers = MIXTURE["layers"] * MIXTURE["hidden"] * 16
    for batch, read in ((1, 2.0), (2, 16 * (1 - (14 / 16) ** 2)), (512, 16.0)):
        found = server({"batch": batch, "prompt": 1, "output": 2}, MIXTURE, memory_size="8 TB")
        wanted = 2 * (others + routers + MIXTURE["layers"] * read * per_expert) / 3e12
        assert found.decode(batch).parts()["weights"] == pytest.approx(wanted, rel=1e-9)


def test_latent_attention_keeps_one_vector_per_token():
    latent = {
        **{key: value for key, value in DENSE.items() if key not in ("kv_heads", "head_dim")},
        "mla": {"q_rank": 256, "kv_rank": 128, "nope_dim": 64, "rope_dim": 32, "v_dim": 64},
    }
    for tp in (1, 4):
        found = server({"batch": 2, "tp": tp}, latent)
        assert found.memory(2).cache == 2 * 2 * DENSE["layers"] * (128 + 32) * (1024 + 257)


def test_the_parts_of_a_step_add_up():
    for block, shape in (
        ({"tp": 4, "batch": 16}, DENSE),
        ({"tp": 2, "pp": 4, "batch": 16}, DENSE),
        ({"dp": 8, "batch": 16, "two_batches": True}, MIXTURE),
        ({"tp": 2, "dp": 2, "ep": 2, "batch": 16}, MIXTURE),
    ):
        found = server(block, shape, latency="3 us", efficiency={"kernel": "2 us", "half_area": 1e6})
        stages = found.decode(16)
        assert sum(stages.parts().values()) == pytest.approx(stages.through(), rel=1e-12)


def test_a_pipeline_serves_as_fast_as_its_slowest_stage():
    found = server({"pp": 4, "batch": 16})
    stages = found.decode(16)
    slowest = max(each.at().seconds for each in stages.passes)
    assert found.round(stages) == pytest.approx(4 * slowest)
    # The last one has the head on top.
    assert stages.passes[3].at().seconds == slowest
