"""The `<delay>` of a file: families, their parametrisations, and what is wrong with a delay."""

import pytest

from mc.config import LognormalDelay, MixtureDelay, load_cluster
from mc.document import ConfigError


def jitter(text, write):
    write("noisy.yaml", f"extends: cluster.yaml\nnoise:\n  jitter: {text}\n")
    return load_cluster("noisy.yaml").noise.jitter


# As many as a tail is fitted to.
NUMBERS = range(101, 301)
TIMES = "[" + ", ".join(f"{each} us" for each in NUMBERS) + "]"
TIMES_IN_SECONDS = tuple(pytest.approx(each * 1e-6) for each in NUMBERS)

GOOD = [
    ("{family: constant, value: 3 us}", {"value": 3e-6}),
    ("{family: exponential, mean: 3 us, shift: 1 us}", {"mean": 3e-6, "shift": 1e-6}),
    ("{family: lognormal, median: 3 us, sigma: 0.5}", {"median": 3e-6, "sigma": 0.5, "mean": None}),
    ("{family: lognormal, mean: 3 us, cv: 50 %}", {"mean": 3e-6, "cv": 0.5, "sigma": None}),
    ("{family: gamma, mean: 3 us, cv: 2}", {"mean": 3e-6, "cv": 2.0}),
    ("{family: gamma, shape: 2, scale: 3 us}", {"shape": 2.0, "scale": 3e-6}),
    ("{family: weibull, scale: 3 us, shape: 0.7}", {"scale": 3e-6, "shape": 0.7}),
    ("{family: pareto, scale: 3 us, shape: -0.1}", {"scale": 3e-6, "shape": -0.1, "shift": 0.0}),
    (f"{{family: empirical, samples: {TIMES}}}", {"samples": TIMES_IN_SECONDS, "tail_fraction": 0.1}),
]


@pytest.mark.parametrize(("text", "fields"), GOOD)
def test_reads_each_family(text, fields, write):
    delay = jitter(text, write)
    assert {name: getattr(delay, name) for name in fields} == fields


def test_ratios_are_plain_where_times_have_units(write):
    write(
        "noisy.yaml", "extends: cluster.yaml\nnoise: {spread: {family: lognormal, median: 1, sigma: 2 %}}\n"
    )
    spread = load_cluster("noisy.yaml").noise.spread
    assert isinstance(spread, LognormalDelay)
    assert (spread.median, spread.sigma) == (1.0, 0.02)


def test_mixtures_hold_any_other_family(write):
    usual = "{probability: 0.9, delay: {family: constant, value: 1 us}}"
    rare = "{probability: 10 %, delay: {family: pareto, scale: 1 us, shape: 0.3}}"
    mixture = jitter(f"{{family: mixture, components: [{usual}, {rare}]}}", write)
    assert isinstance(mixture, MixtureDelay)
    assert [(each.probability, each.delay.family) for each in mixture.components] == [
        (0.9, "constant"),
        (0.1, "pareto"),
    ]


BAD = [
    (
        "{family: lognorml, median: 1 us}",
        "3:20: noise.jitter.family: unknown name `lognorml`; did you mean `lognormal`?",
    ),
    ("{median: 1 us, sigma: 1}", "3:3: noise.jitter: missing key; `family` has to be given"),
    (
        "{family: exponential, mean: 3}",
        "3:39: noise.jitter.mean: expected a time such as 1.2 us, 3 ms or 10 s; got 3",
    ),
    ("{family: exponential, mean: 0 us}", "3:39: noise.jitter.mean: expected more than 0; got '0 us'"),
    (
        "{family: exponential, mean: 3 us, cv: 1}",
        "3:45: noise.jitter.cv: unknown key; expected one of shift, family, mean",
    ),
    (
        "{family: exponential, mean: 3 us, shift: -1 us}",
        "3:52: noise.jitter.shift: expected at least 0; got '-1 us'",
    ),
    (
        "{family: lognormal, median: 3 us, cv: 1}",
        "3:11: noise.jitter: expected either `median` and `sigma` or `mean` and `cv`; got `median` and `cv`",
    ),
    (
        "{family: lognormal}",
        "3:11: noise.jitter: expected either `median` and `sigma` or `mean` and `cv`; got neither",
    ),
    (
        "{family: gamma, mean: 1 us, cv: 1, shape: 2, scale: 1 us}",
        "3:11: noise.jitter: expected either `mean` and `cv` or `shape` and `scale`",
    ),
    ("{family: weibull, scale: 3 us, shape: 0}", "3:49: noise.jitter.shape: expected more than 0; got 0"),
    (
        "{family: empirical, samples: [1 us]}",
        "3:40: noise.jitter.samples: expected at least 2 items; got a list of 1",
    ),
    (
        "{family: empirical, samples: [1 us, 2 us]}",
        "3:40: noise.jitter.samples: expected at least 200 to fit a tail to 10 % of them; got 2",
    ),
    (
        f"{{family: empirical, samples: [{', '.join(['1 us'] * 300)}]}}",
        "3:40: noise.jitter.samples: expected 20 values above the quantile 0.9; got 0 above 1e-06: too many are equal",
    ),
    (
        f"{{family: empirical, samples: [0 us, {TIMES[1:]}}}",
        "3:40: noise.jitter.samples: expected positive finite values; got 0 to 0.0003",
    ),
    ("{family: empirical, samples: [1 us, 2]}", "3:47: noise.jitter.samples.1: expected a time"),
    (
        "{family: empirical, samples: [1 us, 2 us], tail_fraction: 1}",
        "noise.jitter.tail_fraction: expected less than 1; got 1",
    ),
    (
        "{family: mixture, components: [{probability: 0.5, delay: {family: constant, value: 1 us}}, "
        "{probability: 0.4, delay: {family: constant, value: 0 us}}]}",
        "3:41: noise.jitter.components: expected probabilities that add up to 1; got 0.5 + 0.4 = 0.9",
    ),
    (
        "{family: mixture, components: [{probability: 1, delay: {family: mixture, components: []}}]}",
        "noise.jitter.components.0.delay.family: unknown name `mixture`",
    ),
    ("3 us", "3:11: noise.jitter: expected a mapping; got '3 us'"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_refused_at_its_place(text, message, write):
    with pytest.raises(ConfigError) as error:
        jitter(text, write)
    assert str(error.value).startswith("noisy.yaml:3:")
    assert message in str(error.value)


STATES = "states: [{name: idle, probability: 0.9}, {name: busy, probability: 10 %, slowdown: 2, delay: 5 us}]"
CONGESTION = [
    (
        f"{{shared_by: nod, {STATES}}}",
        "tiers.1.congestion.shared_by: unknown tier `nod`; did you mean `node`?",
    ),
    (
        f"{{shared_by: hall, {STATES}}}",
        "tiers.1.congestion.shared_by: expected this or an inner tier, `rank` or `all`; "
        "`hall` lies outside of `rack`",
    ),
    (
        f"{{shared_by: node, {STATES.replace('0.9', '0.8')}}}",
        "tiers.1.congestion.states: expected probabilities that add up to 1; got 0.8 + 0.1 = 0.9",
    ),
    (
        f"{{shared_by: node, {STATES.replace('slowdown: 2', 'slowdown: 0.5')}}}",
        "states.1.slowdown: expected at least 1; got 0.5",
    ),
    (f"{{shared_by: node, {STATES.replace('busy', 'idle')}}}", "states.1.name: this name is taken already"),
    (f"{{{STATES}}}", "tiers.1.congestion.shared_by: missing key"),
]


@pytest.mark.parametrize(("text", "message"), CONGESTION)
def test_congestion_is_checked(text, message, write):
    write("cluster.yaml", f"fan_out: 32\n    congestion: {text}", replace="fan_out: 32")
    with pytest.raises(ConfigError) as error:
        load_cluster("cluster.yaml")
    assert str(error.value).startswith("cluster.yaml:11:")
    assert message in str(error.value)


@pytest.mark.parametrize("shared_by", ["rank", "node", "rack", "all"])
def test_congestion_may_be_shared_by_this_or_an_inner_tier(shared_by, write):
    write(
        "cluster.yaml",
        f"fan_out: 32\n    congestion: {{shared_by: {shared_by}, {STATES}}}",
        replace="fan_out: 32",
    )
    congestion = load_cluster("cluster.yaml").tiers[1].congestion
    assert congestion is not None
    assert [(each.slowdown, each.delay) for each in congestion.states] == [(1.0, 0.0), (2.0, 5e-6)]
