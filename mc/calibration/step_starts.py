"""Where descents of the likelihood of step times may begin, and what guess is too far off to begin at."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mc.calibration.errors import CalibrationError
from mc.calibration.parameters import short_name
from mc.calibration.step_coordinates import StepCoordinates
from mc.calibration.step_model import StepRun
from mc.config import ExperimentConfig
from mc.experiment.build import compute_time
from mc.units import format_quantity

# What a rank computes, over the least median of a run, where descents may begin.
_NEAR = (0.4, 1.0)
# By so much no guess of what a rank computes is off, but one unit among others is.
_GUESS = 300.0


def check_guess(own: StepCoordinates, z: Any, runs: Sequence[StepRun]) -> None:
    """Refuses times of another unit than the experiment's: nobody guesses so badly what a rank computes."""
    place, item = own.computing
    if item is None:
        return
    value = float(own.parameters.values(z)[place])
    if not item.center / _GUESS < value < item.center * _GUESS:
        said, found = (format_quantity(each, item.dimension, digits=3) for each in (item.center, value))
        where = f"{runs[0].source}: " if runs[0].source else ""
        raise CalibrationError(
            f"{where}expected step times near those of the experiment, which has {short_name(item)} {said}; got steps that make it "
            f"{found}: are both in one unit? If so, begin nearer with `--set`"
        )


def places_of(
    config: ExperimentConfig, runs: Sequence[StepRun], own: StepCoordinates, count: int, seed: int
) -> NDArray[np.float64]:
    """Where descents may begin: draws of the priors, of half of which what a rank computes is put near the data."""
    generator, size = np.random.default_rng(seed), len(own.parameters)
    drawn = np.concatenate([np.zeros((1, size)), generator.normal(size=(count - 1, size))])
    found = np.array(own.of(jnp.asarray(drawn)))
    place, item = own.computing
    if item is None:
        return found
    least = min(float(np.median(run.times)) for run in runs)
    near = least * np.exp(generator.uniform(*np.log(_NEAR), size=(count - 1) // 2))
    if item.space == "positive":
        x = np.log(near)
    else:
        time = compute_time(own.parameters.into(config, jnp.zeros(size)))
        share = np.minimum(item.center * float(time) / near, 0.99)
        x = np.log(share / (1 - share))
    found[-len(near) :, place] = (x - own.parameters.transform.centers[place]) / item.spread
    return found
