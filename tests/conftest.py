"""What every test runs under: strict rank promotion, so that a shape mistake fails instead of broadcasting."""

import gc
import os
import sys

import jax
import pytest

from mc.cli.app import main

# Most of the suite is compilation. On the CPU the older of XLA's two ways to generate the code of a fusion takes a third
# less time; both compute the same, up to the last bit. Only for versions that are known to have both, since XLA aborts
# on a flag that it does not know; and taken back once it is read, so that commands run by tests compile as they would
# for a user.
_FLAGS = os.environ.get("XLA_FLAGS")
COMPILED_BY = "--xla_cpu_use_fusion_emitters=false" if jax.__version_info__ < (0, 11) else ""
if COMPILED_BY:
    os.environ["XLA_FLAGS"] = f"{_FLAGS or ''} {COMPILED_BY}"
    jax.jit(abs)(0.0)
    del os.environ["XLA_FLAGS"]
    if _FLAGS is not None:
        os.environ["XLA_FLAGS"] = _FLAGS

jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collects tests without looking for garbage, and never looks at them again: they live as long as the run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def key():
    """One literal key; tests that need several fold names into it."""
    return jax.random.key(20261202)


@pytest.fixture
def invoke(monkeypatch, capsys):
    """Runs `tailstep` in this process, where what other tests have compiled is at hand; returns (exit code, stdout, stderr)."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tailstep", *arguments])
        with pytest.raises(SystemExit) as ended:
            sys.exit(main())
        out = capsys.readouterr()
        return int(ended.value.code or 0), out.out, out.err

    return run
