"""From an experiment with mitigations to its step, where ranks compute and then exchange."""

import jax

from mc.config import ExperimentConfig
from mc.errors import InputError
from mc.experiment.build import Built
from mc.step import (
    Classes,
    Compute,
    MitigatedStep,
    Step,
    build_waiting,
    draw_classes,
    without_slowest,
)


def mitigated(config: ExperimentConfig, built: Built) -> Step | MitigatedStep:
    """The step of an experiment with what its mitigations make of it; as it is where they leave it alone.

    Raises:
        InputError: the method is `grid` where every rank has to be drawn.
    """
    told, plain = config.mitigations, built.step.compute
    if not (config.dropped or config.removed or told.local_steps or told.delayed_sync):
        return built.step
    started = config.ranks + told.backups
    kinds = _kinds(config, started + config.removed) if plain.kinds else ()
    compute, waiting = build_waiting(
        Compute(
            plain.rank,
            started,
            plain.persistent,
            plain.shared,
            plain.job,
            None if plain.every_rank is None else started,
            kinds,
        ),
        started=started,
        dropped=config.dropped,
        removed=config.removed,
        local_steps=told.steps,
        staleness=told.staleness,
        method=config.run.method,
    )
    if config.run.method == "grid" and (waiting.every_rank or (waiting.dropped and waiting.levels is None)):
        raise InputError(
            "run.method: expected `exact` or `direct` with these mitigations, which take every rank apart; got `grid`"
        )
    return MitigatedStep(Step(compute, built.step.phases), waiting)


def _kinds(config: ExperimentConfig, ranks: int) -> tuple[tuple[int, float], ...]:
    compute = config.model.compute
    assert compute is not None
    return tuple((count, 1 / rate) for count, rate in config.cluster.classes(compute.format, ranks))


def classes_of(
    step: Step | MitigatedStep, key: jax.Array, ranks: int, realisations: int
) -> tuple[Classes | None, float]:
    """The persistent slowness and the kinds of chips of each realisation; None where every rank is drawn with its own.

    Returns:
        With it the mean factor, over that before the slowest chips were taken out.
    """
    compute = step.compute
    if not (compute.persistent or compute.kinds) or compute.every_rank is not None:
        return None, 1.0
    removed = 0
    if isinstance(step, MitigatedStep):
        ranks, removed = step.waiting.started, step.waiting.removed
    found = draw_classes(
        compute.persistent, ranks + removed, key, realisations, unit=compute.unit, kinds=compute.kinds
    )
    if not removed:
        return found, 1.0
    units = -(-(ranks + removed) // compute.unit) - -(-ranks // compute.unit)
    return without_slowest(found, compute, units)
