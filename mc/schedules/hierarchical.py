"""Compositions over tiers: one algorithm per tier, one stage after the other.

All-reduce is a reduce-scatter inside, an all-reduce across with the part that each rank then holds, and an
all-gather inside (R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19 (2005)); applied again to the tiers above.
`stages` lists what each collective becomes; `mc.collectives` prices the same stages.

A stage is a flat schedule of its tier, relabelled: a rank's number has one digit per tier, innermost first,
and the stage runs in all places that differ in the other digits at once. Parts of the buffer nest the same
way, the innermost digit as the most significant, so ranges stay ranges. A composition with a stream in it
(`ring` reduce, `tree`, `in-network`) does not wait for its targets in any stage.
"""

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from mc.schedules.options import Options
from mc.schedules.rows import Block, assemble, rows
from mc.schedules.schedule import Schedule

Pick = Callable[[str, str, Options], Schedule]

# What a stage is carried out by unless said otherwise.
DEFAULTS = {
    "all-reduce": "ring",
    "reduce-scatter": "ring",
    "all-gather": "ring",
    "reduce": "binomial",
    "broadcast": "binomial",
    "gather": "binomial",
    "scatter": "binomial",
    "all-to-all": "direct",
    "barrier": "dissemination",
}

# What a row keeps when it is relabelled.
_CARRIED = ("round", "slot", "combine", "source_lane", "target_lane", "cut_through", "attached", "port")


def stages(collective: str, tiers: int) -> list[tuple[str, int]]:
    """What has to be done in order: (collective, index of the tier)."""
    inside, up = range(tiers - 1), range(tiers)
    match collective:
        case "all-reduce":
            first, last = "reduce-scatter", "all-gather"
        case "barrier":
            first, last = "reduce", "broadcast"
        case "all-gather" | "broadcast" | "scatter":
            return [(collective, tier) for tier in reversed(up)]
        case _:
            return [(collective, tier) for tier in up]
    across = [(collective, tiers - 1)]
    return [(first, tier) for tier in inside] + across + [(last, tier) for tier in reversed(inside)]


def compose(collective: str, tiers: tuple[Options, ...], algorithms: tuple[str, ...], pick: Pick) -> Schedule:
    """Build a composition; a stage begins when all lanes of a node have ended the one before.

    Args:
        collective: any that `DEFAULTS` lists.
        tiers: what the flat schedules of each tier are asked for, innermost first.
        algorithms: one per stage.
        pick: makes the flat schedule of (collective, algorithm, options).
    """
    plan = stages(collective, len(tiers))
    flat = [
        _canonical(pick(name, algorithm, tiers[tier]))
        for (name, tier), algorithm in zip(plan, algorithms, strict=True)
    ]
    units = tuple(each.ranks for each in tiers)
    n = math.prod(units)
    chunks = _chunks(collective, units, plan, flat)
    blocks: list[Block] = []
    joins, switch_tiers = [], [np.zeros(0, np.int8)]
    start = 0
    for (name, tier), schedule in zip(plan, flat, strict=True):
        if not schedule.rows:
            continue
        block, copies = _place(name, tier, schedule, units, chunks, n + sum(map(len, switch_tiers)))
        blocks.append(block | {"round": block["round"] + start})
        joins.append(start)
        switch_tiers.append(np.full(copies * schedule.switches, tier, np.int8))
        start += schedule.rounds
    return assemble(
        blocks,
        collective=collective,
        algorithm="hierarchical",
        ranks=n,
        chunks=chunks,
        switches=sum(map(len, switch_tiers)),
        switch_tiers=np.concatenate(switch_tiers),
        lanes=max(each.lanes for each in flat),
        ports=max(each.ports for each in flat),
        joins=tuple(joins[1:]),
        rendezvous=all(each.rendezvous for each in flat),
        owner=_owner(collective, units, chunks),
        units=units,
        piece_shares=np.zeros(1) if collective == "barrier" else None,
    )


def _chunks(
    collective: str, units: tuple[int, ...], plan: list[tuple[str, int]], flat: list[Schedule]
) -> int:
    """As fine as every stage needs."""
    if collective in ("all-to-all", "gather", "scatter"):
        return math.prod(units)
    nested = collective in ("all-reduce", "reduce-scatter", "all-gather")
    return math.lcm(
        *(
            schedule.chunks * (math.prod(units[:tier]) if nested else 1)
            for (_, tier), schedule in zip(plan, flat, strict=True)
        )
    )


def _owner(collective: str, units: tuple[int, ...], chunks: int) -> np.ndarray | None:
    n = math.prod(units)
    if collective in ("gather", "scatter"):
        return np.arange(n)
    if collective not in ("reduce-scatter", "all-gather"):
        return None
    part = np.arange(chunks) // (chunks // n)
    return _reversed_digits(part, units)


def _reversed_digits(part: np.ndarray, units: tuple[int, ...]) -> np.ndarray:
    """Parts have the innermost digit as the most significant, ranks as the least."""
    rank, weight, rest = np.zeros_like(part), 1, math.prod(units)
    for unit in units:
        rest //= unit
        rank += part // rest % unit * weight
        weight *= unit
    return rank


def _place(
    name: str, tier: int, schedule: Schedule, units: tuple[int, ...], chunks: int, fresh: int
) -> tuple[Block, int]:
    """The rows of a stage in all its places, and how many places there are."""
    unit, inner = units[tier], math.prod(units[:tier])
    outer = math.prod(units[tier + 1 :])
    rooted = name in ("reduce", "broadcast", "gather", "scatter")
    # A rooted stage runs among those that stand for their unit, the others in every place inside.
    below = np.arange(1 if rooted or name == "barrier" else inner)
    place = (np.arange(outer)[:, None] * unit * inner + below).reshape(-1, 1)

    def node(local: np.ndarray) -> np.ndarray:
        switch = fresh + np.arange(place.size)[:, None] * schedule.switches + local - unit
        return np.where(local < unit, place + local * inner, switch)

    columns = {key: np.broadcast_to(getattr(schedule, key), (place.size, schedule.rows)) for key in _CARRIED}
    columns |= {"source": node(schedule.source), "target": node(schedule.target)}
    first, count = schedule.first.astype(np.int64), schedule.count.astype(np.int64)
    if name == "all-to-all":
        # All blocks whose digit of this tier is in the range, whatever their other digits.
        prefix = np.arange(inner)[:, None, None] * (unit * outer)
        columns = {key: value[None] for key, value in columns.items()}
        return rows(first=prefix + first * outer, count=count * outer, **columns), place.size
    if name in ("gather", "scatter"):
        # Chunk r is rank r's.
        return rows(first=place + first * inner, count=count * inner, **columns), place.size
    nested = not rooted and name != "barrier"
    extent = chunks // inner if nested else chunks
    scale = extent // schedule.chunks
    base = _reversed_digits(place % inner, units[:tier][::-1]) * extent if nested else 0 * place
    ends = first * scale + count * scale
    over = np.maximum(ends - extent, 0)
    block = rows(first=base + first * scale, count=count * scale - over, **columns)
    if not np.any(over):
        return block, place.size
    # A range that wraps round its part goes on at the part's beginning.
    wraps = np.broadcast_to(over > 0, columns["round"].shape).reshape(-1)
    rest = rows(first=base, count=np.maximum(over, 1), **columns)
    return {key: np.concatenate([block[key], rest[key][wraps]]) for key in block}, place.size


def _canonical(schedule: Schedule) -> Schedule:
    """Chunks renumbered so that those of rank 0 come first, then those of rank 1, and so on."""
    owner = schedule.owner
    if owner is None or np.all(np.diff(owner) >= 0):
        return schedule
    number = np.empty(schedule.chunks, np.int64)
    number[np.argsort(owner, kind="stable")] = np.arange(schedule.chunks)
    # Ranges come apart.
    row = np.repeat(np.arange(schedule.rows), schedule.count)
    offset = np.arange(row.size) - np.repeat(np.cumsum(schedule.count) - schedule.count, schedule.count)
    chunk = number[(schedule.first[row] + offset) % schedule.chunks]
    names = ("round", "slot", "source", "target", *_CARRIED[2:])
    columns = {name: getattr(schedule, name)[row] for name in names}
    columns |= {"first": chunk, "count": np.ones(chunk.size, np.int32), "owner": np.sort(owner)}
    return dataclasses.replace(schedule, **columns)
