"""What a fit may change: numbers of a configuration, each in a space without borders and with a prior.

A positive number is fitted as its logarithm, a share as its log-odds, each in units of the prior's standard
deviation there, so a fit sees standard normal coordinates z: value = exp(log m + s·z), or 1/(1 + exp(−(logit m + s·z))).
The prior's centre m is what the configuration says; its spread s depends on the kind of figure: loose, a factor of about two,
since a catalog knows hardware and not the software on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from mc.calibration.paths import CalibrationError, replaced, value_at
from mc.document import StrictModel
from mc.units import Dimension

Model = TypeVar("Model", bound=StrictModel)
Space = Literal["positive", "share"]
# How far a share may be from 0 and 1 at the start; at the border there is no slope.
_EDGE = 0.02


@dataclass(frozen=True)
class FigureKind:
    """What is known of a figure by its name alone.

    Attributes:
        dimension: for printing.
        space: of its values.
        spread: of the prior, a standard deviation of the logarithm or the log-odds.
    """

    dimension: Dimension
    space: Space
    spread: float


_TIME = FigureKind(Dimension.TIME, "positive", 0.7)
_LIMIT = FigureKind(Dimension.BANDWIDTH, "positive", 0.7)
# How a library cuts messages into channels is in its source; data between two sizes would bend it at will.
_CHANNEL = FigureKind(Dimension.SIZE, "positive", 0.2)
_RATIO = FigureKind(Dimension.RATIO, "positive", 0.5)
KINDS = {
    "latency": _TIME,
    "base_latency": _TIME,
    "hop_latency": _TIME,
    "inner_hop_latency": _TIME,
    "efficiency": FigureKind(Dimension.RATIO, "share", 0.7),
    # Nameplates are seldom wrong; what is reached of them is the efficiency.
    "bandwidth": FigureKind(Dimension.BANDWIDTH, "positive", 0.3),
    "bandwidth_cap": _LIMIT,
    "channel_bandwidth": FigureKind(Dimension.BANDWIDTH, "positive", 0.5),
    "channel_size": _CHANNEL,
    "channel_size_per_rank": _CHANNEL,
    "reduction_buffer": _CHANNEL,
    "oversubscription": _RATIO,
    "links_per_rank": _RATIO,
}


@dataclass(frozen=True)
class Parameter:
    """A number that a fit may change, in one place of a configuration or in several.

    Attributes:
        paths: where it stands; all places get the same value.
        center: of the prior, and where the first descent starts.
        spread: of the prior: standard deviation of the logarithm or the log-odds.
        space: of its values.
        dimension: for printing.
    """

    paths: tuple[str, ...]
    center: float
    spread: float
    space: Space
    dimension: Dimension

    @property
    def name(self) -> str:
        """What to call it: its path, with `*` for what differs between several."""
        split = [path.split(".") for path in self.paths]
        return ".".join(keys[0] if len(set(keys)) == 1 else "*" for keys in zip(*split, strict=True))


def short_name(parameter: Parameter) -> str:
    """The path without what says nothing new: `node: LL tree hop_latency`."""
    keys = parameter.name.split(".")
    if keys[0] != "tiers" or len(keys) < 3:
        return parameter.name
    rest = [key for key in keys[2:] if key not in ("link", "protocols")]
    return f"{'all tiers' if keys[1] == '*' else keys[1]}: {' '.join(rest)}"


def dimension_of(path: str) -> Dimension:
    """The dimension of the figure at a path, by its name; raises CalibrationError if it cannot be fitted."""
    return _kind_of(path).dimension


def _kind_of(path: str) -> FigureKind:
    kind = KINDS.get(path.rsplit(".", 1)[-1])
    if kind is None:
        raise CalibrationError(
            f"{path}: expected a figure that can be fitted ({', '.join(KINDS)}); got another"
        )
    return kind


def parameter_at(
    config: StrictModel,
    paths: str | Sequence[str],
    *,
    center: float | None = None,
    spread: float | None = None,
) -> Parameter:
    """The parameter at some paths of a configuration, with the prior that its kind has.

    Args:
        config: where it stands.
        paths: one, or several that share a value.
        center: of the prior; what the first path says by default.
        spread: of the prior; what its kind has by default.

    Raises:
        CalibrationError: nothing fittable is there.
    """
    paths = (paths,) if isinstance(paths, str) else tuple(paths)
    values = [value_at(config, path) for path in paths]
    kind = _kind_of(paths[0])
    middle = values[0] if center is None else center
    if not middle > 0 or (kind.space == "share" and middle > 1):
        raise CalibrationError(
            f"{paths[0]}: expected a prior above 0{' and up to 1' if kind.space == 'share' else ''}; "
            f"got {middle:g}, so give it one"
        )
    if spread is not None and not spread > 0:
        raise CalibrationError(f"{paths[0]}: expected a spread above 0; got {spread:g}")
    return Parameter(paths, middle, kind.spread if spread is None else spread, kind.space, kind.dimension)


@dataclass(frozen=True)
class Parameters:
    """All that a fit changes.

    Attributes:
        items: at least one; no path twice.
    """

    items: tuple[Parameter, ...]

    def __post_init__(self) -> None:
        paths = [path for each in self.items for path in each.paths]
        again = [path for place, path in enumerate(paths) if path in paths[:place]]
        if again:
            raise CalibrationError(f"{again[0]}: expected each free parameter once; got it twice")
        if not paths:
            raise CalibrationError("expected at least one free parameter; got none")

    def __len__(self) -> int:
        return len(self.items)

    def values(self, z: Float[Array, "*batch parameters"]) -> Float[Array, "*batch parameters"]:
        """Values for standardised coordinates; traceable."""
        centers, spreads, shares = (
            jnp.broadcast_to(each, jnp.shape(z)) for each in (self._centers, self._spreads, self._shares)
        )
        moved = centers + spreads * z
        return jnp.where(shares, jax.nn.sigmoid(moved), jnp.exp(jnp.where(shares, 0.0, moved)))

    def into(self, config: Model, z: Float[Array, " parameters"]) -> Model:
        """The configuration with these coordinates' values, traced where they are."""
        return self._into(config, list(self.values(z)))

    def settled(self, config: Model, z: NDArray[np.float64]) -> Model:
        """The same with plain numbers, validated."""
        found = self._into(config, [float(f"{each:.6g}") for each in np.asarray(self.values(jnp.asarray(z)))])
        return type(config).model_validate(found.model_dump(mode="json", exclude_none=True))

    def _into(self, config: Model, values: list[Any]) -> Model:
        pairs = zip(self.items, values, strict=True)
        return replaced(config, {path: value for each, value in pairs for path in each.paths})

    @property
    def _shares(self) -> NDArray[np.bool_]:
        return np.array([each.space == "share" for each in self.items])

    @property
    def _centers(self) -> NDArray[np.float64]:
        found = []
        for each in self.items:
            share = min(max(each.center, _EDGE), 1 - _EDGE)
            found.append(np.log(share / (1 - share)) if each.space == "share" else np.log(each.center))
        return np.array(found)

    @property
    def _spreads(self) -> NDArray[np.float64]:
        return np.array([each.spread for each in self.items])
