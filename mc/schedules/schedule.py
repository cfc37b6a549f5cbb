"""What a schedule is: the messages of a collective as arrays, and nothing about time.

One row is one piece of a message: a range of chunks that goes from one node to another in a round. Rounds are
what waits for what: a message reads its source as it was when the round began. Slots are the order in which a
node's port serves the messages of a round: in one slot a node sends at most one message and receives at most
one, which is checked here once, so that whoever executes a schedule may write all targets of a slot at once.

Ranges instead of lists of chunks keep recursive halving at one row per message: 4,096 ranks take 98,304 rows.
Rows are sorted by round, slot and source; since a source sends once per slot, the rows of a message are
neighbours.

Lanes keep apart streams in one node that wait for different things: the two directions of a ring, up and
down a pipelined tree. `docs/collectives.md` says how time is read off.
"""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from mc.errors import InputError

# Rows that are checked at once are limited by the table of nodes x slots that this takes (16 Mi entries).
_TABLE = 1 << 24

_DEFAULTS: dict[str, tuple[Any, Any]] = {
    "combine": (np.bool_, False),
    "source_lane": (np.int8, 0),
    "target_lane": (np.int8, 0),
    "cut_through": (np.bool_, False),
    "attached": (np.bool_, False),
    "port": (np.int8, 0),
}
_REQUIRED = ("round", "slot", "source", "target", "first", "count")


class ScheduleError(InputError):
    """A schedule cannot be built so."""


# Filled in by `__post_init__` with one value for all rows, which takes no memory.
_FILLED_IN: Any = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Schedule:
    """Messages of one collective among ranks 0 … ranks−1 and switches beyond them; root is rank 0.

    Attributes:
        collective: what it carries out.
        algorithm: how.
        ranks: peers that hold data.
        switches: nodes ranks … ranks+switches−1, which combine and copy; every input has a link of its own.
        chunks: equal parts that the buffer is cut into.
        round: int32[rows], from 0.
        slot: int32[rows], place in the round.
        source: int32[rows], node that sends.
        target: int32[rows], node that receives.
        first: int32[rows], first chunk of the piece.
        count: int32[rows], chunks in it: first … first+count−1, modulo `chunks`. They have the same numbers
            at the target.
        combine: bool[rows], the target combines them with its own; else they replace them.
        source_lane: int8[rows], lane of the source whose data are sent.
        target_lane: int8[rows], lane of the target that they arrive in.
        cut_through: bool[rows], the data stream on while they arrive: no time for their bytes.
        attached: bool[rows], hand-over between the root and the top switch, which counts as no hop: no
            latency.
        port: int8[rows], which of a node's links the message leaves and arrives through, where every
            direction of a ring or torus has its own; a machine with one port ignores it.
        piece_shares: float64[rows] in units of the buffer where pieces are not count/chunks; else None.
        lanes: how many.
        ports: how many.
        joins: rounds that begin with what all lanes of a node have waited for, between stages of a
            composition.
        rendezvous: a message waits for its target's previous round too (rounds); else only for its data and
            the ports (streams of pieces).
        owner: int32[chunks], the rank that a chunk belongs to where ranks have parts of the buffer:
            all-gather, reduce-scatter, gather, scatter; else None.
        units: ranks as digits, innermost first; (ranks,) unless composed. In an all-to-all chunk c goes as
            far as c says: to the rank whose digits are larger by those of c (`execute.py`).
        switch_tiers: int8[switches], tier that a switch is in, 0 innermost.
    """

    collective: str
    algorithm: str
    ranks: int
    chunks: int
    round: np.ndarray
    slot: np.ndarray
    source: np.ndarray
    target: np.ndarray
    first: np.ndarray
    count: np.ndarray
    combine: np.ndarray = _FILLED_IN
    source_lane: np.ndarray = _FILLED_IN
    target_lane: np.ndarray = _FILLED_IN
    cut_through: np.ndarray = _FILLED_IN
    attached: np.ndarray = _FILLED_IN
    port: np.ndarray = _FILLED_IN
    piece_shares: np.ndarray | None = None
    switches: int = 0
    lanes: int = 1
    ports: int = 1
    joins: tuple[int, ...] = ()
    rendezvous: bool = True
    owner: np.ndarray | None = None
    units: tuple[int, ...] = ()
    switch_tiers: np.ndarray | None = None

    def __post_init__(self):
        for name in _REQUIRED:
            self._set(name, np.asarray(getattr(self, name), np.int32))
        for name, (kind, default) in _DEFAULTS.items():
            value = getattr(self, name)
            self._fill(name, np.asarray(default if value is None else value, kind))
        if self.piece_shares is not None:
            self._fill("piece_shares", np.asarray(self.piece_shares, np.float64))
        if self.owner is not None:
            self._set("owner", np.asarray(self.owner, np.int32))
        if self.switch_tiers is None:
            object.__setattr__(self, "switch_tiers", np.zeros(self.switches, np.int8))
        if not self.units:
            object.__setattr__(self, "units", (self.ranks,))
        self._check_ranges()
        _check_ports(self)

    def _set(self, name: str, value: np.ndarray) -> None:
        view = value.view()
        view.flags.writeable = False
        object.__setattr__(self, name, view)

    def _fill(self, name: str, value: np.ndarray) -> None:
        if value.size != 1 and value.shape != self.round.shape:
            raise ScheduleError(f"{name}: expected one value per row, {self.rows} of them; got {value.shape}")
        self._set(name, np.broadcast_to(value, self.round.shape))

    @property
    def rows(self) -> int:
        """How many pieces there are."""
        return self.round.size

    @property
    def nodes(self) -> int:
        """Ranks and switches."""
        return self.ranks + self.switches

    @property
    def rounds(self) -> int:
        """One more than the last round; 0 without messages."""
        return int(self.round[-1]) + 1 if self.rows else 0

    @property
    def slots(self) -> int:
        """One more than the last slot; 0 without messages."""
        return int(self.slot.max()) + 1 if self.rows else 0

    @property
    def shares(self) -> np.ndarray:
        """float64[rows]: what a piece carries, in units of the buffer."""
        return self.count / self.chunks if self.piece_shares is None else self.piece_shares

    @property
    def starts(self) -> np.ndarray:
        """int64[messages]: the first row of each message; for `np.add.reduceat` over rows."""
        key = [self.round, self.slot, self.source]
        new = np.ones(self.rows, np.bool_)
        new[1:] = np.any([each[1:] != each[:-1] for each in key], axis=0)
        return np.flatnonzero(new)

    def _check_ranges(self) -> None:
        for name, least in (("ranks", 1), ("chunks", 1), ("switches", 0), ("lanes", 1), ("ports", 1)):
            value = getattr(self, name)
            if value < least:
                raise ScheduleError(f"{name}: expected a whole number >= {least}; got {value}")
        for name in _REQUIRED:
            value = getattr(self, name)
            if value.ndim != 1 or value.shape != self.round.shape:
                raise ScheduleError(
                    f"{name}: expected one value per row, {self.rows} of them; got {value.shape}"
                )
        if self.piece_shares is not None and not np.all(
            np.isfinite(self.piece_shares) & (self.piece_shares >= 0)
        ):
            raise ScheduleError("piece_shares: expected finite numbers >= 0; got others")
        if self.owner is not None and self.owner.shape != (self.chunks,):
            raise ScheduleError(f"owner: expected one rank per chunk; got shape {self.owner.shape}")
        if not self.rows:
            return
        bounds = {
            "round": (0, None),
            "slot": (0, None),
            "source": (0, self.nodes),
            "target": (0, self.nodes),
            "first": (0, self.chunks),
            "count": (1, self.chunks + 1),
            "source_lane": (0, self.lanes),
            "target_lane": (0, self.lanes),
            "port": (0, self.ports),
        }
        for name, (least, most) in bounds.items():
            value = getattr(self, name)
            low, high = int(value.min()), int(value.max())
            if low < least or (most is not None and high >= most):
                upper = "" if most is None else f" and < {most}"
                raise ScheduleError(f"{name}: expected numbers >= {least}{upper}; got {low} to {high}")
        if np.any(self.source == self.target):
            raise ScheduleError(
                "source: expected another node than the target; got a message of a node to itself"
            )


def _check_ports(schedule: Schedule) -> None:
    """One message out of and one into a node per slot, and rows in order."""
    if not schedule.rows:
        return
    place = schedule.round.astype(np.int64) * schedule.slots + schedule.slot
    step = np.diff(place)
    if np.any(step < 0) or np.any((step == 0) & (np.diff(schedule.source) < 0)):
        raise ScheduleError("rows: expected rows sorted by round, slot and source")
    # Groups of one round and slot are numbered, then checked so many at a time that the table is bounded.
    group = np.concatenate([[0], np.cumsum(step > 0)])
    lanes = schedule.source_lane.astype(np.int64) * schedule.lanes + schedule.target_lane
    at_once = max(1, _TABLE // schedule.nodes)
    cuts = np.searchsorted(group, np.arange(0, group[-1] + 1 + at_once, at_once))
    table = np.empty(min(at_once, int(group[-1]) + 1) * schedule.nodes, np.int64)
    for low, high in itertools.pairwise(cuts):
        part = slice(low, high)
        offset = (group[part] - group[low]) * schedule.nodes
        for one, other in ((schedule.source, schedule.target), (schedule.target, schedule.source)):
            key, wanted = offset + one[part], other[part] + schedule.nodes * lanes[part]
            # The last of several writes stays; a different one before it shows.
            table[key] = wanted
            clash = table[key] != wanted
            if np.any(clash):
                row = low + int(np.argmax(clash))
                verb = "sends" if one is schedule.source else "receives"
                raise ScheduleError(
                    f"slot: expected at most one message out of and into a node; node {one[row]} {verb} "
                    f"several in round {schedule.round[row]}, slot {schedule.slot[row]}"
                )
