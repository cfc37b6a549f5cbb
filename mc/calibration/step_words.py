"""What a fit of step times knows, in sentences."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mc.calibration.identify import Identified
from mc.calibration.parameters import Parameters, short_name
from mc.calibration.step_coordinates import StepCoordinates
from mc.calibration.step_valley import Valley, drawn_of
from mc.units import format_quantity

# Two figures are known together only where each is this much less known, and by no less than this.
_TOGETHER, _LOOSE = 0.35, 0.02
# A run has a slow chip if it is likelier than not.
_HALF = 0.5
_DRAWS = 4000


@dataclass(frozen=True)
class Told:
    """What of a fit is told; as `mc.calibration.step_fit.StepsFit` has it.

    Attributes:
        parameters: what was free.
        coordinates: of the descent.
        covariance: of the posterior.
        known: what the data tell apart.
        valleys: along the slowdown of slow chips.
        healthy: the greatest chance of a run that it has no slow chip.
        others: where other descents ended.
        taken: steps that were fitted or scored.
        measured: steps that there were.
    """

    parameters: Parameters
    coordinates: StepCoordinates
    covariance: NDArray[np.float64]
    known: Identified
    valleys: tuple[Valley, ...]
    healthy: float | None
    others: tuple[tuple[float, NDArray[np.float64]], ...]
    taken: int
    measured: int


def sentences_of(fit: Told) -> list[str]:
    """What the data tell apart and what they do not; which other figures would do; how many steps were taken."""
    names = [short_name(each) for each in fit.parameters.items]
    pairs, found = fit.known.pairs, []
    for place, sentence in _together(fit, names):
        found.append(sentence)
        pairs = tuple(each for each in pairs if {place, fit.coordinates.slowdown} != set(each[:2]))
    found += [_other(fit, less, z, names) for less, z in fit.others]
    if fit.taken < fit.measured:
        found.append(
            f"Of {fit.measured:,} steps {fit.taken:,} were taken, evenly spaced in each run: so many say what can be known, and the "
            "intervals are theirs."
        )
    return [*replace(fit.known, pairs=pairs).sentences(names), *found]


def _together(fit: Told, names: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Places of figures that are known with the slowdown better than alone, each with a sentence about it."""
    slow = fit.coordinates.slowdown
    if not fit.valleys or slow is None:
        return
    every = fit.healthy is not None and fit.healthy < _HALF
    where = "In these runs"
    if every:
        chance = f"chance of a run without one: {100 * (fit.healthy or 0.0):.2g} % at most"
        where = f"Every run has a slow chip that all others wait for ({chance}), so"
    scatter = drawn_of(fit.valleys, _DRAWS).std(axis=0)
    for place in fit.coordinates.moved:
        item = fit.parameters.items[place]
        alone = item.spread * float(np.sqrt(fit.covariance[place, place]))
        together = item.spread * float(scatter[place])
        if not every and not (together < _TOGETHER * alone and alone > _LOOSE):
            continue
        what = "ratio" if item.space == "share" else "product"
        rest = "Runs on fewer ranks, some of them without a slow chip, tell the two apart."
        if together >= alone:
            rest = "The other figures tell the two apart."
        yield (
            place,
            f"{where} the {what} of {names[place]} and {names[slow]} is known to {100 * together:.2g} %, each alone to "
            f"{100 * alone:.2g} %. {rest}",
        )


def _other(fit: Told, less: float, z: NDArray[np.float64], names: Sequence[str]) -> str:
    with jax.enable_x64(True):
        values = np.asarray(fit.parameters.values(jnp.asarray(z))).tolist()
    figures = ", ".join(
        f"{name} {format_quantity(value, each.dimension, digits=3)}"
        for name, value, each in zip(names, values, fit.parameters.items, strict=True)
    )
    return (
        f"Other figures are nearly as likely, by a factor of {np.exp(-less):.2g}: {figures}. They lie apart from those above"
        f"{', and the intervals are of both.' if fit.valleys else '; the intervals are those around the best alone, and too narrow.'}"
    )
