"""The resolved configuration: complete, reloadable, and identified by its content alone."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mc.config import config_hash, load_any, load_experiment, resolved, resolved_yaml
from mc.config.shipped import directory
from mc.units import Dimension, format_quantity

# A calibration has nothing to resolve.
SHIPPED = sorted(path for path in directory().rglob("*.yaml") if path.parent.name != "calibrations")


@pytest.mark.parametrize("path", SHIPPED, ids=[str(path.relative_to(directory())) for path in SHIPPED])
def test_shipped_files_reload_equal_from_their_resolved_text(path, tmp_path):
    kind, config = load_any(path)
    (tmp_path / "resolved.yaml").write_text(resolved_yaml(config))
    again = load_any(tmp_path / "resolved.yaml", kind=kind)[1]
    assert again == config
    assert config_hash(again) == config_hash(config)


def test_every_default_is_spelled_out(write):
    data = resolved(load_experiment("experiment.yaml"))
    assert data["run"] == {
        "samples": 1000,
        "seed": 7,
        "method": "exact",
        "confidence": 0.95,
        "realisations": 50,
    }
    assert data["cluster"]["tiers"][1] == {
        "name": "rack",
        "link": {"bandwidth": "50 GB/s", "duplex": "each", "latency": "2 us"},
        "fan_out": 32,
        "links_per_rank": 1.0,
        "oversubscription": 1.0,
        "hop_latency": "2 us",
    }
    assert data["model"]["exchange"] == {"collective": "all-reduce", "size": "64 MiB"}


def test_a_delay_leads_with_its_family(write):
    config = load_experiment("experiment.yaml", ["cluster.noise.jitter={mean: 3 us, family: exponential}"])
    assert list(resolved(config)["cluster"]["noise"]["jitter"]) == ["family", "shift", "mean"]


TIMES = st.floats(min_value=0, max_value=1e9).map(lambda value: format_quantity(value, Dimension.TIME))
POSITIVE = st.floats(min_value=1e-30, max_value=1e30)
# What a person may call something, or a machine: everything a text can hold that YAML can.
NAMES = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\ufeff"), min_size=1, max_size=30
)


@example(name="\x85", latency="0 s", ratio=1.0, seed=0, sigma=1.0)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(name=NAMES, latency=TIMES, ratio=POSITIVE, seed=st.integers(0, 2**63 - 1), sigma=POSITIVE)
def test_any_values_survive_the_round_trip(write, tmp_path, name, latency, ratio, seed, sigma):
    config = load_experiment(
        "experiment.yaml",
        [
            f"cluster.tiers.0.link.latency={latency}",
            f"cluster.tiers.0.links_per_rank={ratio!r}",
            f"run.seed={seed}",
            f"cluster.noise.spread={{family: lognormal, median: 1, sigma: {sigma!r}}}",
        ],
    ).model_copy(update={"name": name, "description": name})
    (tmp_path / "resolved.yaml").write_text(resolved_yaml(config), encoding="utf-8", newline="")
    assert load_experiment("resolved.yaml") == config


def test_the_hash_is_sixteen_digits_of_the_content(write):
    config = load_experiment("experiment.yaml")
    found = config_hash(config)
    assert len(found) == 16
    assert int(found, 16) >= 0
    assert config_hash(load_experiment("experiment.yaml", ["description=in other words"])) == found
    assert config_hash(load_experiment("experiment.yaml", ["cluster.tiers.0.link.latency=1000 ns"])) == found
    assert config_hash(load_experiment("experiment.yaml", ["cluster.tiers.0.link.latency=1001 ns"])) != found
    assert config_hash(load_experiment("experiment.yaml", ["run.seed=8"])) != found
