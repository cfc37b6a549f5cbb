"""Whatever the file holds, loading it gives a configuration or an `InputError`; nothing else escapes."""

import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mc.config import ExperimentConfig, load_experiment
from mc.config.resolved import resolved_yaml
from mc.errors import InputError
from tests.hostile.fuzz import TOKENS

RELAXED = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=100
)
FRAGMENTS = st.sampled_from(TOKENS)


def attempt(path, overrides=()):
    with contextlib.suppress(InputError):
        config = load_experiment(path, overrides)
        assert isinstance(config, ExperimentConfig)
        assert resolved_yaml(config)


@RELAXED
@given(text=st.text(max_size=100) | st.lists(FRAGMENTS, max_size=20).map("".join))
def test_random_text(write, tmp_path, text):
    (tmp_path / "f.yaml").write_text(text, encoding="utf-8", errors="replace")
    attempt("f.yaml")


@RELAXED
@given(data=st.binary(max_size=60))
def test_random_bytes(write, tmp_path, data):
    (tmp_path / "f.yaml").write_bytes(data)
    attempt("f.yaml")


@RELAXED
@given(data=st.data())
def test_mutated_files(write, tmp_path, data):
    """Valid files with pieces cut out and other pieces put in."""
    name = data.draw(st.sampled_from(["cluster.yaml", "model.yaml", "plan.yaml", "experiment.yaml"]))
    text = (tmp_path / name).read_text()
    mutated = text
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(mutated)))
        stop = data.draw(st.integers(start, min(start + 12, len(mutated))))
        mutated = mutated[:start] + data.draw(FRAGMENTS | st.text(max_size=3)) + mutated[stop:]
    (tmp_path / name).write_text(mutated, encoding="utf-8", errors="replace")
    try:
        attempt("experiment.yaml")
    finally:
        (tmp_path / name).write_text(text)


PATHS = st.lists(
    st.sampled_from(
        ["cluster", "tiers", "0", "1", "link", "model", "compute", "plan", "run", "noise", "jitter", "", "x"]
    ),
    max_size=5,
).map(".".join)


@RELAXED
@given(path=PATHS, value=st.text(max_size=20) | st.lists(FRAGMENTS, max_size=4).map("".join))
def test_random_overrides(write, path, value):
    attempt("experiment.yaml", [f"{path}={value}"])
    attempt("experiment.yaml", [path + value])


HOSTILE = [
    ("cluster=" + "a" * 300 + ".yaml", "no such file"),
    ("cluster=" + "../" * 2000 + "x.yaml", "no such file"),
    ('cluster="a\\0.yaml"', "no such file"),
    ("cluster=loop.yaml", "no such file"),
    (".".join("a" * 5000) + "=1", "expected a path of at most 32 keys"),
    ("run.seed=" + "[" * 5000, "nested more than 32 levels deep"),
    ("run.seed=1" + "0" * 500, "expected less than"),
    ("cluster.tiers.0.links_per_rank=1" + "0" * 500, "out of range for a number"),
    ("cluster.noise.jitter={family: empirical, file: loop.yaml}", "cannot be read as CSV"),
    ('"a\\nb"=1', "unknown key"),
    ("x=\x1b[31m", "\\x1b[31m"),
    ("schema_version=true", "expected 1; got true"),
]


@pytest.mark.parametrize(("flag", "message"), HOSTILE, ids=[each[0][:30] for each in HOSTILE])
def test_hostile_values(flag, message, write, tmp_path):
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    with pytest.raises(InputError) as error:
        load_experiment("experiment.yaml", [flag])
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert str(error.value).isprintable()
