"""Congestion and noise in files: what they may say, and what is said of mistakes."""

import pytest
from pydantic import ValidationError

from mc.config import CongestionConfig, ExperimentConfig, ExponentialDelay, NoiseConfig, resolved

IDLE, BUSY = {"name": "idle", "probability": 0.9}, {"name": "busy", "probability": 0.1, "slowdown": 2}
BARE = [{"name": "idle"}, {"name": "busy", "slowdown": 2}]
LAW = {"family": "exponential", "mean": "3 us"}


def congestion(**keys):
    return CongestionConfig.model_validate({"shared_by": "node", "states": [IDLE, BUSY], **keys})


def experiment(tier=None, noise=None):
    link = {"bandwidth": "100 GB/s", "duplex": "each", "latency": "1 us"}
    outer = {"name": "pod", "link": link, "fan_out": 4, **(tier or {})}
    return ExperimentConfig.model_validate(
        {
            "name": "x",
            "cluster": {
                "name": "x",
                "chip": {"peak": {"bf16": "1 PFLOP/s"}},
                "tiers": [{"name": "node", "link": link, "fan_out": 8}, outer],
                "noise": noise or {},
            },
            "model": {
                "name": "x",
                "compute": {"time": "1 ms"},
                "exchange": {"collective": "all-reduce", "size": "1 MB"},
            },
            "plan": {"ranks": "all"},
        }
    )


def test_what_a_file_may_say():
    assert congestion(persistence="90 %").persistence == 0.9
    assert congestion(states=[IDLE, {**BUSY, "holding": 5}]).states[1].holding == 5
    assert congestion(states=BARE, transition=[[0.9, 0.1], [0.5, 0.5]]).transition == ((0.9, 0.1), (0.5, 0.5))
    queue = congestion(states=[IDLE, {**BUSY, "delay": LAW}]).states[1].delay
    assert isinstance(queue, ExponentialDelay)
    assert queue.mean == pytest.approx(3e-6)
    assert congestion(states=[IDLE, {**BUSY, "delay": "2 us"}]).states[1].delay == pytest.approx(2e-6)
    grown = congestion(growth={"per_doubling": 0.3, "at_ranks": 64}, spread={"paths": 4})
    assert grown.growth is not None
    assert grown.growth.of == "job"
    assert grown.spread is not None
    assert grown.spread.routing == "adaptive"


def test_a_resolved_configuration_reads_back():
    tier = {
        "congestion": {
            "shared_by": "node",
            "states": [IDLE, {"name": "busy", "probability": 0.1, "load": 0.3, "delay": LAW, "holding": 3}],
        }
    }
    noise = {
        "persistent": [
            {"scope": "rank", "fraction": 0.01, "slowdown": 2},
            {"scope": "node", "spread": {"family": "lognormal", "median": 1, "sigma": 0.02}},
        ],
        "transient": [
            {"scope": "pod", "jitter": LAW},
            {"scope": "all", "pauses": {"probability": 0.1, "delay": LAW}},
        ],
    }
    config = experiment({**tier, "incast": {"buffer": "1 MB", "window": "64 kB", "penalty": 0.5}}, noise)
    assert ExperimentConfig.model_validate(resolved(config)) == config


def test_one_sequence_of_steps_says_nothing_of_others():
    lasting = {"congestion": {"shared_by": "node", "states": [IDLE, BUSY], "persistence": 0.9}}
    text = resolved(experiment(lasting))
    assert text["run"]["realisations"] == 50
    with pytest.raises(
        ValidationError, match="expected 2 or more, since steps are alike where the links of `pod`"
    ):
        ExperimentConfig.model_validate({**text, "run": {"realisations": 1}})
    ExperimentConfig.model_validate({**text, "run": {"realisations": 1, "samples": 1}})


def test_what_is_not_said_is_not_shown():
    shown = resolved(experiment({"congestion": {"shared_by": "node", "states": [IDLE, BUSY]}}))
    assert set(shown["cluster"]["tiers"][1]["congestion"]) == {"shared_by", "states"}
    assert shown["cluster"]["noise"] == {}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"states": BARE}, "expected a `probability` for each state, or a `transition` matrix for all"),
        ({"states": BARE, "transition": [[0.9, 0.1], [0.5, 0.4]]}, "row 1 adds up to 0.9"),
        ({"states": BARE, "transition": [[1.0]]}, "expected a row for each of 2 states; got 1"),
        (
            {"states": BARE, "transition": [[1.0], [0.5, 0.5]]},
            "expected 2 probabilities, one per state; got 1",
        ),
        ({"transition": [[0.9, 0.1], [0.5, 0.5]]}, "expected no probability beside a `transition` matrix"),
        ({"persistence": 0.5, "transition": [[0.9, 0.1], [0.5, 0.5]]}, "got `persistence` and `transition`"),
        ({"persistence": 1.0}, "less than 1"),
        ({"states": [{**IDLE, "holding": 3}, BUSY]}, "expected no `holding` on the first state"),
        (
            {
                "states": [
                    IDLE,
                    {**BUSY, "probability": 0.05, "holding": 3},
                    {"name": "full", "probability": 0.05},
                ]
            },
            "expected a `holding` on each state but the first",
        ),
        (
            {"states": [{**IDLE, "probability": 0.1}, {**BUSY, "probability": 0.9, "holding": 2}]},
            "they begin in 0.45 of the steps, and it holds in 0.1",
        ),
        ({"states": [IDLE, {**BUSY, "load": 0.3}]}, "expected either `slowdown` or `load`"),
        (
            {"states": [IDLE, {**BUSY, "delay": LAW}], "spread": {"paths": 2}},
            "expected a fixed time where traffic",
        ),
        ({"spread": {"paths": 0}}, "greater than or equal to 1"),
    ],
)
def test_congestion_that_cannot_be(keys, message):
    with pytest.raises(ValidationError, match=message):
        congestion(**keys)


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        ({"persistent": [{"scope": "rank", "fraction": 0.1}]}, "or `spread`; got `fraction`"),
        ({"persistent": [{"scope": "rank"}]}, "got neither"),
        (
            {
                "persistent": [
                    {
                        "scope": "rank",
                        "fraction": 0.1,
                        "slowdown": 2,
                        "spread": {"family": "constant", "value": 1},
                    }
                ]
            },
            "got `fraction`, `slowdown`, `spread`",
        ),
        ({"transient": [{"scope": "node"}]}, "expected `spread`, `jitter` or `pauses`; got none of them"),
        ({"transient": []}, "at least 1 item"),
        ({"kernels": {}}, "expected `spread` or `jitter`; got none of them"),
    ],
)
def test_noise_that_cannot_be(noise, message):
    with pytest.raises(ValidationError, match=message):
        NoiseConfig.model_validate(noise)


@pytest.mark.parametrize(
    ("tier", "noise", "message"),
    [
        (
            {},
            {"persistent": [{"scope": "nod", "fraction": 0.1, "slowdown": 2}]},
            "unknown tier `nod`; did you mean `node`",
        ),
        (
            {},
            {"transient": [{"scope": "rank", "jitter": LAW}]},
            "a rank's own noise goes into `noise.spread`",
        ),
        ({}, {"transient": [{"scope": "node", "jitter": LAW}] * 2}, "expected each scope once"),
        ({}, {"kernels": {"jitter": LAW}}, "only ranks of a `transformer` wait for each other"),
        (
            {},
            {
                "persistent": [
                    {"scope": scope, "spread": {"family": "constant", "value": 1}}
                    for scope in ("rank", "node", "pod")
                ]
            },
            "expected at most two persistent spreads",
        ),
        (
            {
                "oversubscription": 2,
                "congestion": {
                    "shared_by": "node",
                    "states": [IDLE, {"name": "busy", "probability": 0.1, "load": 0.6}],
                },
            },
            {},
            r"expected load x oversubscription below 1, since others would fill the link; got 1.2",
        ),
    ],
)
def test_clusters_that_cannot_be(tier, noise, message):
    with pytest.raises(ValidationError, match=message):
        experiment(tier, noise)
