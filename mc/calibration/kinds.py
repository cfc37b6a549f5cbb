"""What is known of a figure before anything is measured: its dimension, the space of its values, how far it may be off.

Dimension and space follow from the field of the configuration: a time is positive, a probability a share, a slowdown at least 1. How
far a figure may be off depends on its name: loose, a factor of about two, since a catalog knows hardware and not the
software on it; looser for noise, of which a file is a guess.
"""

from dataclasses import dataclass
from typing import Literal

from mc.calibration.errors import CalibrationError
from mc.config.figures import figure_at, marks_of, parent_of
from mc.config.quantities import Quantity
from mc.document import StrictModel
from mc.units import Dimension

Space = Literal["positive", "share", "factor", "simplex", "ordered"]


@dataclass(frozen=True)
class FigureKind:
    """What is known of a figure by its place alone.

    Attributes:
        dimension: for printing.
        space: of its values: `factor` for those from 1 up.
        spread: of the prior, a standard deviation of the logarithm, of the log-odds, or of the logarithm of what is beyond 1.
    """

    dimension: Dimension
    space: Space
    spread: float


_SPREADS = {
    # Nameplates are seldom wrong; what is reached of them is the efficiency.
    "bandwidth": 0.3,
    "channel_bandwidth": 0.5,
    # How a library cuts messages into channels is in its source; data between two sizes would bend it at will.
    "channel_size": 0.2,
    "channel_size_per_rank": 0.2,
    "reduction_buffer": 0.2,
    "oversubscription": 0.5,
    "links_per_rank": 0.5,
}
_BY_SPACE: dict[str, float] = {"positive": 0.7, "share": 0.7, "factor": 1.0}
# Below these keys figures are guesses.
_GUESSED, _GUESS = ("noise", "congestion", "jitter"), 1.5
# What decides how a thing is computed, and not how long it takes.
_FIXED = ("schema_version", "load", "persistence", "tail_fraction", "confidence", "memory_size")


def kind_at(config: StrictModel, path: str) -> FigureKind:
    """The kind of the figure at a path.

    Raises:
        PathError: nothing is there.
        CalibrationError: nothing that can be fitted is.
    """
    parent, key = parent_of(config, path)
    field = type(parent).model_fields.get(key)
    marks = [] if field is None else marks_of(field)
    quantity = next((each for each in marks if isinstance(each, Quantity)), None)
    if quantity is None or key in _FIXED:
        raise CalibrationError(
            f"{path}: expected a figure that can be fitted (a latency, bandwidth, efficiency, a figure of a delay, ...); got "
            "another"
        )
    space: Space = "positive"
    if any(getattr(each, "le", None) == 1 for each in marks):
        space = "share"
    elif any(getattr(each, "ge", None) == 1 for each in marks):
        space = "factor"
    guessed = any(each in path.split(".") for each in _GUESSED)
    spread = _SPREADS.get(key, _BY_SPACE[space])
    return FigureKind(quantity.dimension, space, _GUESS if guessed else spread)


def can_move(config: StrictModel, path: str) -> bool:
    """Whether the figure at a path can be fitted and is not where it has no effect: 0, or a slowdown by 1."""
    try:
        space = kind_at(config, path).space
    except CalibrationError:
        return False
    return figure_at(config, path) > (1 if space == "factor" else 0)
