"""Steps of an experiment drawn under figures that are free, their score against measured ones, and which figures may be free."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mc.calibration.choose import chosen
from mc.calibration.errors import CalibrationError
from mc.calibration.kinds import can_move
from mc.calibration.parameters import Parameters
from mc.collectives.stages import Stage
from mc.config import ExperimentConfig
from mc.config.calibration import FreeConfig
from mc.config.figures import figures
from mc.experiment import build
from mc.experiment.build import stages_of
from mc.experiment.steps_under import Cells, cells_of
from mc.fabric import build_cluster

# Steps that are drawn of each run.
_DRAWS = 2048
_FITTED = ("spread", "jitter", "pauses", "transient")
# What multiplies a rank's time by a constant is its time once more.
_SAME_AS_TIME = ("median", "mean", "scale", "shift", "value")


@dataclass(frozen=True, eq=False)
class DrawnModel:
    """Steps of an experiment on several numbers of ranks, drawn under figures that are free.

    Attributes:
        config: the experiment.
        parameters: what is free.
        ranks: of each run.
        draws: steps of each, about.
        seed: of the random numbers, beside the experiment's own.
    """

    config: ExperimentConfig
    parameters: Parameters
    ranks: tuple[int, ...]
    draws: int = _DRAWS
    seed: int = 0

    @cached_property
    def sized(self) -> list[tuple[ExperimentConfig, Sequence[Stage], Cells]]:
        """The experiment on so many ranks, how its exchange is carried out there, and what its steps are drawn of."""
        found = []
        for count in self.ranks:
            plan = self.config.plan.model_copy(update={"ranks": count})
            told = {"samples": self.draws, "seed": self.config.run.seed + self.seed}
            run = self.config.run.model_copy(update=told)
            config = self.config.model_copy(update={"plan": plan, "run": run})
            stages = stages_of(config, build_cluster(config.cluster))
            found.append((config, stages, cells_of(config, build(config, stages), self.draws)))
        return found

    def sorted(self, z: Float[Array, " parameters"]) -> list[Array]:
        """Seconds of the draws of each run, the least first; traceable."""
        return [
            jnp.sort(cells.times(build(self.parameters.into(config, z), stages).step).ravel())
            for config, stages, cells in self.sized
        ]

    def scores(self, z: Float[Array, " parameters"], times: Sequence[Array]) -> list[Array]:
        """Of every step its score, in units of what the steps of its run have among themselves; traceable."""
        return [
            crps_of_sorted(drawn, own) / _own_score(own)
            for drawn, own in zip(self.sorted(z), times, strict=True)
        ]


def crps_of_sorted(draws: Float[Array, " draws"], measured: Float[Array, " steps"]) -> Float[Array, " steps"]:
    """The score of each measured value under draws in order, without bias in the number of draws; traceable."""
    count = draws.size
    spread = jnp.sum((2 * jnp.arange(1, count + 1) - count - 1) * draws) / (count * (count - 1))
    sums = jnp.concatenate([jnp.zeros(1), jnp.cumsum(draws)])
    below = jnp.searchsorted(draws, measured)
    return (measured * (2 * below - count) + sums[-1] - 2 * sums[below]) / count - spread


def _own_score(times: Array) -> Array:
    ordered, count = jnp.sort(times), times.size
    found = jnp.sum((2 * jnp.arange(1, count + 1) - count - 1) * ordered) / (count * (count - 1))
    return jax.lax.stop_gradient(found)


def drawn_parameters(config: ExperimentConfig, free: Sequence[FreeConfig] = ()) -> Parameters:
    """What is free: what was asked for, or what a rank computes and the noise of ranks, their own and what they share.

    Raises:
        PathError: a path leads nowhere.
        CalibrationError: or to what cannot be fitted.
    """
    for path in (path for each in free for path in each.paths):
        keys = path.split(".")
        if "congestion" in keys and keys[-1] == "probability":
            raise CalibrationError(
                f"{path}: expected another figure than a state's probability: draws keep the states of links as they are"
            )
        if "slow_chips" in keys:
            raise CalibrationError(
                f"{path}: expected another figure than of slow chips: a run counts as steps of many clusters here, and its chips are "
                "those of one"
            )
    if free:
        return chosen(config, free)
    compute = config.model.compute
    assert compute is not None
    paths = ["model.compute.time" if compute.time is not None else "model.compute.efficiency"]
    for each in figures(config):
        keys = each.path.split(".")
        if keys[:2] != ["cluster", "noise"] or keys[2] not in _FITTED or not can_move(config, each.path):
            continue
        if not ("spread" in keys and keys[-1] in _SAME_AS_TIME):
            paths.append(each.path)
    return chosen(config, [FreeConfig(path=path) for path in paths])
