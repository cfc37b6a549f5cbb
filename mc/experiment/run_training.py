"""Sampling the steps of a transformer, and where their time goes."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.typing import NDArray

from mc.config import ExperimentConfig
from mc.experiment.build_training import TrainingStep
from mc.experiment.devices import on_all_devices
from mc.experiment.training_draws import Conditions, TrainingDraws, draws_of_training
from mc.experiment.training_links import Disturbed
from mc.experiment.training_steps import DrawnOf, Replicas, drawn_of, replica_times, step_times
from mc.step import late_exchanges
from mc.training import LinksNow, Realisation, Sampling

# Of the waterfall, after those of a step without noise.
NOISE_PARTS = ("straggler_wait", "routing_skew", "congestion")

Advance = Callable[[int], None]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Drawn:
    """Steps of all realisations.

    Attributes:
        step: what was drawn of.
        parts: name to seconds, scalars and arrays of shape (realisations, steps), which add up to a step.
        sampling_s: how long drawing took.
    """

    step: TrainingStep
    parts: dict[str, Floats]
    sampling_s: float


def draw_training(config: ExperimentConfig, key: PRNGKeyArray, advance: Advance) -> Drawn:
    """Samples the steps of an experiment whose model is a transformer.

    Raises:
        InputError: the experiment cannot be built, or asks for a method that it does not have.
    """
    return draw_all(draws_of_training(config, key), config.run.samples, advance)


def draw_all(draws: TrainingDraws, samples: int, advance: Advance) -> Drawn:
    """All steps, and where their time goes."""
    step = draws.step
    breakdown = step.quiet.breakdown
    begun = time.perf_counter()
    if not step.is_random and not step.stays:
        # Nothing differs from one step to the next.
        times = np.full((3, draws.realisations, draws.per_realisation), breakdown.step)
        advance(samples)
    else:
        times = _draw(draws, samples, advance)
    sampling_s = time.perf_counter() - begun
    ranks, loads, links = times
    if loads.mean() < ranks.mean():
        # Work that varies cannot be quicker in the mean than its mean work is; in a small sample it may be.
        ranks = loads
    parts = {name: np.asarray(float(seconds)) for name, seconds in breakdown.parts.items()}
    waits = (ranks - breakdown.step, loads - ranks, links - loads)
    parts |= dict(zip(NOISE_PARTS, waits, strict=True))
    return Drawn(step, parts, sampling_s)


def _draw(draws: TrainingDraws, samples: int, advance: Advance) -> Floats:
    """Steps with the noise of ranks, with that and loads, and with all; [3, realisations, steps]."""
    step, call, rounds = draws.step, draws.call, draws.rounds
    model, draw = drawn_of(draws), eqx.filter_jit(_steps)
    found = np.empty((3, draws.realisations, draws.per_realisation))
    total = draws.realisations * rounds
    for realisation in range(draws.realisations):
        drawn = []
        for index in range(draws.calls):
            met = draws.conditions(realisation, index)
            drawn.append(
                draw(step.timetable, model, met, draws.piece, draws.method, late=bool(step.staleness))
            )
            done = realisation * rounds + min((index + 1) * call, rounds)
            before = realisation * rounds + min(index * call, rounds)
            advance(samples * done // total - samples * before // total)
        whole = jax.tree.map(lambda *parts: np.concatenate(parts, axis=-1)[..., :rounds], *drawn)
        found[:, realisation] = _sequence(whole, step) if isinstance(whole, Replicas) else whole
    return found


def _sequence(whole: Replicas, step: TrainingStep) -> Floats:
    """The steps of a realisation whose exchanges may be late."""
    own = jnp.moveaxis(jnp.asarray(whole.own), -1, 0)
    took = late_exchanges(
        lambda index: own[index], jnp.asarray(whole.exchange), step.staleness, own.shape[-1]
    )
    return np.asarray(took, np.float64) / step.steps


def _steps(
    timetable,
    model: DrawnOf,
    met: Conditions,
    piece: int,
    method: Sampling,
    *,
    late: bool,
) -> Float[Array, "3 samples"] | Replicas:
    kept, key, pieces = met.kept, met.key, met.sample.size // piece
    times = replica_times if late else step_times

    def cut(values: Array) -> Array:
        return jnp.moveaxis(values.reshape(*values.shape[:-1], pieces, -1), -2, 0)

    def one(own: tuple[Array, LinksNow | None, Disturbed | None]) -> Any:
        numbers, now, added = own
        without = eqx.tree_at(
            lambda each: (each.noise.load, each.noise.documents),
            model,
            ((), None),
            is_leaf=lambda leaf: leaf is None,
        )
        even = Realisation(kept.profile, kept.factor, jnp.ones_like(kept.load))
        ranks = times(timetable, without, Conditions(even, None, None, key, numbers), method)
        has_loads = bool(model.noise.load) or model.noise.documents is not None
        loads = ranks
        if has_loads:
            loads = times(timetable, model, Conditions(kept, None, None, key, numbers), method)
        everything = loads
        if now is not None:
            everything = times(timetable, model, Conditions(kept, now, added, key, numbers), method)
        return jax.tree.map(lambda *variants: jnp.stack(variants), ranks, loads, everything)

    whole = (cut(met.sample), *jax.tree.map(cut, (met.links, met.messages)))
    found = on_all_devices(lambda own: jax.lax.map(one, own), whole)

    def joined(leaf: Array) -> Array:
        """[pieces, ..., piece] to [..., samples]."""
        return jnp.moveaxis(leaf, 0, -2).reshape(*leaf.shape[1:-1], -1)

    return jax.tree.map(joined, found)
