"""From the stages of a collective to a program for the executor, and the links that its messages meet.

The closed form of a stage knows what protocols, shapes and uneven units make of a link; a schedule knows who
waits for whom. So messages meet the latency and the bandwidth that the closed form implies, α = latency time
/ rounds and w = bytes carried / bandwidth time: without noise the schedule then takes what the closed form
says. Which tier a message crosses decides what is random about it.

Closed forms that route around a torus or along other shapes count links, not messages; there rounds and bytes are
read off the schedule itself, run once on links of one second, and once on links of one byte/s.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray
from numpy.typing import NDArray

from mc.collectives import Phase, Stage, algorithms
from mc.collectives.cost import DEFAULT_RADIX
from mc.collectives.in_network import IN_NETWORK
from mc.collectives.integers import to_integer
from mc.fabric import Cluster, LinkNoise, Torus, crossing, draw_link_factors
from mc.schedules import SCHEDULES, Schedule, build
from mc.timing import Disturbance, Links, Program, completion, program_of
from mc.timing.rings import ring_round

# Rows of a schedule that are worth building: a few hundred megabytes.
_MOST_ROWS = 6_000_000
# Choices of pieces; few, since each is a program of its own.
_PIECES = (1, 4, 16, 64)
# Each rank sends to every other.
_TO_ALL = ("direct", "one-shot", "pairwise")
# Rank after rank does the same in every round, so that nobody waits without noise.
_LOCKSTEP = (
    "ring",
    "recursive-doubling",
    "direct",
    "pairwise",
    "bruck",
    "dissemination",
    "recursive-halving",
)
_RINGS = ("ring", "bidirectional-ring")
# Their `ring` is a chain.
_CHAINS = ("reduce", "broadcast")
# No bytes, no time: as good as infinite, and finite in single precision.
_UNLIMITED = 1e30


@dataclass(frozen=True)
class Prepared:
    """A program, and how its numbers follow from the phases of the closed form.

    Attributes:
        program: for the executor.
        tier: of the cluster, for each tier that the program knows.
        phase: which phase of the closed form each tier of the program takes its numbers from.
        latencies: of each phase on the longest path; as the closed form has it where None.
        carried: bytes of each phase on the longest path, in multiples of the size.
        exact: whether without noise it takes what the closed form says, to rounding.
        rounds: how often the program, which is one round, has to be repeated; None for a whole program.
        copies: how many rings of the ranks run side by side in it; None for a whole program.
    """

    program: Program
    tier: tuple[int, ...]
    phase: tuple[int, ...]
    latencies: tuple[float | None, ...]
    carried: tuple[float, ...]
    exact: bool
    rounds: int | None = None
    copies: int | None = None

    @property
    def peers(self) -> int:
        """Ranks of the collective; a program may run several rings of them side by side."""
        return self.program.ranks // (self.copies or 1)

    @property
    def updates(self) -> int:
        """Work of one trial."""
        return self.program.updates * (self.rounds or 1)

    def links(self, phases: Sequence[Phase], size: float, noise: LinkNoise | None) -> Links:
        """What messages meet, so that without noise each phase takes its time."""
        latency = []
        for place, phase in enumerate(phases):
            counted = self.latencies[min(place, len(self.latencies) - 1)]
            rounds = jnp.maximum(phase.rounds, 1.0) if counted is None else max(counted, 1.0)
            latency.append(phase.latency_time / rounds)
        transfers = [phase.bandwidth_time + phase.reduction_time for phase in phases]
        if len(self.carried) < len(phases):
            # Data stream through all tiers at once.
            transfers = [sum(transfers, jnp.zeros(()))] * len(phases)
        bandwidth = []
        for place, transfer in enumerate(transfers):
            moved = self.carried[min(place, len(self.carried) - 1)] * size
            takes_time = (transfer > 0) & (moved > 0)
            bandwidth.append(jnp.where(takes_time, moved / jnp.where(takes_time, transfer, 1.0), _UNLIMITED))
        return Links(
            jnp.stack([latency[each] for each in self.phase]),
            jnp.stack([bandwidth[each] for each in self.phase]),
            tuple(None if noise is None else noise.jitter[index] for index in self.tier),
        )

    def disturbance(self, noise: LinkNoise, key: PRNGKeyArray, samples: int) -> Disturbance | None:
        """States of the links of every tier, the same in all phases on it."""
        if all(noise.shared[tier] is None for tier in self.tier):
            return None
        rank = jnp.arange(self.program.ranks) % self.peers
        none = rank * 0, jnp.ones((1, samples)), jnp.zeros((1, samples))
        drawn: dict[int, tuple[Int[Array, " ranks"], Float[Array, ...], Float[Array, ...]]] = {}
        for tier in set(self.tier):
            links = noise.shared[tier]
            if links is None:
                drawn[tier] = none
            else:
                own = jax.random.fold_in(key, tier)
                drawn[tier] = (links.group_of(rank), *draw_link_factors(links, own, samples))
        group, slowdown, delay = zip(*(drawn[tier] for tier in self.tier), strict=True)
        return Disturbance(group, slowdown, delay)


def prepare(
    cluster: Cluster, stages: Sequence[Stage], phases: Sequence[Phase], *, most_updates: float
) -> Prepared | None:
    """The program of a collective on a cluster.

    Args:
        cluster: where it runs.
        stages: how.
        phases: their cost.
        most_updates: that one trial may take; pipelined algorithms take fewer pieces to keep to it.

    Returns:
        None if no schedule fits: units that differ, an algorithm without one, or too many messages.
    """
    if any(stage.kinds for stage in stages) or not all(_has_schedule(stage) for stage in stages):
        return None
    one = stages[0]
    if len(stages) == 1 and one.algorithm.name in _RINGS and one.algorithm.collective not in _CHAINS:
        return _ring(cluster, one)
    wanted = max(_pieces(phase) for phase in phases)
    found = None
    for pieces in reversed([each for each in _PIECES if each <= wanted]):
        # A step updates all nodes, so there are at least as many updates as messages.
        if _rows(stages, phases, pieces) > min(_MOST_ROWS, most_updates):
            continue
        found = _flat(cluster, one, pieces) if len(stages) == 1 else _composed(cluster, stages, pieces)
        if found is None or found.updates <= most_updates or not _is_pipelined(stages):
            break
    return found


def ranks_of(stages: Sequence[Stage]) -> int:
    """How many ranks carry stages out together."""
    return stages[0].ranks if len(stages) == 1 else math.prod(_units_by_tier(stages).values())


def _has_schedule(stage: Stage) -> bool:
    return stage.algorithm.name in SCHEDULES.get(stage.algorithm.collective, {})


def _rows(stages: Sequence[Stage], phases: Sequence[Phase], pieces: int) -> float:
    """About how many messages there are."""
    everyone, rows = ranks_of(stages), 0.0
    if _is_pipelined(stages):
        # Up and down both trees; a chain has a quarter of that.
        rows += 4.0 * everyone * pieces
    for stage, phase in zip(stages, phases, strict=False):
        rounds = stage.ranks if stage.algorithm.name in _TO_ALL else max(float(phase.rounds), 1.0)
        rows += everyone * rounds
    return rows


def _units_by_tier(stages: Sequence[Stage]) -> dict[int, int]:
    return {index: units for stage in stages for index, units in zip(stage.tiers, stage.units, strict=True)}


def _pieces(phase: Phase) -> int:
    """Of a size that a piece takes about as long as a latency, so that the next one does not wait in vain."""
    latency = float(phase.latency_time) / max(float(phase.rounds), 1.0)
    transfer = float(phase.bandwidth_time)
    wanted = transfer / latency / 2 if latency > 0 else _PIECES[-1]
    return max(each for each in _PIECES if each <= max(wanted, 1.0))


def _counted(stage: Stage, program: Program, radix: int) -> tuple[float | None, float, bool]:
    """Latencies (None: those of the closed form) and bytes on the longest path, and whether they are all there is."""
    algorithm = stage.algorithm
    known = algorithms(algorithm.collective).get(algorithm.name)
    if type(known) is type(algorithm) and not _is_pipelined((stage,)):
        counts = algorithm.counts(jnp.asarray(float(stage.ranks)), to_integer(radix))
        lockstep = algorithm.name in _LOCKSTEP and algorithm.collective not in _CHAINS
        return None, float(jnp.asarray(counts.carried)), lockstep
    key = jax.random.key(0, impl="threefry2x32")
    one, quiet = (1.0,) * program.tiers, (None,) * program.tiers
    unlimited = (_UNLIMITED,) * program.tiers
    latencies = completion(program, Links(one, unlimited, quiet), 0.0, key, 1)[0]
    carried = completion(program, Links((0.0,) * program.tiers, one, quiet), 1.0, key, 1)[0]
    return float(latencies), float(carried), False


def _is_pipelined(stages: Sequence[Stage]) -> bool:
    return any(
        stage.algorithm.name == "tree"
        or (stage.algorithm.name == "ring" and stage.algorithm.collective in _CHAINS)
        for stage in stages
    )


def _radix(cluster: Cluster, index: int) -> int:
    return cluster.tiers[index].reduction_radix or DEFAULT_RADIX


def _ring(cluster: Cluster, stage: Stage) -> Prepared:
    """One round, to be repeated."""
    name, collective, n = stage.algorithm.name, stage.algorithm.collective, stage.ranks
    one = ring_round(n, both_ways=name != "ring", crossing=_places(cluster, stage))
    rounds = (n - 1) * (2 if collective == "all-reduce" else 1)
    return Prepared(
        one,
        stage.tiers,
        (0,) * len(stage.tiers),
        (float(rounds),),
        (rounds * float(np.max(np.asarray(one.patterns.share))),),
        exact=True,
        rounds=rounds,
        copies=one.ranks // n,
    )


def _places(cluster: Cluster, stage: Stage, schedule: Schedule | None = None):
    """Which of the stage's tiers a message crosses; an edge of a switch belongs to the tier of its upper end."""
    place_of = np.zeros(len(cluster.tiers), np.int64)
    place_of[list(stage.tiers)] = np.arange(len(stage.tiers))

    def of_pair(source: NDArray[np.int_], target: NDArray[np.int_]) -> NDArray[np.int_]:
        ranks = np.maximum(source, target) < stage.ranks
        found = np.zeros(source.shape, np.int64)
        found[ranks] = place_of[crossing(cluster, source[ranks], target[ranks])]
        if schedule is not None and schedule.switch_tiers is not None and schedule.switches:
            tier = np.concatenate([np.zeros(stage.ranks, np.int64), schedule.switch_tiers])
            found[~ranks] = np.maximum(tier[source], tier[target])[~ranks]
        return found

    return of_pair


def _flat(cluster: Cluster, stage: Stage, pieces: int) -> Prepared:
    name, shape = stage.algorithm.name, cluster.tiers[stage.tiers[0]].shape
    radix: int | tuple[int, ...] = _radix(cluster, stage.tiers[-1])
    units: Sequence[int] = ()
    if name == IN_NETWORK:
        radix, units = tuple(_radix(cluster, index) for index in stage.tiers), stage.units
    elif isinstance(shape, Torus):
        box = shape.box(stage.units[0])
        units = () if box is None else box.dims
    schedule = build(stage.algorithm.collective, name, stage.ranks, radix=radix, pieces=pieces, units=units)
    program = program_of(schedule, crossing=_places(cluster, stage, schedule), own_ports=schedule.ports > 1)
    if name == IN_NETWORK:
        phase = tuple(range(len(stage.tiers)))
        bytes_once = 0.0 if stage.algorithm.collective == "barrier" else 1.0
        return Prepared(program, stage.tiers, phase, (None,) * len(phase), (bytes_once,), exact=True)
    latencies, carried, exact = _counted(stage, program, _radix(cluster, stage.tiers[-1]))
    return Prepared(program, stage.tiers, (0,) * len(stage.tiers), (latencies,), (carried,), exact=exact)


def _composed(cluster: Cluster, stages: Sequence[Stage], pieces: int) -> Prepared | None:
    units = _units_by_tier(stages)
    sides: list[int | tuple[int, ...]] = []
    for index in sorted(units):
        shape = cluster.tiers[index].shape
        box = shape.box(units[index]) if isinstance(shape, Torus) else None
        sides.append(units[index] if box is None else box.dims)
    collective = _collective(stages)
    # Pieces of nothing are one.
    pieces = 1 if collective == "barrier" else pieces
    radices = tuple(_radix(cluster, index) for index in sorted(units))
    parts = [
        build(
            stage.algorithm.collective,
            stage.algorithm.name,
            stage.ranks,
            radix=_radix(cluster, stage.tiers[0]),
            pieces=pieces,
            units=_own_units(sides[sorted(units).index(stage.tiers[0])], stage),
        )
        for stage in stages
    ]
    schedule = build(
        collective,
        "hierarchical",
        ranks_of(stages),
        radix=radices,
        pieces=pieces,
        units=sides,
        algorithms=[stage.algorithm.name for stage in stages],
    )
    counted = [
        _counted(stage, program_of(part, own_ports=part.ports > 1), _radix(cluster, stage.tiers[0]))
        for stage, part in zip(stages, parts, strict=True)
    ]
    of_round = np.repeat(np.arange(len(stages)), [part.rounds for part in parts])
    if of_round.size != schedule.rounds:
        return None
    program = program_of(schedule, of_round=of_round, own_ports=schedule.ports > 1)
    return Prepared(
        program,
        tuple(stage.tiers[0] for stage in stages),
        tuple(range(len(stages))),
        tuple(latencies for latencies, _, _ in counted),
        tuple(carried * stage.share for stage, (_, carried, _) in zip(stages, counted, strict=True)),
        exact=False,
    )


def _own_units(sides: int | tuple[int, ...], stage: Stage) -> Sequence[int]:
    return sides if isinstance(sides, tuple) and stage.algorithm.name == "multi-ring" else ()


def _collective(stages: Sequence[Stage]) -> str:
    """What stages on several tiers carry out together."""
    names = [stage.algorithm.collective for stage in stages]
    if "all-reduce" in names:
        return "all-reduce"
    if "barrier" in names:
        return "barrier"
    return names[0]
