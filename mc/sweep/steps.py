"""The steps of many cells as few batches of modules: one trace for all that have one structure.

Where nothing but floats differs, the engine builds one step from a configuration whose floats are traced, under `vmap`, and
gets all of them. Where a float decides what is computed (JAX refuses to look at a traced number), steps are built
one at a time and stacked afterwards.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from mc.collectives.stages import AUTO
from mc.config import ExperimentConfig
from mc.config.protocol import NONE
from mc.errors import InputError
from mc.exchange import ExchangePhase
from mc.experiment import build
from mc.fabric import build_cluster
from mc.step import Compute, Step
from mc.sweep.leaves import Group, groups_of, put
from mc.sweep.quiet import candidates_of, quiet, stages_of

Log = Callable[[str], None]


class Slots(eqx.Module):
    """What is random in a step, and what is certain.

    Attributes:
        compute: the compute phase.
        phases: of the exchange, without names and floors; None where a step has fewer.
        latency: of all phases, seconds.
        transfer: of all phases, seconds.
    """

    compute: Compute
    phases: tuple[ExchangePhase | None, ...]
    latency: Float[Array, ""]
    transfer: Float[Array, ""]


@dataclass(frozen=True)
class Piece:
    """Steps of some cells.

    Attributes:
        cells: their numbers.
        slots: their steps, with a leading axis.
        algorithms: what each runs.
    """

    cells: NDArray[np.int64]
    slots: Slots
    algorithms: tuple[str, ...]


class NotBatchedError(InputError):
    """A step that has to be drawn by itself."""


def reason_alone(config: ExperimentConfig) -> str | None:
    """Why a cell has to be drawn by itself; None if nothing speaks against a kernel yet."""
    if config.model.transformer is not None:
        return "a transformer's step is a pipeline"
    if config.mitigations.is_any:
        return "its mitigations change who waits for whom"
    if config.run.method != "exact":
        return f"the method is `{config.run.method}`"
    return None


def pieces_of(
    configs: Mapping[int, ExperimentConfig], log: Log
) -> tuple[list[Piece], dict[int, str], dict[int, str]]:
    """The steps of cells; why some have to be drawn alone; why others cannot be."""
    pieces: list[Piece] = []
    alone: dict[int, str] = {}
    failed: dict[int, str] = {}

    def take(group: Group) -> None:
        try:
            pieces.extend(_pieces(group))
        except NotBatchedError as error:
            alone.update(dict.fromkeys(group.cells.tolist(), str(error)))
        except InputError as error:
            failed.update(dict.fromkeys(group.cells.tolist(), str(error)))

    for group in groups_of(configs):
        try:
            take(group)
        except TypeError as error:
            if len(group.cells) == 1:
                raise
            log(f"{len(group.cells)} steps built one by one: {str(error).splitlines()[0]}")
            for cell in group.cells.tolist():
                take(groups_of({cell: configs[cell]})[0])
    return pieces, alone, failed


def _pieces(group: Group) -> list[Piece]:
    plan = group.template.plan
    if plan.algorithm == AUTO and plan.objective != "floor":
        if len(group.cells) > 1:
            raise TypeError("the algorithm is chosen under noise")
        return [_built(group, None, "")]
    ways = candidates_of(group.template, build_cluster(group.template.cluster))
    if len(ways.flat) == 1 and not ways.slots:
        (((name, protocol), _),) = ways.flat.items()
        text = name if protocol == NONE else f"{name} ({protocol})"
        return [_built(group, np.zeros(1, np.int64), text)]
    found = quiet(group)
    choices, place = found.choices
    texts = found.algorithms()
    pieces = []
    for number, choice in enumerate(choices):
        own = np.flatnonzero(place == number)
        part = Group(group.cells[own], group.template, group.paths, group.values[own])
        pieces.append(_built(part, choice, str(texts[own[0]])))
    return pieces


def _built(group: Group, choice: NDArray[np.int64] | None, text: str) -> Piece:
    def one(row: Float[Array, " paths"]) -> Slots:
        config = put(group.template, dict(zip(group.paths, row, strict=True)))
        stages = None
        if choice is not None:
            stages = stages_of(candidates_of(config, build_cluster(config.cluster)), choice)
        built = build(config, stages)
        if built.links:
            raise NotBatchedError("links remember their state, or have many")
        if built.step.compute.every_rank is not None:
            raise NotBatchedError("every rank has to be drawn")
        return _slots(built.step)

    if not group.paths:
        # Nothing differs: one is built, as a run builds it, and repeated.
        slots = one(jnp.zeros(0))
        arrays, static = eqx.partition(slots, eqx.is_array)
        repeated = jax.tree.map(lambda leaf: jnp.repeat(leaf[None], len(group.cells), axis=0), arrays)
        return Piece(group.cells, eqx.combine(repeated, static), (text,) * len(group.cells))
    values = jnp.asarray(group.values, jnp.result_type(float))
    return Piece(group.cells, eqx.filter_vmap(one)(values), (text,) * len(group.cells))


def _slots(step: Step) -> Slots:
    zero = jnp.zeros((), jnp.result_type(float))
    phases = tuple(ExchangePhase("", zero, zero, phase.excess, phase.queueing) for phase in step.phases)
    return Slots(step.compute, phases, step.latency_floor(), step.transfer())
