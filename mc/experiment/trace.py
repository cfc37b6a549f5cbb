"""One sampled step in time: the one that is nearest to a quantile of all.

The run is drawn as ever; the step is found by its time, and drawn again by its numbers, with everything that happens in it.
"""

import math
import re
from collections.abc import Callable

import jax
import numpy as np
from numpy.typing import NDArray

from mc.config import ExperimentConfig, config_hash
from mc.errors import InputError
from mc.experiment.run import run
from mc.experiment.run_training import draw_all
from mc.experiment.trace_barrier import barrier_slices
from mc.experiment.trace_slices import Slices
from mc.experiment.trace_training import training_slices
from mc.experiment.training_draws import draws_of_training
from mc.results import Trace

SLOWEST, FASTEST = "slowest", "fastest"


def trace(
    config: ExperimentConfig, step: str = "p99", *, advance: Callable[[int], None] = lambda count: None
) -> Trace:
    """The sampled step that is nearest to a quantile.

    Args:
        config: the experiment; of training.
        step: the quantile, as `p50` or `p99.9`, or `slowest` or `fastest`.
        advance: told how many more steps are drawn, as they are.

    Raises:
        InputError: such a quantile there is none, or the experiment is of inference or cannot be built.
    """
    probability = probability_of(step)
    _check(config)
    if config.model.transformer is None:
        result = run(config, advance=advance)
        target, place = nearest(result.samples, probability)
        found = barrier_slices(config, result, *place)
        return _trace(config, step, target, place, float(result.samples[place]), found)
    draws = draws_of_training(config, jax.random.key(config.run.seed, impl="threefry2x32"))
    drawn = draw_all(draws, config.run.samples, advance)
    shape = np.broadcast_shapes(*(np.shape(seconds) for seconds in drawn.parts.values()))
    samples = sum(drawn.parts.values(), np.zeros(shape))
    target, place = nearest(samples, probability)
    return _trace(config, step, target, place, float(samples[place]), training_slices(draws, *place))


def trace_of_run(config: ExperimentConfig, samples: NDArray[np.floating], step: str = "p99") -> Trace:
    """The same of a transformer's run that was drawn already.

    Args:
        config: the experiment.
        samples: its steps, (realisations, steps).
        step: as for `trace`.

    Raises:
        InputError: as `trace` does.
    """
    target, place = nearest(samples, probability_of(step))
    _check(config)
    draws = draws_of_training(config, jax.random.key(config.run.seed, impl="threefry2x32"))
    return _trace(config, step, target, place, float(samples[place]), training_slices(draws, *place))


def _check(config: ExperimentConfig) -> None:
    if config.serving is not None:
        raise InputError("trace: expected an experiment of training; got one with `serving`")
    if config.mitigations.is_any:
        raise InputError(
            "trace: expected an experiment without `mitigations`, whose steps wait for all in turn"
        )


def _trace(
    config: ExperimentConfig,
    step: str,
    target: float,
    place: tuple[int, int],
    sampled: float,
    found: Slices,
) -> Trace:
    return Trace(
        name=config.name,
        quantile=step,
        quantile_s=target,
        sampled_s=sampled,
        step_s=found.critical[-1].end,
        realisation=place[0],
        sample=place[1],
        seed=config.run.seed,
        config_hash=config_hash(config),
        tracks=found.tracks,
        slices=tuple(found.slices),
        critical=tuple(found.critical),
        waited_for=found.waited_for,
    )


def probability_of(step: str) -> float:
    """The probability of a quantile as it is written; raises InputError."""
    if step in (SLOWEST, FASTEST):
        return float(step == SLOWEST)
    match = re.fullmatch(r"p(\d+(?:\.\d+)?)", step)
    if match is None or not 0.0 < float(match[1]) < 100.0:
        raise InputError(
            f"--step: expected a quantile such as p50, p99 or p99.9, or `{SLOWEST}` or `{FASTEST}`; got `{step}`"
        )
    return float(match[1]) / 100.0


def nearest(samples: NDArray[np.floating], probability: float) -> tuple[float, tuple[int, int]]:
    """The quantile, and the realisation and number of the sample that has it: the first of several."""
    ordered = np.sort(samples, axis=None)
    target = float(ordered[max(math.ceil(ordered.size * probability - 1e-9), 1) - 1])
    realisation, sample = np.unravel_index(int(np.abs(samples - target).argmin()), samples.shape)
    return target, (int(realisation), int(sample))
