"""Random link states: what the links of a tier may be in, and who sees it together."""

from typing import Annotated

from pydantic import Field, model_validator

from mc.config.checks import repeats, require_sum_of_one
from mc.config.quantities import Probability, Slowdown, Time
from mc.document import StrictModel, located

Name = Annotated[str, Field(min_length=1)]


class LinkStateConfig(StrictModel):
    """One state that a tier's links may be in.

    Transfer times are multiplied by `slowdown`, messages wait `delay` seconds longer.
    """

    name: Name
    probability: Probability
    slowdown: Slowdown = 1.0
    delay: Time = 0.0


class CongestionConfig(StrictModel):
    """Random link states.

    Attributes:
        shared_by: whose ranks see one state together: `rank` (each its own), the name of this or an inner
            tier, or `all`.
        states: with probabilities that add up to 1.
    """

    shared_by: Name
    states: Annotated[tuple[LinkStateConfig, ...], Field(strict=False, min_length=1)]

    @model_validator(mode="after")
    def _check_states(self) -> "CongestionConfig":
        again = repeats([state.name for state in self.states])
        if again:
            raise located(
                "CongestionConfig",
                [(("states", index, "name"), "this name is taken already") for index in again],
            )
        require_sum_of_one(self, "states", [state.probability for state in self.states])
        return self
