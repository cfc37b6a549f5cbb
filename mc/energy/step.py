"""The energy of a step.

A chip draws its idle power all the time and its design power while it computes, its share of the host a constant. So in a step of T
seconds, of which it computes for C,

    chip = idle·T + (power − idle)·C,     host = host_power·T.

A bit over a link takes the link's energy per bit e, both ends; a module's counts a bit out and one in as one. Links are never
switched off, so a tier whose links carry W bytes out of each rank draws e·8·b·T, of which e·8·W go with bits and the
rest with waiting. A message over an outer tier passes the links of the tiers inside of it, down to the network card: W of a tier is
what crosses it and all tiers further out.

Networks of their own are the tiers whose links have `port_power`. Beside modules they have

    ports    one port of a switch for each link of the innermost of them, two for each further out (one below, one above)
    adapter  the network card, at the innermost of them

in so many links as a rank has there, b over the bandwidth of one. Links of all other tiers (NVLink, xGMI, PCIe) are driven by
the chips and switched in the hosts, whose powers have them already: their joules are shown and not added.

A facility takes `overhead` (PUE) times that: cooling, conversion. It has to feed what a cluster draws while all chips compute,
since the steps of a synchronous job swing together: idle and busy watts, C = T, hosts, networks (`design`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mc.config.cluster import ClusterConfig, TierConfig
from mc.errors import InputError

if TYPE_CHECKING:
    from mc.parallel import Traffic

_BITS = 8


class EnergyError(InputError):
    """A cluster whose powers are not known, or a budget that buys nothing."""


@dataclass(frozen=True)
class TierEnergy:
    """Joules of a rank in a step on one tier.

    Attributes:
        name: of the tier.
        bytes: that a rank sends over its links.
        moved: joules that go with these bits.
        waiting: joules of links and modules beyond that; None where chips and hosts have it.
        ports: of switches.
        adapter: of the network card.
        inside: whether the powers of chips and hosts have all of it.
    """

    name: str
    bytes: float
    moved: float
    waiting: float
    ports: float
    adapter: float
    inside: bool

    @property
    def total(self) -> float:
        """What it adds to chips and hosts."""
        return 0.0 if self.inside else self.moved + self.waiting + self.ports + self.adapter

    @property
    def static(self) -> float:
        """Of that, what it takes whether bits move or not."""
        return self.total if self.inside else self.waiting + self.ports + self.adapter


@dataclass(frozen=True)
class StepEnergy:
    """Joules of a step.

    Attributes:
        ranks: how many.
        seconds: of the step.
        computing: seconds of it that a chip computes.
        flop: that a rank executes.
        tokens: of all ranks.
        idle: joules of a chip at its idle power.
        busy: joules of a chip beyond that.
        host: joules of a chip's share of its host.
        tiers: innermost first.
    """

    ranks: int
    seconds: float
    computing: float
    flop: float
    tokens: float
    idle: float
    busy: float
    host: float
    tiers: tuple[TierEnergy, ...]

    @property
    def network(self) -> float:
        """Joules of a rank's networks."""
        return sum(tier.total for tier in self.tiers)

    @property
    def per_rank(self) -> float:
        """Joules of a rank, in all."""
        return self.idle + self.busy + self.host + self.network

    @property
    def total(self) -> float:
        """Joules of all ranks."""
        return self.ranks * self.per_rank

    @property
    def watts_per_rank(self) -> float:
        """Mean power of a rank."""
        return self.per_rank / self.seconds

    @property
    def tokens_per_joule(self) -> float:
        """Without the facility's overhead."""
        return self.tokens / self.total

    @property
    def joules_per_flop(self) -> float:
        """What computing takes beyond idling, for each FLOP."""
        return self.busy / self.flop


@dataclass(frozen=True)
class Facility:
    """A site.

    Attributes:
        budget: watts from the grid.
        overhead: of the facility over its computers (PUE), at least 1.
    """

    budget: float
    overhead: float

    def __post_init__(self):
        """A positive budget, and an overhead of at least 1."""
        if not self.budget > 0:
            raise EnergyError(f"budget: expected a power > 0; got {self.budget:g}")
        if not self.overhead >= 1:
            raise EnergyError(f"pue: expected a number >= 1; got {self.overhead:g}")

    def share(self, energy: StepEnergy) -> float:
        """Of the budget, what a job draws."""
        return energy.ranks * energy.watts_per_rank * self.overhead / self.budget


def chips_within(facility: Facility, watts_per_rank: float, replica: int) -> int:
    """The most chips in whole replicas that a facility feeds; 0 if it feeds not even one."""
    return int(facility.budget / (watts_per_rank * facility.overhead) / replica) * replica


def design(cluster: ClusterConfig, ranks: int = 1) -> StepEnergy:
    """A second in which so many chips compute throughout: what a facility has to feed.

    Raises:
        EnergyError: as `step_energy`.
    """
    return step_energy(cluster, (), ranks=ranks, seconds=1.0, computing=1.0, flop=1.0, tokens=0.0)


def step_energy(
    cluster: ClusterConfig,
    sent: "Sequence[Traffic]",
    *,
    ranks: int,
    seconds: float,
    computing: float,
    flop: float,
    tokens: float,
) -> StepEnergy:
    """The energy of a step.

    Args:
        cluster: whose chip and links are known to the last watt.
        sent: what ranks send, by tier.
        ranks: how many take part.
        seconds: of the step.
        computing: seconds of it that a chip computes.
        flop: that a rank executes.
        tokens: of all ranks.

    Raises:
        EnergyError: the cluster lacks a power or an energy.
    """
    chip = cluster.chip
    if chip.power is None or chip.idle_power is None or chip.host_power is None:
        missing = [name for name in ("power", "idle_power", "host_power") if getattr(chip, name) is None]
        raise EnergyError(
            "".join(
                f"cluster.chip.{name}: expected a power, such as 500 W; got none\n" for name in missing
            ).rstrip()
        )
    if chip.idle_power > chip.power:
        raise EnergyError(
            f"cluster.chip.idle_power: expected at most the power, {chip.power:g} W; got {chip.idle_power:g} W"
        )
    return StepEnergy(
        ranks,
        seconds,
        computing,
        flop,
        tokens,
        idle=chip.idle_power * seconds,
        busy=(chip.power - chip.idle_power) * computing,
        host=chip.host_power * seconds,
        tiers=_tiers(cluster.tiers, sent, seconds),
    )


def _tiers(tiers: Sequence[TierConfig], sent: "Sequence[Traffic]", seconds: float) -> tuple[TierEnergy, ...]:
    crossing = [sum(each.mean_bytes for each in sent if each.tier == tier) for tier in range(len(tiers))]
    found, inner = [], False
    for index, tier in enumerate(tiers):
        own = tier.link.port_power is not None
        # What goes further out leaves by the links of a network's inner tiers.
        passing = sum(crossing[index:]) if own else crossing[index]
        if tier.link.energy is None:
            raise EnergyError(
                f"cluster.tiers.{index}.link.energy: expected an energy, such as 40 pJ/bit; got none"
            )
        found.append(_tier(tier, tier.link.energy, passing, seconds, first=own and not inner))
        inner = inner or own
    return tuple(found)


def _tier(tier: TierConfig, energy: float, passing: float, seconds: float, *, first: bool) -> TierEnergy:
    link = tier.link
    moved = energy * _BITS * passing
    if link.port_power is None:
        return TierEnergy(tier.name, passing, moved, 0.0, 0.0, 0.0, inside=True)
    bandwidth = tier.bandwidth_per_rank
    links = bandwidth / link.bandwidth_per_direction
    always = energy * _BITS * bandwidth * seconds
    ports = (1 if first else 2) * links * link.port_power * seconds
    adapter = links * link.adapter_power * seconds if first and link.adapter_power is not None else 0.0
    return TierEnergy(tier.name, passing, moved, max(always - moved, 0.0), ports, adapter, inside=False)
