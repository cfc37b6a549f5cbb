"""Mean steps of a transformer at several numbers of ranks, as functions of free figures.

A training step is built on the host, in NumPy, with discrete choices in it (algorithms, operations that count as one), so it is
not traced. Instead

    log T(z) = log Q(z) + log (S/Q)(z'),

Q the step without noise, built anew wherever it is asked for, its slopes by central differences (as in `mc.sensitivity.training`);
S the mean of sampled steps under fixed random numbers, of which only the ratio to Q is kept from a place z' near by. It is
refreshed between descents until it would not change any more, so that a fit ends where `tailstep run` says the same. Figures of
noise move the ratio and not Q, so of them its slopes are kept, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import jax
import numpy as np
from numpy.typing import NDArray

from mc.calibration.errors import CalibrationError
from mc.calibration.parameters import Parameters
from mc.calibration.training_rows import SizedRow
from mc.config import ExperimentConfig
from mc.errors import InputError
from mc.experiment.quiet_step import build_quiet
from mc.experiment.run_training import draw_all
from mc.experiment.training_draws import TrainingDraws, draws_of_training

Floats = NDArray[np.float64]
# Half the distance of central differences, in standard deviations of the priors.
_STEP, _NOISE_STEP = 0.02, 0.2
# Steps that the mean is taken over, and clusters that they are of, at most.
_SAMPLES, _REALISATIONS = 32, 8
_NOISE = ("noise", "congestion", "jitter")


@dataclass(frozen=True)
class Waits:
    """What noise multiplies steps by, near a place.

    Attributes:
        at: the place, in standardised coordinates.
        log_ratio: of each row.
        slopes: of the same, [rows, parameters]; 0 but of figures of noise.
    """

    at: Floats
    log_ratio: Floats
    slopes: Floats

    def of(self, rows: NDArray[np.bool_]) -> "Waits":
        """Those of some rows."""
        return Waits(self.at, self.log_ratio[rows], self.slopes[rows])

    def near(self, z: Floats) -> Floats:
        """Logarithms of the ratios elsewhere."""
        return self.log_ratio + self.slopes @ (z - self.at)


@dataclass(frozen=True, eq=False)
class TrainingModel:
    """Steps of some experiments that share free figures.

    Attributes:
        configs: experiments, each on as many ranks as were measured.
        parameters: what is free.
    """

    configs: tuple[ExperimentConfig, ...]
    parameters: Parameters

    @staticmethod
    def of(rows: Sequence[SizedRow], parameters: Parameters) -> "TrainingModel":
        """Those of some rows."""
        return TrainingModel(tuple(row.config for row in rows), parameters)

    @cached_property
    def _alike(self) -> list[int]:
        """For every row the first that is of the same experiment."""
        return [self.configs.index(each) for each in self.configs]

    @cached_property
    def noisy(self) -> list[int]:
        """Places of figures of noise."""
        return [
            place
            for place, each in enumerate(self.parameters.items)
            if any(key in _NOISE for path in each.paths for key in path.split("."))
        ]

    def quiet(self, z: Floats) -> Floats:
        """Logarithms of seconds without noise, of each row."""
        found = {}
        for place in sorted(set(self._alike)):
            found[place] = np.log(float(build_quiet(self._at(place, z)).breakdown.step))
        return np.array([found[place] for place in self._alike])

    def slopes(self, z: Floats) -> Floats:
        """Of the same, [rows, parameters]."""
        found = np.zeros((len(self.configs), len(z)))
        for place in range(len(z)):
            if place not in self.noisy:
                step = np.zeros(len(z))
                step[place] = _STEP
                found[:, place] = (self.quiet(z + step) - self.quiet(z - step)) / (2 * _STEP)
        return found

    @cached_property
    def _is_disturbed(self) -> bool:
        """Whether anything is to be sampled."""
        if self.noisy:
            return True
        steps = [self._drawn(place, np.zeros(len(self.parameters))).step for place in set(self._alike)]
        return any(step.is_random or step.stays for step in steps)

    def waits(self, z: Floats) -> Waits:
        """What noise adds near a place, by sampling."""
        slopes = np.zeros((len(self.configs), len(z)))
        if not self._is_disturbed:
            return Waits(z, np.zeros(len(self.configs)), slopes)
        for place in self.noisy:
            step = np.zeros(len(z))
            step[place] = _NOISE_STEP
            slopes[:, place] = (self._ratio(z + step) - self._ratio(z - step)) / (2 * _NOISE_STEP)
        return Waits(z, self._ratio(z), slopes)

    def _ratio(self, z: Floats) -> Floats:
        found = {}
        for place in sorted(set(self._alike)):
            draws = self._drawn(place, z)
            parts = draw_all(draws, _SAMPLES, lambda count: None).parts
            mean = sum(float(np.mean(part)) for part in parts.values())
            found[place] = np.log(mean / float(draws.step.quiet.breakdown.step))
        return np.array([found[place] for place in self._alike])

    def _drawn(self, place: int, z: Floats) -> TrainingDraws:
        """How the steps of a row are drawn: always with the same random numbers."""
        config = self._at(place, z)
        told = config.run
        fewer = {
            "samples": min(told.samples, _SAMPLES),
            "realisations": min(told.realisations, _REALISATIONS),
        }
        config = config.model_copy(update={"run": told.model_copy(update=fewer)})
        return draws_of_training(config, jax.random.key(told.seed, impl="threefry2x32"))

    def _at(self, place: int, z: Floats) -> ExperimentConfig:
        with jax.enable_x64(True):
            return self.parameters.at(self.configs[place], z)


def check_training(config: ExperimentConfig) -> None:
    """Refuses what is no training step.

    Raises:
        CalibrationError: with what it is.
    """
    if config.serving is not None:
        raise CalibrationError("expected an experiment that trains; got one with `serving`")
    try:
        build_quiet(config)
    except InputError as error:
        raise CalibrationError(f"expected an experiment that can be run; got: {error}") from None
