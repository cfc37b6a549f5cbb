"""Steps of an experiment under other figures, with the same random numbers.

The configuration is built with traced figures by the builders of a run, inside the function that draws. What is kept from one set
of figures to the next: keys, which chips are slow and how many links are in which state, and how the exchange is carried
out, so the function is smooth but where the slowest of several changes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mc.collectives.stages import Stage
from mc.config import ExperimentConfig
from mc.config.figures import with_figures
from mc.delays import Constant
from mc.experiment.build import Built, build
from mc.random import stream
from mc.step import Classes, Compute, Step, draw_classes

# Step times for the values of some figures, [realisations, steps].
Times = Callable[[Float[Array, " figures"]], Float[Array, "realisations steps"]]


@dataclass(frozen=True)
class Cells:
    """What steps are drawn of, whatever the figures are: one cell for each realisation. Make them with `cells_of`.

    Attributes:
        key: root key of the run.
        realisations: of the cluster.
        size: steps of each.
        classes: persistent slowness of each; None if there is none.
        counts: for each set of links that are counted, how many are in which state, [realisations, size, states].
    """

    key: PRNGKeyArray
    realisations: int
    size: int
    classes: Classes | None
    counts: tuple[Float[Array, "realisations size states"], ...]

    def draw(self, step: Step) -> tuple[Array, Array]:
        """Compute times of the slowest rank, and what congestion adds."""
        number = jnp.arange(self.realisations)
        drawn = step.draw(
            self.key,
            number,
            jnp.zeros_like(number),
            self.classes,
            self.counts,
            size=self.size,
            method="exact",
        )
        return drawn.compute, drawn.congestion

    def times(self, step: Step) -> Float[Array, "realisations size"]:
        """Step times; traceable and differentiable in the step."""
        step = step.prepared()
        compute, congestion = self.draw(step)
        return compute + congestion + (step.transfer() + step.latency_floor())


def cells_of(config: ExperimentConfig, built: Built, most: int) -> Cells:
    """The cells of an experiment.

    Args:
        config: the experiment.
        built: its step.
        most: steps, about; a whole number for each realisation.
    """
    key = jax.random.key(config.run.seed, impl="threefry2x32")
    samples = min(config.run.samples, most)
    realisations = min(config.run.realisations, samples) if built.remembers else 1
    size = -(-samples // realisations)
    compute = built.step.compute
    classes = None
    if (compute.persistent or compute.kinds) and compute.every_rank is None:
        drawn = draw_classes(
            compute.persistent, config.ranks, key, realisations, unit=compute.unit, kinds=compute.kinds
        )
        classes = jax.tree.map(jnp.asarray, drawn)
    counts = tuple(
        jnp.asarray(links.chain.counts(stream(key, f"links {index}"), links.groups, realisations, size))
        for index, links in enumerate(built.links)
    )
    return Cells(key, realisations, size, classes, counts)


def times_of(config: ExperimentConfig, cells: Cells, stages: Sequence[Stage], paths: Sequence[str]) -> Times:
    """Step times as a function of the figures at some paths; traceable and differentiable."""

    def times(values: Float[Array, " figures"]) -> Float[Array, "realisations steps"]:
        return cells.times(_step(config, stages, paths, values))

    return times


def compute_of(
    config: ExperimentConfig, cells: Cells, stages: Sequence[Stage], paths: Sequence[str]
) -> Times:
    """Likewise of computing alone, up to when the slowest rank is done."""

    def times(values: Float[Array, " figures"]) -> Float[Array, "realisations steps"]:
        step = Step(_step(config, stages, paths, values).compute, ()).prepared()
        compute, _ = Cells(cells.key, cells.realisations, cells.size, cells.classes, ()).draw(step)
        return compute

    return times


def exchange_of(
    config: ExperimentConfig, cells: Cells, stages: Sequence[Stage], paths: Sequence[str]
) -> Times:
    """Likewise of the exchange alone, which is the rest of the step when computing is left out."""

    def times(values: Float[Array, " figures"]) -> Float[Array, "realisations steps"]:
        step = _step(config, stages, paths, values)
        nothing = Compute(Constant(jnp.zeros(())), 1.0)
        step = Step(nothing, step.phases).prepared()
        alone = Cells(cells.key, cells.realisations, cells.size, None, cells.counts)
        _, congestion = alone.draw(step)
        return congestion + (step.transfer() + step.latency_floor())

    return times


def _step(config: ExperimentConfig, stages: Sequence[Stage], paths: Sequence[str], values: Any) -> Step:
    return build(with_figures(config, dict(zip(paths, values, strict=True))), stages).step


def idle_exchange_of(config: ExperimentConfig, stages: Sequence[Stage], paths: Sequence[str]) -> Times:
    """Seconds of the exchange on idle links, a scalar; otherwise as `exchange_of`."""

    def times(values: Float[Array, " figures"]) -> Float[Array, ""]:
        step = _step(config, stages, paths, values)
        return step.transfer() + step.latency_floor()

    return times


def for_each(times: Callable[[Any], Array], sets: Any) -> np.ndarray:
    """Step times for each of several sets of figures, [sets, realisations, steps]: one compiled program.

    Args:
        times: of one set.
        sets: an array or a tree of them, with a leading axis of sets.
    """
    sets = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.result_type(float)), sets)
    return np.asarray(eqx.filter_jit(lambda each: jax.lax.map(times, each))(sets), np.float64)
