"""Elasticities of a transformer's sampled step: the gradient of the draws, times what figures do to what is drawn of.

A training step is built on the host: passes are priced, laws tabulated, all in NumPy, into arrays A (seconds of operations, tables of
slowness, messages, what links add). Draws T(A) are compiled. So

    x dT/dx = ⟨∂T/∂A, x dA/dx⟩,

the first factor by one reverse sweep through each sampled pipeline, for all figures at once; the second by building the step with a
little less and a little more of each figure, which costs no sampling. Pipelines are maxima and sums, so the sweep follows
the critical path of each step.
"""

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray
from numpy.typing import NDArray

from mc.config import ExperimentConfig
from mc.config.figures import Figure, figures, with_figures
from mc.errors import InputError
from mc.experiment.training_draws import Conditions, TrainingDraws, draws_of_training
from mc.experiment.training_steps import DrawnOf, drawn_of, step_times
from mc.sensitivity.derivatives import Elasticity, pathwise
from mc.training import Realisation, Sampling

Floats = NDArray[np.float64]
Advance = Callable[[int], None]
_STEP = 2e-3
_NOTHING = 1e-6
# Of the chip, what takes no part; and noise whose draws jump.
_IDLE = (
    *("memory_size", "power", "idle_power", "host_power", "energy", "adapter_power", "port_power", "reach"),
    *("fraction", "persistence", "holding", "per_doubling", "memory_reserve"),
)
_BUILDING = 50
# Steps whose gradients are worked out side by side, each with memory for every level of its pipeline.
_AT_ONCE = 4


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
    config = config.model_copy(
        update={"run": config.run.model_copy(update={"samples": min(config.run.samples, most)})}
    )
    draws = _draws(config)
    asked = [
        each
        for each in figures(config)
        if each.value != 0 and _takes_part(each.path) and (not only or each.path in only)
    ]
    sides: list[tuple[Figure, TrainingDraws, TrainingDraws]] = []
    dead = _without_effect(config, draws, asked)
    for done, figure in enumerate(asked):
        if figure.path not in dead and (both := _both(config, draws, figure)) is not None:
            sides.append((figure, *both))
        advance(_BUILDING * (done + 1) // len(asked) - _BUILDING * done // len(asked))
    times, derivatives = _sampled(draws, [(less, more) for _, less, more in sides], advance)
    found = [
        Elasticity(
            figure.path, figure.value, **pathwise(times, row, config.run.confidence), method="gradient"
        )
        for (figure, _, _), row in zip(sides, derivatives, strict=True)
        if np.abs(row).mean() > _NOTHING * times.mean()
    ]
    return times, found


def _draws(config: ExperimentConfig, like: TrainingDraws | None = None) -> TrainingDraws:
    key = jax.random.key(config.run.seed, impl="threefry2x32")
    return draws_of_training(config, key, None if like is None else like.step)


def _both(
    config: ExperimentConfig, draws: TrainingDraws, figure: Figure
) -> tuple[TrainingDraws, TrainingDraws] | None:
    """The step with less and with more of a figure; None where that changes nothing, or what is computed."""
    try:
        more = _draws(with_figures(config, {figure.path: figure.value * (1 + _STEP)}), draws)
        if _equal(more, draws):
            return None
        less = _draws(with_figures(config, {figure.path: figure.value * (1 - _STEP)}), draws)
    except InputError:
        return None
    return (less, more) if _alike(less, draws) and _alike(more, draws) else None


def _without_effect(config: ExperimentConfig, draws: TrainingDraws, asked: Sequence[Figure]) -> set[str]:
    """Figures of protocols that no message uses: all of one protocol on one tier are tried at once."""
    groups: dict[str, list[Figure]] = {}
    for figure in asked:
        keys = figure.path.split(".")
        if "protocols" in keys:
            groups.setdefault(".".join(keys[: keys.index("protocols") + 2]), []).append(figure)
    dead: set[str] = set()
    for members in groups.values():
        try:
            moved = _draws(
                with_figures(config, {each.path: each.value * (1 + _STEP) for each in members}), draws
            )
        except InputError:
            continue
        if _equal(moved, draws):
            dead |= {each.path for each in members}
    return dead


def _sampled(
    draws: TrainingDraws, sides: Sequence[tuple[TrainingDraws, TrainingDraws]], advance: Advance
) -> tuple[Floats, Floats]:
    """Steps, and their derivatives x dT/dx along each pair of sides, [figures, realisations, steps]."""
    shape = (draws.realisations, draws.per_realisation)
    times, along = np.empty(shape), np.empty((len(sides), *shape))
    total = draws.realisations * draws.calls
    fixed = [_difference(*(_parted(drawn_of(each))[0] for each in pair)) for pair in sides]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *fixed) if fixed else None
    piece = next(size for size in range(_AT_ONCE, 0, -1) if draws.piece % size == 0)
    for realisation in range(draws.realisations):
        for index in range(draws.calls):
            first = index * draws.call
            wanted = min(draws.call, draws.per_realisation - first)
            count = -(-wanted // piece) * piece

            def met_by(
                one: TrainingDraws, place: tuple[int, int] = (realisation, index), count: int = count
            ) -> Conditions:
                met = one.conditions(*place)
                links, messages, sample = jax.tree.map(
                    lambda leaf: leaf[..., :count], (met.links, met.messages, met.sample)
                )
                return Conditions(met.kept, links, messages, met.key, sample)

            met = met_by(draws)
            found, (of_drawn, of_links) = _gradients(
                draws.step.timetable,
                drawn_of(draws),
                met.kept,
                _links(met),
                met.key,
                met.sample,
                draws.method,
                piece,
            )
            here = slice(first, first + wanted)
            times[realisation, here] = np.asarray(found, np.float64)[:wanted]
            if stacked is not None:
                rows = np.array(_products(of_drawn, stacked), np.float64)
                for place, (less, more) in enumerate(sides if draws.step.tiers else ()):
                    apart = _difference(_links(met_by(less)), _links(met_by(more)))
                    rows[place] += np.asarray(_product(of_links, apart), np.float64)
                along[:, realisation, here] = rows[:, :wanted]
            done = realisation * draws.calls + index
            rest = 100 - _BUILDING
            advance(rest * (done + 1) // total - rest * done // total)
    return times, along


@eqx.filter_jit
def _gradients(
    timetable: Any,
    drawn: DrawnOf,
    kept: Realisation,
    links: Any,
    key: PRNGKeyArray,
    sample: Array,
    method: Sampling,
    piece: int,
) -> tuple[Array, Any]:
    """Step times of a call, and of each their gradient in what they are drawn of and in what links add."""
    floats, rest = _parted(drawn)
    adds, states = eqx.partition(links, eqx.is_inexact_array)

    def one(floats: Any, adds: Any, states: Any, number: Array) -> Array:
        # One step, with an axis of its own.
        now, messages = jax.tree.map(lambda leaf: leaf[..., None], eqx.combine(adds, states))
        model = eqx.combine(floats, rest)
        return step_times(timetable, model, Conditions(kept, now, messages, key, number[None]), method)[0]

    def of_piece(own: Any) -> tuple[Array, Any]:
        valued = jax.value_and_grad(one, argnums=(0, 1))
        return jax.vmap(valued, in_axes=(None, -1, -1, 0))(floats, *own)

    pieces = sample.size // piece

    def cut(leaf: Array) -> Array:
        return jnp.moveaxis(leaf.reshape(*leaf.shape[:-1], pieces, piece), -2, 0)

    found = jax.lax.map(of_piece, (*jax.tree.map(cut, (adds, states)), sample.reshape(pieces, piece)))
    return jax.tree.map(lambda leaf: leaf.reshape(leaf.shape[0] * leaf.shape[1], *leaf.shape[2:]), found)


def _parted(drawn: DrawnOf) -> tuple[DrawnOf, DrawnOf]:
    """Floats that draws depend on, and the rest: a table that a curve stands in for is not read."""
    floats, rest = eqx.partition(drawn, eqx.is_inexact_array)
    if drawn.noise.curve is None:
        return floats, rest
    none = eqx.filter(drawn.noise.table, lambda leaf: False)
    return (
        eqx.tree_at(lambda each: each.noise.table, floats, none, is_leaf=lambda leaf: leaf is None),
        eqx.tree_at(
            lambda each: each.noise.table, rest, drawn.noise.table, is_leaf=lambda leaf: leaf is None
        ),
    )


def _links(met: Conditions) -> Any:
    return met.links, met.messages


def _difference(less: Any, more: Any) -> Any:
    """X dA/dx of all floats of a tree."""
    found = [eqx.filter(each, eqx.is_inexact_array) for each in (less, more)]
    return jax.tree.map(lambda low, high: (high - low) / (2 * _STEP), *found)


@jax.jit
def _products(gradient: Any, stacked: Any) -> Array:
    """Of gradients of steps, [steps, ...], and changes by figures, [figures, ...]: [figures, steps]."""
    parts = jax.tree.map(lambda of, along: _flat(along) @ _flat(of).T, gradient, stacked)
    return jnp.sum(jnp.stack(jax.tree.leaves(parts)), axis=0)


@jax.jit
def _product(gradient: Any, along: Any) -> Array:
    """Of gradients, [steps, ...], and changes, [..., steps]: [steps]."""
    parts = jax.tree.map(
        lambda of, change: jnp.sum(_flat(of) * _flat(jnp.moveaxis(change, -1, 0)), axis=1), gradient, along
    )
    return sum(jax.tree.leaves(parts), jnp.zeros(()))


def _flat(leaf: Array) -> Array:
    return leaf.reshape(leaf.shape[0], math.prod(leaf.shape[1:]))


def _equal(one: TrainingDraws, other: TrainingDraws) -> bool:
    """Whether nothing that is drawn of differs."""
    trees = [
        (drawn_of(each), each.step.profile, each.step.step_messages, each.step.tiers) for each in (one, other)
    ]
    return bool(eqx.tree_equal(*trees))


def _alike(one: TrainingDraws, other: TrainingDraws) -> bool:
    """Whether two steps differ in floats alone."""

    def told(draws: TrainingDraws) -> Any:
        rest = eqx.filter(drawn_of(draws), eqx.is_inexact_array, inverse=True)
        shapes = [leaf.shape for leaf in jax.tree.leaves(eqx.filter(drawn_of(draws), eqx.is_inexact_array))]
        return rest, shapes, draws.step.profile

    return bool(eqx.tree_equal(told(one), told(other)))


def _takes_part(path: str) -> bool:
    keys = path.split(".")
    if keys[0] not in ("cluster", "plan") or keys[-1] in _IDLE or "posterior" in keys or "exceptions" in keys:
        return False
    return not (keys[-1] == "probability" and "congestion" in keys)
