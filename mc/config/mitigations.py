"""Mitigations: what a job does about stragglers, as switches that are all off unless a file turns them on.

Who waits for whom: ranks at the barrier of a model that computes and then exchanges; data-parallel replicas of a
transformer, where gradients are reduced. Both are *workers* here. What the switches do to a step is in `docs/mitigations.md`;
which chips they take, in `ExperimentConfig`.
"""

import math
from fractions import Fraction
from typing import Annotated, Any

from pydantic import Field, model_validator
from pydantic.functional_validators import BeforeValidator
from pydantic.json_schema import WithJsonSchema

from mc.document import StrictModel, located
from mc.units import Dimension, parse


def _number_or_share(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"expected a whole number, or a part such as 0.5 %; got {_shown(value)}")
    if isinstance(value, int):
        if value < 1:
            raise ValueError(
                f"expected a whole number of at least 1, or a part such as 0.5 %; got {value}: leave it out for none"
            )
        return value
    share = parse(value, Dimension.RATIO)
    if not 0 < share < 1:
        raise ValueError(f"expected more than 0 % and less than 100 %, or a whole number; got {value}")
    return share


def _shown(value: Any) -> str:
    return "a collection" if isinstance(value, dict | list) else repr(value)


# So many, or a part of all.
Some = Annotated[
    int | float,
    BeforeValidator(_number_or_share),
    WithJsonSchema(
        {
            "description": "A whole number, or a part of all, such as 0.5 %.",
            "anyOf": [
                {"type": "integer", "minimum": 1},
                {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
                {"type": "string", "pattern": r"^[+]?([0-9]+\.?[0-9]*|\.[0-9]+)\s*%$", "examples": ["0.5 %"]},
            ],
        }
    ),
]
Switch = Annotated[int, Field(ge=1)]


class MitigationsConfig(StrictModel):
    """What is done about stragglers.

    Attributes:
        drop_slowest: in each step, nobody waits for so many of the workers, and their samples are lost.
        backup_workers: so many workers more than needed start each step; it goes on when as many as needed are done.
        local_steps: steps that workers take on their own before they exchange (local SGD).
        delayed_sync: an exchange may be late by so many steps, which go on meanwhile with what was there before.
        remove_slowest: chips that are taken out before the run, those that a burn-in found slowest.
        hot_spares: chips that stand by for those that fail.
    """

    drop_slowest: Some | None = None
    backup_workers: Switch | None = None
    local_steps: Annotated[int, Field(ge=2, le=4096)] | None = None
    delayed_sync: Annotated[int, Field(ge=1, le=64)] | None = None
    remove_slowest: Some | None = None
    hot_spares: Switch | None = None

    @model_validator(mode="after")
    def _agree(self) -> "MitigationsConfig":
        found = []
        if self.drop_slowest is not None and self.backup_workers is not None:
            text = "expected none with `drop_slowest`, since both say how many workers nobody waits for"
            found.append((("backup_workers",), text))
        if self.delayed_sync is not None:
            for name in ("drop_slowest", "backup_workers"):
                if getattr(self, name) is not None:
                    text = (
                        f"expected none with `{name}`, since what is dropped at an exchange never comes late"
                    )
                    found.append((("delayed_sync",), text))
        if found:
            raise located("MitigationsConfig", found)
        return self

    @property
    def is_any(self) -> bool:
        """Whether any switch is on."""
        return any(getattr(self, name) is not None for name in type(self).model_fields)

    @property
    def steps(self) -> int:
        """Steps from one exchange to the next."""
        return self.local_steps or 1

    @property
    def staleness(self) -> int:
        """By how many an exchange may be late."""
        return self.delayed_sync or 0

    @property
    def backups(self) -> int:
        """Workers beyond those that are needed."""
        return self.backup_workers or 0

    @property
    def spares(self) -> int:
        """Chips that stand by."""
        return self.hot_spares or 0

    def dropped(self, workers: int) -> int:
        """How many of so many workers that are needed nobody waits for; those beyond them not counted."""
        return part_of(self.drop_slowest, workers)

    def removed_from(self, chips: int) -> int:
        """How many chips are taken out of so many."""
        return part_of(self.remove_slowest, chips)

    def removed_for(self, chips: int) -> int:
        """How many are taken out where so many are to be left."""
        if not isinstance(self.remove_slowest, float):
            return self.remove_slowest or 0
        # The fewest chips of which so many are left when the part of them is gone.
        tested = math.ceil(chips / (1 - Fraction(str(self.remove_slowest))))
        while tested - part_of(self.remove_slowest, tested) > chips:
            tested -= 1
        return tested - chips


def part_of(some: int | float | None, number: int) -> int:
    """A number, or the whole part of a share of `number`."""
    if isinstance(some, float):
        # As it was written: 0.5 % of 200 is 1, whatever the float is.
        return math.floor(Fraction(str(some)) * number)
    return some or 0
