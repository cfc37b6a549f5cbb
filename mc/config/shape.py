"""The shape of a tier: which links join its units.

A link states what one rank has in one direction with all its links of the tier together. Behind switches it
can use all of that towards anybody, which is what a tier without a shape does. Grids of chips are written as
their makers write them: `dims: 4x4x8` is `dims: [4, 4, 8]`.
"""

import math
import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from mc.config.quantities import Slowdown
from mc.document import StrictModel, located

KINDS = ("switched", "fully-connected", "torus", "tree")
_DIMS = re.compile(r"[0-9]+([x×][0-9]+)*")


def _read_dims(value: Any) -> Any:
    if isinstance(value, str) and _DIMS.fullmatch(value.strip()):
        return [int(each) for each in re.split("[x×]", value.strip())]
    return [value] if isinstance(value, int) and not isinstance(value, bool) else value


def _read_kind(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


Extent = Annotated[int, Field(ge=1)]


class SwitchedConfig(StrictModel):
    """Switches join all units at full bandwidth."""

    kind: Literal["switched"]

    @property
    def size(self) -> int | None:
        """How many units it joins; None for any number."""
        return None


class FullyConnectedConfig(StrictModel):
    """Each pair of units has a link of its own, an equal part of what a rank has."""

    kind: Literal["fully-connected"]

    @property
    def size(self) -> int | None:
        """How many units it joins; None for any number."""
        return None


class TorusConfig(StrictModel):
    """A grid of units with links to their neighbours.

    Attributes:
        dims: extent of each dimension; units are numbered along the first one first.
        wrap: whether the ends of a dimension are joined, for all or for each; by default all that have more
            than two units. In a dimension of two, it is a second link between them.
        links: links of a rank, which share its bandwidth equally; two per dimension by default.
    """

    kind: Literal["torus"]
    dims: Annotated[
        tuple[Extent, ...], Field(strict=False, min_length=1), BeforeValidator(_read_dims, str | list[Extent])
    ]
    wrap: bool | Annotated[tuple[bool, ...], Field(strict=False)] | None = None
    links: Annotated[int, Field(ge=1)] | None = None

    @property
    def size(self) -> int:
        """How many units it joins."""
        return math.prod(self.dims)

    @property
    def wraps(self) -> tuple[bool, ...]:
        """For each dimension whether its ends are joined."""
        if self.wrap is None:
            return tuple(extent > 2 for extent in self.dims)
        return (self.wrap,) * len(self.dims) if isinstance(self.wrap, bool) else self.wrap

    @model_validator(mode="after")
    def _check(self) -> "TorusConfig":
        if len(self.wraps) != len(self.dims):
            text = f"expected true, false, or one of them for each of {len(self.dims)} dimensions; got {len(self.wraps)}"
            raise located("TorusConfig", [(("wrap",), text)])
        needed = sum(
            0 if extent == 1 else 1 if extent == 2 and not wrap else 2
            for extent, wrap in zip(self.dims, self.wraps, strict=True)
        )
        if self.links is not None and self.links < needed:
            text = f"expected at least {needed}, the links that a unit of this grid uses; got {self.links}"
            raise located("TorusConfig", [(("links",), text)])
        return self


class LevelConfig(StrictModel):
    """One level of switches in a tree.

    Attributes:
        fan_out: how many units, or switches of the level below, one switch joins.
        oversubscription: what comes in from below over what leads up.
    """

    fan_out: Extent
    oversubscription: Slowdown = 1.0


class TreeConfig(StrictModel):
    """Levels of switches, lowest first, each with less bandwidth up than down."""

    kind: Literal["tree"]
    levels: Annotated[tuple[LevelConfig, ...], Field(strict=False, min_length=1)]

    @property
    def size(self) -> int:
        """How many units it joins."""
        return math.prod(level.fan_out for level in self.levels)

    @model_validator(mode="after")
    def _check(self) -> "TreeConfig":
        if self.levels[-1].oversubscription != 1:
            text = (
                f"expected no oversubscription of the top level, which leads nowhere; "
                f"got {self.levels[-1].oversubscription:g}"
            )
            raise located("TreeConfig", [(("levels", len(self.levels) - 1, "oversubscription"), text)])
        return self


ShapeConfig = Annotated[
    Annotated[SwitchedConfig | FullyConnectedConfig | TorusConfig | TreeConfig, Field(discriminator="kind")],
    BeforeValidator(_read_kind),
]
