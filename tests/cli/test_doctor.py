"""`tailstep doctor`, well and unwell."""

import json
import platform
from importlib.metadata import version

import jax
import pytest

import mc.experiment.checkup as checkup


@pytest.fixture
def doctor(invoke):
    """Runs `tailstep doctor`; returns (exit code, stdout)."""

    def run(*arguments: str) -> tuple[int, str]:
        code, out, _ = invoke("doctor", *arguments)
        return code, out

    return run


def test_what_it_says(doctor, monkeypatch):
    monkeypatch.setenv("SOME_SECRET", "swordfish")
    code, out = doctor("--json")
    found = json.loads(out)
    assert code == 0
    assert found["problems"] == []
    assert found["software"]["python"] == platform.python_version()
    for name in ("jax", "jaxlib", "numpy"):
        assert found["software"]["packages"][name] == version(name)
    assert [each["number"] for each in found["devices"]] == [each.id for each in jax.devices()]
    assert abs(found["errors"]) < 6.0
    assert found["memory_bytes"] > 1e8
    assert "swordfish" not in out


def test_a_wrong_law_is_found(doctor, monkeypatch):
    """A draw of the slowest of 1.02 million is past the median of a million more often: 2 % of log 2 of it, 14 standard errors."""
    monkeypatch.setattr(
        checkup,
        "draw_levels",
        lambda key, shape: 1.02 * checkup.jnp.log(checkup.jax.random.uniform(key, shape)),
    )
    code, out = doctor()
    assert code == 1
    assert "draws are wrong" in out
    assert out.endswith("not in order\n")


def test_slow_is_no_failure(doctor, monkeypatch):
    monkeypatch.setattr(checkup, "SLOW", 1e15)
    code, out = doctor()
    assert code == 0
    assert "slow: expected at least 1e+15 draws/s" in out


def test_jax_that_does_not_work(doctor, monkeypatch):
    def broken() -> list:
        raise RuntimeError("no backend")

    monkeypatch.setattr(checkup.jax, "devices", broken)
    code, out = doctor("--json")
    assert code == 1
    assert json.loads(out)["problems"] == ["JAX does not work: no backend"]
