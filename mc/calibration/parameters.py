"""What a fit may change: numbers of a configuration, each in a space without borders and with a prior.

A fit sees standard normal coordinates z, one for each number, which `transforms.py` turns into figures that are positive, shares, at
least 1, parts of a whole or in order. The prior's centre is what the configuration says; how far it may be off depends on
the kind of figure (`kinds.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray
from scipy import stats

from mc.calibration.errors import CalibrationError
from mc.calibration.kinds import Space, kind_at
from mc.calibration.transforms import Transform
from mc.config.figures import figure_at, with_figures
from mc.config.posterior import known_anew
from mc.document import StrictModel
from mc.units import Dimension

Model = TypeVar("Model", bound=StrictModel)
# Draws of the posterior for intervals of figures that depend on several coordinates.
_DRAWS = 4000


@dataclass(frozen=True)
class Parameter:
    """A number that a fit may change, in one place of a configuration or in several.

    Attributes:
        paths: where it stands; all places get the same value.
        center: of the prior, and where the first descent starts.
        spread: of the prior: standard deviation in the space of the coordinates.
        space: of its values.
        dimension: for printing.
        group: of parts of a whole, or states in order: the name of all of them.
        rest: of parts of a whole: the path of what the others leave.
        limit: of a share: what it is a share of.
    """

    paths: tuple[str, ...]
    center: float
    spread: float
    space: Space
    dimension: Dimension
    group: str = ""
    rest: str = ""
    limit: float = 1.0

    @property
    def name(self) -> str:
        """What to call it: its path, with `*` for what differs between several; all of them where some are deeper than others."""
        split = [path.split(".") for path in self.paths]
        if len({len(keys) for keys in split}) > 1:
            return ", ".join(self.paths)
        return ".".join(keys[0] if len(set(keys)) == 1 else "*" for keys in zip(*split, strict=True))


def short_name(parameter: Parameter) -> str:
    """The path without what says nothing new: `node: LL tree hop_latency`."""
    keys = parameter.name.split(".")
    if keys[0] != "tiers" or len(keys) < 3 or ", " in parameter.name:
        return parameter.name
    rest = [key for key in keys[2:] if key not in ("link", "protocols")]
    return f"{'all tiers' if keys[1] == '*' else keys[1]}: {' '.join(rest)}"


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
    values = [figure_at(config, path) for path in paths]
    kind = kind_at(config, paths[0])
    middle = values[0] if center is None else center
    if not middle > 0 or (kind.space == "share" and middle > 1) or (kind.space == "factor" and middle < 1):
        allowed = {"share": "above 0 and up to 1", "factor": "of at least 1"}.get(kind.space, "above 0")
        raise CalibrationError(f"{paths[0]}: expected a prior {allowed}; got {middle:g}, so give it one")
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

    @cached_property
    def transform(self) -> Transform:
        """From coordinates to figures."""
        items = self.items
        return Transform(
            tuple(each.space for each in items),
            tuple(each.group for each in items),
            *(np.array([getattr(each, name) for each in items]) for name in ("center", "spread", "limit")),
        )

    def values(self, z: Float[Array, "*batch parameters"]) -> Float[Array, "*batch parameters"]:
        """Values for standardised coordinates; traceable."""
        return self.transform.values(z)

    def into(self, config: Model, z: Float[Array, " parameters"]) -> Model:
        """The configuration with these coordinates' values, traced where they are."""
        return self._into(
            config, list(self.values(z)), {rest: self.transform.rest(z, g) for g, rest in self.rests}
        )

    def settled(self, config: Model, z: NDArray[np.float64]) -> Model:
        """The same with plain numbers, validated; what an earlier calibration left unknown of them is left out."""
        found = self._plain(config, [float(f"{each:.6g}") for each in self._numbers(z)])
        paths = [path for each in self.items for path in (*each.paths, each.rest)]
        found = known_anew(found, paths)
        return type(config).model_validate(found.model_dump(mode="json", exclude_none=True))

    def at(self, config: Model, z: NDArray[np.float64]) -> Model:
        """The same, neither rounded nor validated, for what cannot be traced."""
        return self._plain(config, self._numbers(z))

    def _numbers(self, z: NDArray[np.float64]) -> list[float]:
        return np.asarray(self.values(jnp.asarray(z)), np.float64).tolist()

    def _plain(self, config: Model, values: list[float]) -> Model:
        rests = {}
        for group, rest in self.rests:
            own = [value for each, value in zip(self.items, values, strict=True) if each.group == group]
            # As much as the others, rounded or not, leave.
            rests[rest] = float(f"{1 - sum(own):.12g}")
        return self._into(config, values, rests)

    @property
    def rests(self) -> list[tuple[str, str]]:
        """Of every simplex its name, and the path of what is left."""
        return list(dict.fromkeys((each.group, each.rest) for each in self.items if each.rest))

    def interval(
        self, z: NDArray[np.float64], covariance: NDArray[np.float64], level: float
    ) -> NDArray[np.float64]:
        """Low, middle and high of every figure under a normal posterior, in SI units; columns in this order.

        Of figures that depend on their own coordinate the ends are exact, of the others quantiles of draws.
        """
        reach = stats.norm.ppf(0.5 + level / 2) * np.sqrt(np.diag(covariance))
        ends = np.array(self.values(jnp.asarray(np.stack([z - reach, z, z + reach])))).T
        coupled = self.transform.coupled
        if coupled.any():
            drawn = np.random.default_rng(0).multivariate_normal(z, covariance, size=_DRAWS, method="eigh")
            found = np.asarray(self.values(jnp.asarray(drawn)))
            low, high = np.quantile(found, [0.5 - level / 2, 0.5 + level / 2], axis=0)
            ends[coupled, 0], ends[coupled, 2] = low[coupled], high[coupled]
        return ends

    def _into(self, config: Model, values: list[Any], rests: dict[str, Any]) -> Model:
        pairs = zip(self.items, values, strict=True)
        return with_figures(config, {path: value for each, value in pairs for path in each.paths} | rests)
