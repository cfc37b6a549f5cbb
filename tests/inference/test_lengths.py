"""Requests of several lengths: strata, what is in flight, the slowest group, files, and what waits come to."""

import math
from pathlib import Path

import jax
import numpy as np
import pytest
from scipy import stats

from mc.config import load_experiment
from mc.config.requests import LengthConfig, RequestLawConfig, mean_length
from mc.document import ConfigError
from mc.experiment.run_serving import draw_serving
from mc.inference import compound, slowest_group, waits
from tests.inference.servers import experiment, server
from tests.stats import assert_fraction, assert_mean

CONFIGS = Path("configs").resolve()
KINDS = [{"prompt": 256, "output": 65, "weight": 3.0}, {"prompt": 4096, "output": 257, "weight": 1.0}]
MIXED = {"requests": KINDS, "prompt": 1216, "output": 113, "batch": 16}


def test_strata_of_a_lognormal_keep_its_mean():
    law = LengthConfig(median=1000.0, sigma=0.7)
    strata = np.array(law.strata(1))
    assert strata.mean() == pytest.approx(1000 * math.exp(0.7**2 / 2), rel=1e-4)
    # The median lies between the two strata in the middle.
    assert strata[99] < 1000 < strata[100]
    assert np.array(LengthConfig(median=1000.0, sigma=0.0).strata(1)).tolist() == [1000] * 200
    cut = LengthConfig(median=1000.0, sigma=0.7, most=1500).strata(1)
    assert max(cut) == 1500
    both = RequestLawConfig(prompt=law, output=LengthConfig(median=1.0, sigma=0.1))
    assert mean_length(both, "prompt") == round(strata.mean())
    assert mean_length(both, "output") == 2


def test_one_kind_is_a_prompt_and_an_answer():
    plain = server({"prompt": 1024, "output": 257, "batch": 16})
    one = server({"requests": [{"prompt": 1024, "output": 257}], "batch": 16})
    assert one.step(16) == plain.step(16)
    assert (one.memory(4), one.transfer, one.mean_pass) == (plain.memory(4), plain.transfer, plain.mean_pass)


def test_long_answers_are_in_flight_more_often_than_they_come():
    found = server(MIXED).lengths
    # 3 of 64 steps each, 1 of 256: 192 to 256.
    assert found.in_flight == pytest.approx([192 / 448, 256 / 448])
    mean = 192 / 448 * (256 + 65) + 256 / 448 * (4096 + 257)
    held = server(MIXED).memory(1.0)
    # A byte for each of 2 · 8 heads · 64 numbers in 4 layers, twice in bf16.
    assert held.cache_per_request == pytest.approx(mean * 2 * 8 * 64 * 4 * 2)
    spread = (4353 - 321) * math.sqrt(192 * 256) / 448 * 2 * 8 * 64 * 4 * 2
    assert held.deviation == pytest.approx(spread)
    assert held.cache == pytest.approx(held.cache_per_request + 3 * spread)
    # As many as fit, and one more does not.
    most = held.most
    assert most is not None
    room = held.available - held.weights
    needs = [count * held.cache_per_request + 3 * spread * math.sqrt(count) for count in (most, most + 1)]
    assert needs[0] <= room < needs[1]


def test_the_longest_of_several_prompts():
    lengths, chances = server(MIXED).lengths.longest(4)
    assert lengths.tolist() == [256, 4096]
    assert chances == pytest.approx([0.75**4, 1 - 0.75**4])
    for packing, short in (("even", 0.75), ("longest", 0.75**4)):
        found = server({**MIXED, "prefill": {"batch": 4, "packing": packing}})
        passes = found.pass_seconds(np.array([256.0, 4096.0]))
        assert found.mean_pass == pytest.approx(short * passes[0] + (1 - short) * passes[1])


def test_the_slowest_group_by_hand_and_by_draws():
    seconds, shares = np.array([1.0, 5.0]), np.array([0.75, 0.25])
    assert slowest_group(seconds, shares, 8, 0.125, 1) == pytest.approx(8 * 0.125 * 2.0)
    # One kind: the largest of binomial numbers.
    below = stats.binom.cdf(np.arange(9), 8, 0.125)
    assert slowest_group(np.array([3.0, 3.0]), shares, 8, 0.125, 4) == pytest.approx(
        3 * np.sum(1 - below**4), rel=1e-3
    )
    rng = np.random.default_rng(5)
    drawn = compound(rng, seconds, shares, rng.binomial(8, 0.125, size=(40_000, 4))).max(axis=1)
    assert_mean(drawn, slowest_group(seconds, shares, 8, 0.125, 4))


def test_waits_for_prompts_of_two_lengths_are_those_of_pollaczek_and_khinchine():
    rng = np.random.default_rng(6)
    service = rng.choice([0.1, 2.0], p=[0.9, 0.1], size=(2000, 400))
    found = waits(service, rng.exponential(1.0, size=service.shape))[:, 200:].mean(axis=1)
    # λE[S²]/(2(1 − λE[S])) at one request a second.
    mean, square = 0.9 * 0.1 + 0.1 * 2.0, 0.9 * 0.1**2 + 0.1 * 2.0**2
    assert_mean(found, square / (2 * (1 - mean)))


def test_first_tokens_come_as_their_prompts_are_long():
    serving = {**MIXED, "prefill": {"tier": "cluster", "overlap": False}}
    config = experiment(serving, run={"samples": 4000, "realisations": 1})
    drawn = draw_serving(config, jax.random.key(3, impl="threefry2x32"), lambda count: None)
    made = drawn.server
    quiet = [
        made.prefill_of(length).through() + made.sending(length, made.prefill_of(length).through())
        for length in (256.0, 4096.0)
    ]
    ttft = drawn.ttft.ravel()
    is_short = np.isclose(ttft, quiet[0], rtol=1e-5)
    assert (is_short | np.isclose(ttft, quiet[1], rtol=1e-5)).all()
    assert_fraction(int(is_short.sum()), is_short.size, 0.75)
    # Without noise all steps are alike, however long the answer.
    assert drawn.tpot == pytest.approx(made.step(16), rel=1e-5)


def test_a_trace_in_a_file(tmp_path):
    (tmp_path / "trace.csv").write_text("id,prompt,output\n1,500,100\n2,20000,1000\n3,500,100\n")
    text = "extends: configs/inference/llama3-70b-8xh100.yaml\nserving:\n  {}prompt: null\n  output: null\n"
    file = tmp_path / "traced.yaml"
    file.write_text(text.format("requests: {file: trace.csv}\n  ").replace("configs", f"{CONFIGS}"))
    serving = load_experiment(str(file)).serving
    assert serving is not None
    assert [(each.prompt, each.output, each.weight) for each in serving.requests] == [
        (500, 100, 2.0),
        (20000, 1000, 1.0),
    ]
    assert (serving.prompt, serving.output) == (7000, 400)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("serving.requests=5", "serving.requests: expected a list; got 5"),
        ("serving.requests=[]", "serving.requests: expected at least one item"),
        (
            "serving.requests=[{prompt: 0, output: 5}]",
            "serving.requests.0.prompt: expected at least 1; got 0",
        ),
        (
            "serving.requests=[{prompt: 5, output: 5}]",
            "serving.prompt: expected to be left out .* or 5, the mean",
        ),
        ("serving.requests={file: none.csv}", "serving.requests.file: none.csv cannot be read as CSV"),
        ("serving.requests={prompt: {median: 9, sigma: 1}}", "serving.requests.output: missing key"),
        ("serving.prompt=null", "`prompt`: expected a number of tokens, or `requests`"),
    ],
)
def test_mistakes(key, message):
    with pytest.raises(ConfigError, match=message):
        load_experiment(f"{CONFIGS}/inference/llama3-70b-8xh100.yaml", [key])
