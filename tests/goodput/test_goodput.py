"""Shares of a job's time: against Daly's formula, a simulation event by event, and a run that was published."""

import math
from dataclasses import replace

import numpy as np
import pytest

from mc.config import FailuresConfig
from mc.goodput import Failures, build_failures, goodput, waiting_share
from mc.goodput.failures import GoodputError
from tests.goodput.events import run_job
from tests.stats import assert_mean

HOUR, DAY = 3600.0, 86400.0
PARTS = ("effective_ratio", "checkpointing", "recomputing", "restarting", "waiting")
# Hard on purpose: several failures per interval and restart are common, and spares run out.
ROUGH = Failures(
    mtbf_per_chip=1_000.0,
    restart=0.6,
    checkpoint_write=0.3,
    checkpoint_interval=1.5,
    spares=1,
    replacement=0.8,
)


def shares(failures: Failures, chips: int = 1_000, step: float | None = None) -> np.ndarray:
    found = goodput(chips, failures, step)
    return np.array([getattr(found, part) for part in PARTS])


@pytest.mark.parametrize("chips", [1, 1_000, 40_000, 10**9])
@pytest.mark.parametrize("interval", [None, 1e-9, 1.5, 1e6])
@pytest.mark.parametrize("write", [0.0, 0.3, 1e5])
def test_shares_add_up(chips, interval, write):
    found = shares(replace(ROUGH, checkpoint_interval=interval, checkpoint_write=write), chips)
    assert found.sum() == pytest.approx(1, abs=1e-12)
    assert (found >= 0).all()


def test_daly():
    mean, interval, write, restart = 1.0, 1.5, 0.3, 0.6
    per_interval = mean * math.exp(restart / mean) * math.expm1((interval + write) / mean)
    assert shares(replace(ROUGH, replacement=0.0))[0] == pytest.approx(interval / per_interval, rel=1e-12)


@pytest.mark.parametrize("law", ["exponential", "constant"])
def test_event_by_event(law):
    """Power: leaving out failures during restarts shifts the first share by 16 standard errors."""
    away = {
        "exponential": lambda rng: rng.exponential(ROUGH.replacement),
        "constant": lambda rng: ROUGH.replacement,
    }[law]
    jobs = []
    for child in np.random.SeedSequence(7).spawn(40):
        spent = run_job(
            np.random.default_rng(child),
            between=1.0,
            interval=ROUGH.checkpoint_interval,
            write=ROUGH.checkpoint_write,
            restart=ROUGH.restart,
            spares=ROUGH.spares,
            away=away,
            intervals=400,
        )
        jobs.append([spent[name] / spent["all"] for name in ("computing", *PARTS[1:], "failures")])
    found = goodput(1_000, ROUGH)
    per_second = found.interruptions_per_day / DAY
    for column, expected in zip(np.array(jobs).T, [*shares(ROUGH), per_second], strict=True):
        assert_mean(column, expected)


def test_waiting_without_spares():
    # One away at a time: a cycle is 1/Λ of running and P of waiting.
    assert waiting_share(0, 0.25) == pytest.approx(0.25 / 1.25)
    assert waiting_share(3, 0.0) == 0.0


@pytest.mark.parametrize("spares", [0, 2, 30])
@pytest.mark.parametrize("away", [0.3, 5.0, 40.0])
def test_waiting_is_erlang_loss(spares, away):
    lines = np.arange(spares + 2)
    terms = np.exp(lines * math.log(away) - np.array([math.lgamma(k + 1) for k in lines]))
    assert waiting_share(spares, away) == pytest.approx(terms[-1] / terms.sum(), rel=1e-12)


def test_more_spares_wait_less():
    waits = [waiting_share(spares, 8.0) for spares in range(25)]
    assert (np.diff(waits) < 0).all()
    assert waits[-1] < 1e-3 * waits[0]


def test_without_failures_only_checkpoints_are_lost():
    found = goodput(8, Failures(1e30, restart=600.0, checkpoint_write=10.0, checkpoint_interval=990.0))
    assert found.effective_ratio == pytest.approx(0.99, rel=1e-12)
    assert found.checkpointing == pytest.approx(0.01, rel=1e-12)


def test_the_best_interval_is_the_best():
    failures = replace(ROUGH, checkpoint_interval=None)
    best = goodput(1_000, failures)
    for factor in (0.7, 0.95, 1.05, 1.4):
        other = replace(failures, checkpoint_interval=best.checkpoint_interval_s * factor)
        assert goodput(1_000, other).effective_ratio < best.effective_ratio


def test_checkpoints_come_after_whole_steps():
    assert goodput(1_000, ROUGH, step_time=0.4).checkpoint_interval_s == pytest.approx(4 * 0.4)
    assert goodput(1_000, ROUGH, step_time=20.0).checkpoint_interval_s == pytest.approx(20.0)


def test_no_overflow_when_nothing_gets_done():
    found = goodput(10**9, Failures(1_000.0, restart=600.0, checkpoint_write=60.0))
    assert found.effective_ratio == 0.0
    assert found.restarting == 1.0


def test_llama_3():
    """Llama 3 405B: 419 unexpected interruptions in 54 days on 16,384 GPUs; more than 90 % of the time effective."""
    chips, mtbf = 16_384, 54 * DAY * 16_384 / 419
    assert mtbf / HOUR == pytest.approx(50_700, rel=0.001)
    # 14 bytes for each of 405e9 parameters at the file system's 2 TB/s: 2.8 s. Restarts of 10 minutes then do.
    failures = Failures(mtbf, restart=10 * 60.0, checkpoint_write=2.8)
    found = goodput(chips, failures)
    assert found.interruptions_per_day * 54 == pytest.approx(419)
    assert 0.92 < found.effective_ratio < 0.93
    assert 240 < found.checkpoint_interval_s < 260
    assert goodput(chips, replace(failures, restart=14.5 * 60)).effective_ratio > 0.9
    assert goodput(chips, replace(failures, restart=15.5 * 60)).effective_ratio < 0.9


def test_from_a_file():
    config = FailuresConfig.model_validate(
        {
            "mtbf_per_chip": "50000 h",
            "restart": "10 min",
            "checkpoint_write": "3 s",
            "spares": 16,
            "replacement": "24 h",
        }
    )
    failures = build_failures(config)
    assert failures == Failures(50_000 * HOUR, 600.0, 3.0, None, 16, DAY)
    timed = config.model_copy(update={"checkpoint_interval": 60.0})
    assert build_failures(timed).checkpoint_interval == 60.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Failures(0.0, 1.0, 1.0), "mtbf_per_chip: expected a time > 0; got 0.0"),
        (lambda: Failures(1.0, -1.0, 1.0), "restart: expected 0 or more; got -1.0"),
        (lambda: Failures(1.0, 1.0, math.nan), "checkpoint_write: expected 0 or more; got nan"),
        (lambda: Failures(1.0, 1.0, 1.0, 0.0), "checkpoint_interval: expected a time > 0; got 0.0"),
        (lambda: goodput(0, ROUGH), "chips: expected 1 or more; got 0"),
        (lambda: goodput(1, ROUGH, 0.0), "step_time: expected a time > 0; got 0.0"),
    ],
)
def test_what_cannot_be(make, message):
    with pytest.raises(GoodputError, match=message):
        make()
