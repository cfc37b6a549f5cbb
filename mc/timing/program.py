"""A schedule made ready for the executor: what each node receives in each step, as dense arrays.

A step is one slot of one round. In it a node receives one message at most, so the state of all nodes advances
by one gather: each node looks up who sends to it. Many steps are alike (a ring repeats one for ever), so
the distinct ones, the *patterns*, are kept once and steps point to them.

Nodes are ranks and switches, once per lane; ports belong to ranks. Where no port can ever be the last thing a
message waits for, which is so for rings and exchanges, ports are left out.
"""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from numpy.typing import NDArray

from mc.schedules.schedule import Schedule

# (sources, targets) of messages -> one number for each.
OfPair = Callable[[NDArray[np.int_], NDArray[np.int_]], NDArray[np.generic]]


class Pattern(eqx.Module):
    """What every node receives in a step; with a leading axis, in each of several kinds of steps.

    A *node* is lane · (ranks + switches) + peer.

    Attributes:
        source: node that sends; the receiving node itself where there is no message.
        active: whether there is a message.
        share: bytes that hold the ports, in multiples of the size.
        combined: bytes to be combined, likewise.
        hops: latencies that the message pays.
        tier: that the message crosses.
        out_port: port it leaves by; the last one, which is always free, for switches.
        in_port: port it enters by; likewise.
        leaves: for each port, the node whose message leaves by it; −1 for none.
        enters: for each port, the node whose message enters by it; −1 for none.
    """

    source: Int[Array, "*patterns nodes"]
    active: Bool[Array, "*patterns nodes"]
    share: Float[Array, "*patterns nodes"]
    combined: Float[Array, "*patterns nodes"]
    hops: Float[Array, "*patterns nodes"]
    tier: Int[Array, "*patterns nodes"]
    out_port: Int[Array, "*patterns nodes"]
    in_port: Int[Array, "*patterns nodes"]
    leaves: Int[Array, "*patterns ports"]
    enters: Int[Array, "*patterns ports"]


class Program(eqx.Module):
    """What the executor runs. Make one with `program_of`.

    Attributes:
        ranks: peers that hold data.
        peers: ranks and switches.
        lanes: separate streams of data.
        rendezvous: whether a message waits for its target to finish the previous round.
        many_slots: whether a round has more than one slot.
        ports: whether ports can delay a message.
        tiers: how many tiers the messages know.
        pattern: which of the patterns each step follows.
        opens_round: whether the step is the first slot of its round.
        closes_round: whether it is the last.
        joins: whether the lanes of a node wait for each other before it; None if they never do.
        patterns: the distinct steps.
    """

    ranks: int = eqx.field(static=True)
    peers: int = eqx.field(static=True)
    lanes: int = eqx.field(static=True)
    rendezvous: bool = eqx.field(static=True)
    many_slots: bool = eqx.field(static=True)
    ports: bool = eqx.field(static=True)
    tiers: int = eqx.field(static=True)
    pattern: Int[Array, " steps"]
    opens_round: Bool[Array, " steps"]
    closes_round: Bool[Array, " steps"]
    joins: Bool[Array, " steps"] | None
    patterns: Pattern

    @property
    def nodes(self) -> int:
        """Receivers: peers, once per lane."""
        return self.lanes * self.peers

    @property
    def steps(self) -> int:
        """Slots of all rounds."""
        return self.pattern.shape[0]

    @property
    def updates(self) -> int:
        """Node updates that one sample takes: the work."""
        return self.steps * self.nodes


def program_of(
    schedule: Schedule,
    *,
    crossing: OfPair | None = None,
    of_round: NDArray[np.int_] | None = None,
    hops: OfPair | None = None,
    own_ports: bool = False,
) -> Program:
    """The program of a schedule.

    Args:
        schedule: what is sent.
        crossing: the tier that a message between two peers crosses, from 0; without it there is one tier.
        of_round: or the tier of each round, where rounds are what differs.
        hops: how many times a message between two peers pays the latency; once without it.
        own_ports: whether a rank has a link for each port that the schedule names, as the directions of a
            torus are, or one for all.
    """
    messages = _messages(schedule)
    peers, lanes = schedule.ranks + schedule.switches, schedule.lanes
    port_count = peers * (schedule.ports if own_ports else 1)
    count = messages.source.size
    tier = np.zeros(count, np.int32)
    if crossing is not None:
        tier = crossing(messages.source, messages.target)
    elif of_round is not None:
        tier = np.asarray(of_round)[messages.round]
    distance = np.ones(count) if hops is None else hops(messages.source, messages.target)
    distance = np.where(messages.attached, 0.0, distance)

    def port_of(peer: NDArray[np.int_]) -> NDArray[np.int_]:
        number = peer + (peers * messages.port if own_ports else 0)
        return np.where(peer < schedule.ranks, number, port_count)

    columns = np.stack(
        [
            messages.target_lane * peers + messages.target,
            messages.source_lane * peers + messages.source,
            port_of(messages.source),
            port_of(messages.target),
            np.asarray(tier, np.int64),
        ],
        axis=1,
    ).astype(np.int32)
    weights = np.stack([messages.share, messages.combined, distance], axis=1).astype(np.float32)

    first = np.flatnonzero(np.diff(messages.step, prepend=-1))
    bounds = np.append(first, count)
    pattern, chosen = _distinct(columns, weights, bounds)
    round_of = messages.round[first] if count else np.zeros(0, np.int64)
    new_round = np.diff(round_of, prepend=-1) != 0

    nodes, patterns = lanes * peers, len(chosen)
    source = np.tile(np.arange(nodes, dtype=np.int32), (patterns, 1))
    active = np.zeros((patterns, nodes), bool)
    share, combined, paid = (np.zeros((patterns, nodes), np.float32) for _ in range(3))
    paid[:] = 1.0
    tiers = np.zeros((patterns, nodes), np.int32)
    out_port, in_port = (np.full((patterns, nodes), port_count, np.int32) for _ in range(2))
    leaves, enters = (np.full((patterns, port_count + 1), -1, np.int32) for _ in range(2))
    for place, step in enumerate(chosen):
        rows = slice(bounds[step], bounds[step + 1])
        node, sender, leaving, entering, crossed = columns[rows].T
        source[place, node], active[place, node], tiers[place, node] = sender, True, crossed
        share[place, node], combined[place, node], paid[place, node] = weights[rows].T
        out_port[place, node], in_port[place, node] = leaving, entering
        leaves[place, leaving], enters[place, entering] = node, node
    # The port of switches is always free.
    leaves[:, port_count] = enters[:, port_count] = -1

    return Program(
        ranks=schedule.ranks,
        peers=peers,
        lanes=lanes,
        rendezvous=schedule.rendezvous,
        many_slots=bool((~new_round).any()),
        ports=_ports_matter(schedule, messages, many_slots=bool((~new_round).any())),
        tiers=int(tiers.max(initial=0)) + 1,
        pattern=_put(np.asarray(pattern, np.int32)),
        opens_round=_put(new_round),
        closes_round=_put(np.append(new_round[1:], True) if new_round.size else new_round),
        joins=_put(new_round & np.isin(round_of, schedule.joins)) if schedule.joins else None,
        patterns=Pattern(
            *map(
                _put,
                (source, active, share, combined, paid, tiers, out_port, in_port, leaves, enters),
            )
        ),
    )


def _put(values: NDArray[np.generic]) -> Array:
    # With its type said; without it JAX compiles a copy for each shape.
    return jnp.asarray(values, values.dtype)


class _Messages(eqx.Module):
    """Messages in the order of their steps; pieces that travel together are one."""

    round: NDArray[np.int64]
    step: NDArray[np.int64]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    source_lane: NDArray[np.int64]
    target_lane: NDArray[np.int64]
    port: NDArray[np.int64]
    attached: NDArray[np.bool_]
    share: NDArray[np.float64]
    combined: NDArray[np.float64]


def _messages(schedule: Schedule) -> _Messages:
    first = schedule.starts
    held = np.where(schedule.cut_through, 0.0, schedule.shares)
    place = schedule.round[first].astype(np.int64) * max(schedule.slots, 1) + schedule.slot[first]

    def head(column: NDArray[np.generic]) -> NDArray[np.int64]:
        return column[first].astype(np.int64)

    def total(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.add.reduceat(values, first) if first.size else np.zeros(0)

    return _Messages(
        round=head(schedule.round),
        step=np.cumsum(np.diff(place, prepend=-1) != 0) - 1,
        source=head(schedule.source),
        target=head(schedule.target),
        source_lane=head(schedule.source_lane),
        target_lane=head(schedule.target_lane),
        port=head(schedule.port),
        attached=schedule.attached[first],
        share=total(held),
        # Switches combine as data stream through.
        combined=total(np.where(schedule.combine & (schedule.target < schedule.ranks), held, 0.0)),
    )


def _distinct(
    columns: NDArray[np.int32], weights: NDArray[np.float32], bounds: NDArray[np.int_]
) -> tuple[list[int], list[int]]:
    """For each step the number of its pattern, and for each pattern a step that has it."""
    seen: dict[bytes, int] = {}
    pattern: list[int] = []
    chosen: list[int] = []
    for step in range(bounds.size - 1):
        rows = slice(bounds[step], bounds[step + 1])
        key = columns[rows].tobytes() + weights[rows].tobytes()
        if key not in seen:
            seen[key] = len(chosen)
            chosen.append(step)
        pattern.append(seen[key])
    return pattern, chosen


def _ports_matter(schedule: Schedule, messages: _Messages, *, many_slots: bool) -> bool:
    """Whether some message could find a port taken that the state of its ends does not tell of.

    It cannot where each rank always sends to the one target, which is not ready before it has received, nor
    in exchanges, where what comes back arrives later than what was sent has left.
    """
    if many_slots or not schedule.rendezvous or schedule.lanes > 1:
        return True
    order = np.lexsort((messages.round, messages.source))
    source, target = messages.source[order], messages.target[order]
    same_source = source[1:] == source[:-1]
    elsewhere = same_source & (target[1:] != target[:-1])
    if not elsewhere.any():
        return False
    # Every send is answered in its round by as long a message.
    wide = np.int64(schedule.ranks + schedule.switches + 1)
    there = (messages.round * wide + messages.source) * wide + messages.target
    back = (messages.round * wide + messages.target) * wide + messages.source
    by_there, by_back = np.argsort(there), np.argsort(back)
    answered = np.array_equal(there[by_there], back[by_back])
    return not (answered and np.allclose(messages.share[by_there], messages.share[by_back]))
