"""How far a forecast may be off because the figures of its cluster are not known exactly."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class ModelIntervals:
    """Intervals of a forecast over what a calibration left unknown; sampling is not in them.

    Attributes:
        source: of the posterior, for people.
        figures: how many are uncertain.
        draws: of all of them.
        level: of the intervals.
        ends: seconds, by the name of what was estimated.
        method: how steps were made for each draw: `drawn`, or `shifted` by what a step without noise changes.
    """

    source: str
    figures: int
    draws: int
    level: float
    ends: Mapping[str, tuple[float, float]]
    method: str

    @property
    def matters(self) -> bool:
        """Whether any figure that is uncertain matters to the step."""
        return any(low != high for low, high in self.ends.values())


def model_to_json(model: ModelIntervals) -> dict[str, Any]:
    """As plain data."""
    return {**asdict(model), "ends": {name: list(ends) for name, ends in model.ends.items()}}


def model_from_json(found: Mapping[str, Any]) -> ModelIntervals:
    """From plain data."""
    return ModelIntervals(
        **{**found, "ends": {name: (low, high) for name, (low, high) in found["ends"].items()}}
    )
