"""Each medium at a lane rate: energy per bit of a link by length, reach, and the length at which copper hands over.

A link takes two transceivers and two ends of its medium, so per bit in either direction

    passive copper          2·(base + slope·(host + cable(L)))
    cable, optics           2·(base + slope·host_loss) + 2·end

where only passive copper depends on the length. It hands over where its reach ends, or before, where

    L = ((E/2 − base)/slope − host − connectors)/α

is the length at which it takes as much as a medium of E joules per bit.

Intervals hold 90 % of what comes out if every figure with a range is drawn from it independently, uniformly in its logarithm: low
and high are a guess of what is possible, so the interval is one of judgement, not of sampling. The draws are a Sobol
sequence, the same each time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import qmc

from mc.catalog.media import LaneFigures, MediumFigures, RangedFigure, media
from mc.errors import InputError
from mc.optics.channel import Channel

_LEVELS = (0.05, 0.95)
_POINTS = 12  # of the Sobol sequence, as a power of 2
_CHANNEL = ("crowding", "permittivity", "loss_tangent", "connector", "serdes_base", "serdes_slope")


class OpticsError(InputError):
    """A lane rate or a medium that the catalog has not."""


class Interval(NamedTuple):
    """A number with its interval of 90 %."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Medium:
    """A medium at a lane rate; joules per bit of a link with both ends.

    Attributes:
        id: of the catalog.
        name: in full.
        kind: passive, cable or optics.
        rate: of a lane, bits/s.
        energy: at `length`; None where it does not reach.
        reach: metres.
        length: that the energy is for.
        crossover: metres up to which passive copper reaches and takes less; None for passive copper itself.
        mtbf: seconds between failures of a link.
        is_estimate: whether the energy of its ends is nobody's published figure at this rate.
    """

    id: str
    name: str
    kind: str
    rate: float
    energy: Interval | None
    reach: Interval
    length: float
    crossover: Interval | None
    mtbf: Interval
    is_estimate: bool


def compare(rate: float, length: float = 1.0) -> tuple[Medium, ...]:
    """All media at a lane rate, bits/s, for links of so many metres.

    Raises:
        OpticsError: the catalog has no such rate, or the length is not positive.
    """
    if not length > 0:
        raise OpticsError(f"length: expected metres > 0; got {length:g}")
    lane = _lane(rate)
    return tuple(_medium(each, lane, length) for each in media().media)


def passive_reach(rate: float, *, thin: bool = False) -> Interval:
    """Metres that passive copper reaches at a lane rate, bits/s, in thick or in thin wire."""
    lane = _lane(rate)
    return _both(
        lambda drawn: _channel(drawn, thin=thin).reach(drawn.of("nyquist"), drawn.of("budget")), lane
    )


def crossover(rate: float, medium: str) -> Interval:
    """Metres up to which passive copper reaches and takes less energy than a medium.

    Raises:
        OpticsError: there is no such rate, or no such medium.
    """
    known = {each.id: each for each in media().media if each.kind != "passive"}
    if medium not in known:
        raise OpticsError(f"expected one of {', '.join(known)}; got `{medium}`")
    return _both(_crossover, _lane(rate), known[medium])


class _Drawn:
    """Values of all figures: their own, or draws from their ranges."""

    def __init__(self, figures: dict[str, RangedFigure], draws: np.ndarray | None):
        self._values = {
            name: figure.value
            if draws is None
            else np.exp(np.log(figure.low) + draws[:, place] * np.log(figure.high / figure.low))
            for place, (name, figure) in enumerate(figures.items())
        }

    def of(self, name: str) -> Any:
        """The value of a figure."""
        return self._values[name]


def _figures(lane: LaneFigures, medium: MediumFigures | None) -> dict[str, RangedFigure]:
    channel = media().channel
    found = {name: getattr(channel, name) for name in _CHANNEL}
    found |= {"nyquist": lane.nyquist, "budget": lane.budget, "host": lane.host}
    if medium is not None and medium.host_loss is not None:
        found |= {"host_loss": medium.host_loss, "end": medium.energy_of_end(lane.rate)}
    return found


def _both(compute: Any, lane: LaneFigures, medium: MediumFigures | None = None) -> Interval:
    figures = _figures(lane, medium)
    value = float(compute(_Drawn(figures, None)))
    low, high = np.quantile(compute(_Drawn(figures, _draws(len(figures)))), _LEVELS)
    return Interval(value, float(low), float(high))


@lru_cache(maxsize=8)
def _draws(figures: int) -> np.ndarray:
    return qmc.Sobol(figures, rng=np.random.default_rng(0)).random_base2(_POINTS)


def _channel(drawn: _Drawn, *, thin: bool = False) -> Channel:
    channel = media().channel
    return Channel(
        (channel.thin if thin else channel.thick).value,
        channel.impedance.value,
        *(drawn.of(name) for name in _CHANNEL),
    )


def _passive(drawn: _Drawn, length: float) -> Any:
    channel = _channel(drawn)
    return 2 * channel.energy(drawn.of("host") + channel.assembly_loss(drawn.of("nyquist"), length))


def _active(drawn: _Drawn) -> Any:
    return 2 * _channel(drawn).energy(drawn.of("host_loss")) + 2 * drawn.of("end")


def _crossover(drawn: _Drawn) -> Any:
    channel, frequency = _channel(drawn), drawn.of("nyquist")
    borne = (_active(drawn) / 2 - channel.base) / channel.slope
    connectors = channel.assembly_loss(frequency, 0.0)
    alike = np.maximum(borne - drawn.of("host") - connectors, 0.0) / channel.loss_per_metre(frequency)
    return np.minimum(alike, channel.reach(frequency, drawn.of("budget")))


def _medium(medium: MediumFigures, lane: LaneFigures, length: float) -> Medium:
    mtbf = Interval(medium.mtbf.value, medium.mtbf.low, medium.mtbf.high)
    if medium.kind == "passive":
        reach = passive_reach(lane.rate)
        energy = _both(lambda drawn: _passive(drawn, length), lane) if length <= reach.value else None
        kind = (medium.id, medium.name, medium.kind)
        return Medium(*kind, lane.rate, energy, reach, length, None, mtbf, lane.budget.is_estimate)
    assert medium.reach is not None
    far = medium.reach.value
    reach = Interval(far, far, far)
    if medium.kind == "cable":
        reach = _both(lambda drawn: far * _relative_loss(drawn), lane, medium)
    energy = _both(_active, lane, medium) if length <= reach.value else None
    named = f"{lane.rate / 1e9:g} Gb/s"
    is_estimate = named not in medium.ends or medium.ends[named].is_estimate
    kind = (medium.id, medium.name, medium.kind)
    across = crossover(lane.rate, medium.id)
    return Medium(*kind, lane.rate, energy, reach, length, across, mtbf, is_estimate)


def _relative_loss(drawn: _Drawn) -> Any:
    """Loss of a metre at 100 Gb/s a lane, for which the reach of active cables is known, over that at this rate."""
    channel = _channel(drawn)
    known = _lane(100e9).nyquist.value
    return channel.loss_per_metre(known) / channel.loss_per_metre(drawn.of("nyquist"))


def _lane(rate: float) -> LaneFigures:
    lanes: Sequence[LaneFigures] = media().lanes
    for each in lanes:
        if abs(each.rate - rate) <= 1e-6 * rate:
            return each
    known = ", ".join(f"{each.rate / 1e9:g}" for each in lanes)
    raise OpticsError(f"expected a lane rate of {known} Gb/s; got {rate / 1e9:g}")
