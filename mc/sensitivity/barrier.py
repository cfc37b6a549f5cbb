"""Elasticities of a step that computes and then exchanges, in all figures by one linearisation.

The program that draws steps is linearised once at the figures of the experiment: quantiles of delays by their implicit derivative
(`mc.delays.inverse`), everything else by the chain rule. Each figure is then one product with the linear map, carried out for all
steps at once. Figures in which steps jump are drawn on both sides instead.
"""

from collections.abc import Callable, Collection, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from mc.collectives.stages import Stage
from mc.config import ExperimentConfig
from mc.config.figures import Figure, figures, with_figures
from mc.experiment.build import build, stages_of
from mc.experiment.run import draw_steps
from mc.experiment.steps_under import Times, cells_of, times_of
from mc.fabric import build_cluster
from mc.sensitivity.derivatives import Elasticity, between, pathwise

Floats = NDArray[np.float64]
Advance = Callable[[int], None]
# Steps jump in these: how many of something there are, and how long links stay in a state.
_JUMPS = ("fraction", "persistence", "holding", "per_doubling")
# Of a chip and a link, what takes no part in a barrier step.
_IDLE = (
    *("memory_size", "memory_bandwidth", "power", "idle_power", "host_power", "energy"),
    *("adapter_power", "port_power", "reach"),
)
_DIFFERENCE = 0.1
_MOST_OF_IT = 70
# Elasticities below this are rounding in 32 bits.
_NOTHING = 1e-6


def elasticities(
    config: ExperimentConfig,
    most: int,
    advance: Advance = lambda count: None,
    only: Collection[str] = (),
) -> tuple[Floats, list[Elasticity]]:
    """Sampled steps, [realisations, steps], and elasticities of those figures that matter.

    Args:
        config: the experiment.
        most: steps to draw, about.
        advance: told how many per cent more are done.
        only: paths of figures to look at; all by default.

    Raises:
        InputError: the experiment cannot be built.
    """
    built = build(config)
    cells = cells_of(config, built, most)
    stages = tuple(stages_of(config, build_cluster(config.cluster)))
    asked = [
        each
        for each in figures(config)
        if each.value != 0 and _takes_part(each.path, stages, config) and (not only or each.path in only)
    ]
    jumping = [each for each in asked if _jumps(each.path)]
    smooth = [each for each in asked if not _jumps(each.path)]

    def make(some: Sequence[Figure]) -> Times:
        return times_of(config, cells, stages, [each.path for each in some])

    others: list[Figure] = []
    try:
        times, derivatives = linearised(make(smooth), smooth)
    except TypeError:
        # JAX refuses to look at a traced number.
        smooth, others = _traceable(make, smooth)
        times, derivatives = linearised(make(smooth), smooth)
    advance(_MOST_OF_IT if jumping or others else 100)
    level, found = config.run.confidence, []
    for figure, row in zip(smooth, derivatives, strict=True):
        if np.abs(row).mean() > _NOTHING * times.mean():
            found.append(
                Elasticity(figure.path, figure.value, **pathwise(times, row, level), method="gradient")
            )
    others = [*jumping, *others]
    for done, figure in enumerate(others):
        less, more = (_drawn(config, figure, 1 + sign * _DIFFERENCE, most) for sign in (-1, 1))
        rest = 100 - _MOST_OF_IT
        advance(rest * (done + 1) // len(others) - rest * done // len(others))
        if not np.array_equal(less, more):
            found.append(
                Elasticity(
                    figure.path, figure.value, **between(less, more, _DIFFERENCE, level), method="differences"
                )
            )
    return times, found


def linearised(times: Times, at: Sequence[Figure]) -> tuple[Floats, Floats]:
    """Steps, and their derivatives x ∂T/∂x for each figure, [figures, realisations, steps]."""
    values = jnp.asarray([each.value for each in at], jnp.result_type(float))

    @jax.jit
    def both(values: Array) -> tuple[Array, Array]:
        drawn, along = jax.linearize(times, values)
        return drawn, jax.lax.map(along, jnp.diag(values))

    drawn, derivatives = both(values)
    return np.asarray(drawn, np.float64), np.asarray(derivatives, np.float64)


def _traceable(
    make: Callable[[Sequence[Figure]], Times], asked: list[Figure]
) -> tuple[list[Figure], list[Figure]]:
    """Figures that may be traced, and those that decide what is computed."""

    def can(figure: Figure) -> bool:
        try:
            jax.eval_shape(make([figure]), jnp.zeros(1))
        except TypeError:
            return False
        return True

    is_fine = [can(figure) for figure in asked]
    return (
        [figure for figure, fine in zip(asked, is_fine, strict=True) if fine],
        [figure for figure, fine in zip(asked, is_fine, strict=True) if not fine],
    )


def _drawn(config: ExperimentConfig, figure: Figure, factor: float, most: int) -> Floats:
    value = figure.value * factor
    run = config.run.model_copy(update={"samples": min(config.run.samples, most), "method": "exact"})
    return draw_steps(with_figures(config, {figure.path: value}).model_copy(update={"run": run}))


def _jumps(path: str) -> bool:
    keys = path.split(".")
    return keys[-1] in _JUMPS or "exceptions" in keys or (keys[-1] == "probability" and "congestion" in keys)


def _takes_part(path: str, stages: Sequence[Stage], config: ExperimentConfig) -> bool:
    """Whether a figure may matter: those of links and protocols that the exchange uses, and of the noise."""
    keys = path.split(".")
    if keys[0] not in ("cluster", "model") or keys[-1] in _IDLE or "posterior" in keys:
        return False
    if keys[:2] == ["cluster", "chip"]:
        compute = config.model.compute
        return keys[2] == "peak" and compute is not None and compute.format == keys[-1]
    if keys[:2] != ["cluster", "tiers"]:
        return True
    tiers = {config.cluster.tiers[index].name for stage in stages for index in _tiers(stage)}
    if keys[2] not in tiers:
        return False
    if "protocols" in keys:
        return keys[keys.index("protocols") + 1] in {stage.protocol for stage in stages}
    return True


def _tiers(stage: Stage) -> list[int]:
    return [*stage.tiers, *(index for kind in stage.kinds for index in kind.tiers)]
