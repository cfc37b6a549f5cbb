"""One compiled program for many cells.

Cells share a kernel if their steps have the same laws in the same places: rank counts, delays, sizes and rates are numbers in
them. A collective that spans fewer tiers has fewer phases; what it lacks is filled with a phase whose slowest is taken
of no ranks at all, which takes no time. So the cells of a cluster-size sweep run in one program, whatever their size.

A *unit* of work is one chunk of one realisation of one cell. A device carries out a fixed number of units per call one
after the other (`lax.map`), each as if it were alone, so its numbers depend neither on its neighbours nor on how many
devices share the call (`shard_map` over all of them, of all processes that have joined).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int, UInt32
from numpy.typing import NDArray

from mc.delays import Slowest
from mc.exchange import ExchangePhase
from mc.step import Compute, Step
from mc.step.persistent import Classes
from mc.sweep.steps import Piece, Slots

Devices = Sequence[jax.Device] | None
# Steps that a device draws in one call: enough to fill it, little enough to show progress.
_CALL = 1 << 18


@dataclass(frozen=True)
class Kernel:
    """Cells with one program.

    Attributes:
        cells: their numbers.
        slots: their steps with the tables that draws read; a leading axis of at least as many.
        alone: what one rank computes that waits for nobody, mean seconds, [cells].
        latency: seconds, [cells].
        transfer: seconds, [cells].
        algorithms: what each runs.
    """

    cells: tuple[int, ...]
    slots: Slots
    alone: NDArray[np.float64]
    latency: NDArray[np.float64]
    transfer: NDArray[np.float64]
    algorithms: tuple[str, ...]

    def compute(self, place: int) -> Compute:
        """The compute phase of one cell, with known numbers."""
        return _at(self.slots.compute, place)


@dataclass(frozen=True)
class Units:
    """Work for a kernel, one entry per unit.

    Attributes:
        member: place of the cell in the kernel.
        keys: root key of the cell, as data.
        realisation: of the cluster.
        chunk: of its steps.
        classes: of the realisation; None where nothing is persistent.
    """

    member: NDArray[np.int64]
    keys: NDArray[np.uint32]
    realisation: NDArray[np.int64]
    chunk: NDArray[np.int64]
    classes: Classes | None


def kernels_of(pieces: Sequence[Piece]) -> list[Kernel]:
    """The kernels that the pieces need, each as large as can be."""
    families: list[list[Piece]] = []
    for piece in pieces:
        for family in families:
            if all(_compatible(piece.slots, other.slots) for other in family):
                family.append(piece)
                break
        else:
            families.append([piece])
    return [_kernel(family) for family in families]


def draw(
    kernel: Kernel, units: Units, size: int, per_device: int, devices: Devices = None
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]]:
    """Draws units on devices, in shares of equal size.

    Args:
        kernel: whose cells they are of.
        units: what to draw.
        size: steps in each.
        per_device: units that one device draws per call.
        devices: which; all of this process by default.

    Yields:
        Which units, and their compute times of the slowest rank and what congestion adds, [units, size].
    """
    mesh = Mesh(np.array(jax.devices() if devices is None else devices), ("units",))
    slots = _placed(kernel.slots, mesh, PartitionSpec())
    whole = per_device * mesh.size
    count = len(units.member)
    for first in range(0, count, whole):
        # The last call repeats units rather than compile another shape.
        call = np.minimum(np.arange(first, first + whole), count - 1)
        classes = (
            None if units.classes is None else jax.tree.map(lambda leaf, own=call: leaf[own], units.classes)
        )
        entries = (
            units.member[call].astype(np.int32),
            units.keys[call],
            units.realisation[call].astype(np.int32),
            units.chunk[call].astype(np.int32),
            classes,
        )
        drawn = _draw(slots, _placed(entries, mesh, PartitionSpec("units")), size, mesh)
        compute, congestion = (_gathered(each) for each in drawn)
        done = min(whole, count - first)
        yield call[:done], compute[:done], congestion[:done]


def _placed(tree: Any, mesh: Mesh, spec: PartitionSpec) -> Any:
    """Arrays on the devices of a mesh, also on those of other processes, which have the same ones."""
    if jax.process_count() == 1:
        return jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf, tree)

    def placed(leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray | jax.Array):
            return leaf
        values = np.asarray(leaf)
        return jax.make_array_from_callback(
            values.shape, NamedSharding(mesh, spec), lambda place: values[place]
        )

    return jax.tree.map(placed, tree)


def _gathered(drawn: Array) -> NDArray[np.float32]:
    """All that was drawn, whatever process drew it."""
    if jax.process_count() == 1:
        return np.asarray(drawn)
    from jax.experimental import multihost_utils

    return np.asarray(multihost_utils.process_allgather(drawn, tiled=True))


def units_per_device(units: int, size: int) -> int:
    """How many units a device draws per call, for that many in all."""
    return max(1, min(1 << (units - 1).bit_length(), _CALL // size))


_Entries = tuple[
    Int[Array, " units"], UInt32[Array, "units 2"], Int[Array, " units"], Int[Array, " units"], Any
]


@eqx.filter_jit
def _draw(
    slots: Slots, entries: _Entries, size: int, mesh: Mesh
) -> tuple[Float[Array, "units size"], Float[Array, "units size"]]:
    arrays, static = eqx.partition(slots, eqx.is_array)

    def on_device(arrays: Any, entries: _Entries):
        return jax.lax.map(partial(_unit, eqx.combine(arrays, static), size), entries)

    spec = PartitionSpec("units")
    mapped = jax.shard_map(
        on_device, mesh=mesh, in_specs=(PartitionSpec(), spec), out_specs=spec, check_vma=False
    )
    return mapped(arrays, entries)


def _unit(slots: Slots, size: int, entry: Any) -> tuple[Float[Array, " size"], Float[Array, " size"]]:
    member, key, realisation, chunk, classes = entry
    own = _at(slots, member)
    step = Step(own.compute, own.phases)
    drawn = step.draw(
        jax.random.wrap_key_data(key, impl="threefry2x32"),
        realisation[None],
        chunk[None],
        None if classes is None else jax.tree.map(lambda leaf: leaf[None], classes),
        size=size,
    )
    return drawn.compute[0], drawn.congestion[0]


def _prepared(slots: Slots) -> tuple[Slots, NDArray[np.float64]]:
    """The same with the tables that draws read, and the mean of one rank, [cells]; a table for each law, not for each cell."""
    ranks = slots.compute.ranks
    # A table is that of one rank, or of one unit: how many there are does not matter.
    compute = eqx.tree_at(lambda own: own.compute.ranks, slots, jnp.ones_like(ranks)).compute
    ready, alone = _once_each(_with_tables, compute)
    ready = eqx.tree_at(lambda own: own.ranks, ready, ranks)
    phases = tuple(
        None if phase is None else _once_each(ExchangePhase.prepared, phase) for phase in slots.phases
    )
    return Slots(ready, phases, slots.latency, slots.transfer), np.asarray(alone, np.float64)


def _with_tables(compute: Compute) -> tuple[Compute, Float[Array, ""]]:
    ready = compute.prepared()
    return ready, ready.mean_of_one()


def _once_each(prepare: Callable[[Any], Any], module: Any) -> Any:
    """A batch of modules, prepared; those that are alike once."""
    arrays, static = eqx.partition(module, eqx.is_array)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(arrays)]
    rows = np.concatenate([leaf.reshape(len(leaf), -1).astype(np.float64) for leaf in leaves], axis=1)
    _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    size = 1 << (len(first) - 1).bit_length()
    chosen = first[np.minimum(np.arange(size), len(first) - 1)]
    found = _each(prepare, jax.tree.map(lambda leaf: leaf[chosen], arrays), static)
    return jax.tree.map(lambda leaf: leaf[place.ravel()] if eqx.is_array(leaf) else leaf, found)


@eqx.filter_jit
def _each(prepare: Callable[[Any], Any], arrays: Any, static: Any) -> Any:
    kept: list[Any] = []

    def one(arrays: Any) -> Any:
        dynamic, rest = eqx.partition(prepare(eqx.combine(arrays, static)), eqx.is_array)
        kept.append(rest)
        return dynamic

    return eqx.combine(jax.lax.map(one, arrays), kept[0])


def _kernel(family: Sequence[Piece]) -> Kernel:
    length = max(len(piece.slots.phases) for piece in family)
    examples = []
    for slot in range(length):
        have = [piece.slots.phases[slot] for piece in family if slot < len(piece.slots.phases)]
        examples.append(
            next((phase for phase in have if phase is not None and phase.excess is not None), have[0])
        )
    wholes = [_completed(piece.slots, examples, len(piece.cells)) for piece in family]
    cells = [int(cell) for piece in family for cell in piece.cells]
    # Up to a power of 2, so that batches that are not full have few shapes.
    size = 1 << (len(cells) - 1).bit_length()
    fill = np.minimum(np.arange(size), len(cells) - 1)
    arrays = [eqx.partition(each, eqx.is_array) for each in wholes]
    joined = jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[fill], *(each for each, _ in arrays))
    slots, alone = _prepared(eqx.combine(joined, arrays[0][1]))
    count = len(cells)
    return Kernel(
        tuple(cells),
        slots,
        alone[:count],
        np.asarray(slots.latency, np.float64)[:count],
        np.asarray(slots.transfer, np.float64)[:count],
        tuple(text for piece in family for text in piece.algorithms),
    )


def _completed(slots: Slots, examples: Sequence[ExchangePhase | None], count: int) -> Slots:
    """The same with as many phases as the examples, those that were missing without ranks."""
    phases = []
    for place, example in enumerate(examples):
        own = slots.phases[place] if place < len(slots.phases) else None
        zeros = jnp.zeros(count, jnp.result_type(float))
        queueing = zeros if own is None else own.queueing
        excess = None if own is None else own.excess
        if excess is None and example is not None and isinstance(example.excess, Slowest):
            law = jax.tree.map(
                lambda leaf: jnp.repeat(leaf[:1], count, axis=0) if eqx.is_array(leaf) else leaf,
                example.excess.delay,
            )
            excess = Slowest(law, zeros)
        phases.append(ExchangePhase("", zeros, zeros, excess, queueing))
    return Slots(slots.compute, tuple(phases), slots.latency, slots.transfer)


def _compatible(one: Slots, two: Slots) -> bool:
    """Whether two cells' steps can run in one program."""
    if _structure(one.compute) != _structure(two.compute):
        return False
    for mine, yours in zip(one.phases, two.phases, strict=False):
        laws = [None if each is None else each.excess for each in (mine, yours)]
        if all(law is not None for law in laws) and _structure(laws[0]) != _structure(laws[1]):
            return False
    return True


def _structure(module: Any) -> Any:
    arrays, static = eqx.partition(module, eqx.is_array)
    shapes = [leaf.shape[1:] for leaf in jax.tree.leaves(arrays)]
    return jax.tree.structure(module), shapes, jax.tree.leaves(static)


def _at(module: Any, place: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[place] if eqx.is_array(leaf) else leaf, module)
