"""The result of `tailstep run` for programs: SI units in the keys, `null` for a bound that is not there."""

import math
from dataclasses import asdict
from typing import Any

from mc.estimate import Estimate
from mc.report.serving import serving_json
from mc.results import RunResult
from mc.results.model import model_to_json


def run_json(result: RunResult) -> dict[str, Any]:
    """The result as plain data that `json.dumps(..., allow_nan=False)` accepts.

    `step_time_s` has mean and quantiles in seconds and under `ci` their intervals `[low, high]` at
    `ci.level`; `model.ends` has those from uncertain figures; `waterfall_s` has the parts of the mean, in
    seconds, which add up to it.
    """
    estimates = dict(result.estimates.items())
    slowest = result.slowest_rank
    return {
        "name": result.name,
        "ranks": result.ranks,
        "step_time_s": {
            **{name: found.value for name, found in estimates.items()},
            "ci": {
                "level": result.estimates.confidence,
                **{name: _bounds(found) for name, found in estimates.items()},
            },
        },
        "waterfall_s": {part.name: part.time.value for part in result.waterfall.parts},
        "slowest_rank": {
            "wait_s": slowest.wait.value,
            "share": slowest.share.value,
            "chip_hours_per_hour": slowest.chip_hours_per_hour.value,
            "ci": {
                "wait_s": _bounds(slowest.wait),
                "share": _bounds(slowest.share),
                "chip_hours_per_hour": _bounds(slowest.chip_hours_per_hour),
            },
        },
        "ideal_network": {"step_time_s": result.ideal_step_time, "slowdown": _finite(result.slowdown)},
        **_model(result),
        **_training(result),
        **({} if result.serving is None else serving_json(result.serving)),
        "samples": int(result.samples.size),
        "realisations": result.realisations,
        "samples_per_s": result.samples_per_s,
        "method": result.method,
        "seed": result.seed,
        "config_hash": result.config_hash,
        "elapsed_s": result.elapsed_s,
    }


def _model(result: RunResult) -> dict[str, Any]:
    """Intervals of the step time from what a calibration left unknown; nothing where all is known."""
    return {} if result.model is None else {"model": model_to_json(result.model)}


def _training(result: RunResult) -> dict[str, Any]:
    """Of a transformer's step; nothing for other models."""
    training = result.training
    if training is None:
        return {}
    rates = {name: getattr(training, name) for name in ("tokens_per_s", "mfu", "hfu", "tflops_per_chip")}
    return {
        "plan": training.plan,
        "parameters": training.parameters,
        "tokens_per_step": training.tokens,
        **{name: found.value for name, found in rates.items()},
        "bubble_fraction": training.bubble_fraction,
        "exposed_s": dict(training.exposed_s),
        "memory_bytes": dict(training.memory_bytes),
        "dropped": training.dropped,
        "rates_ci": {name: _bounds(found) for name, found in rates.items()},
        "goodput": None if training.goodput is None else asdict(training.goodput),
    }


def _bounds(found: Estimate) -> list[float | None]:
    return [_finite(found.low), _finite(found.high)]


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
