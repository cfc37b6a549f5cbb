"""The `<delay>` of a file: a random time, or a random ratio, by family and parameters.

The families are generic over the quantity Q of their values: `TimeDelay` is their union with times,
`RatioDelay` with plain ratios. `family` tells them apart, so a mistake is reported for the family that was
meant and for no other. Parametrisations follow `mc.delays`; where a family has two, either pair is given
whole.
"""

from typing import Annotated, Any, Generic, Literal, TypeVar, cast

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from mc.config.checks import require_one_of, require_sum_of_one
from mc.config.measured import unfit
from mc.config.quantities import PositiveRatio, Probability, Quantity, Ratio, SignedRatio, Time
from mc.document import StrictModel, located

Q = TypeVar("Q")


def _name(model: type, params: tuple[Any, ...]) -> str | None:
    marks = [mark for mark in getattr(params[0], "__metadata__", ()) if isinstance(mark, Quantity)]
    return f"{marks[0].dimension.name.title()}{model.__name__}" if marks else None


class _Family(StrictModel, Generic[Q]):
    """What all families share."""

    # The default is the same number in every dimension, which a type variable cannot say.
    shift: Q = Field(default=cast(Any, 0.0), description="Added to every draw.")

    @model_serializer(mode="wrap")
    def _family_first(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        entries = handler(self)
        return {"family": entries["family"], **entries}

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """`TimeExponential instead of the spelled-out annotation, for the JSON Schema."""
        return _name(cls, params) or super().model_parametrized_name(params)


class ConstantDelay(_Family[Q], Generic[Q]):
    """No randomness."""

    family: Literal["constant"]
    value: Q


class ExponentialDelay(_Family[Q], Generic[Q]):
    """Memoryless."""

    family: Literal["exponential"]
    mean: Annotated[Q, Field(gt=0)]


class LognormalDelay(_Family[Q], Generic[Q]):
    """A normal logarithm.

    Given by median and sigma (standard deviation of the logarithm), or by mean and cv (standard deviation
    over mean).
    """

    family: Literal["lognormal"]
    median: Annotated[Q, Field(gt=0)] | None = None
    sigma: PositiveRatio | None = None
    mean: Annotated[Q, Field(gt=0)] | None = None
    cv: PositiveRatio | None = None

    @model_validator(mode="after")
    def _one_pair(self) -> "LognormalDelay[Q]":
        require_one_of(self, ("median", "sigma"), ("mean", "cv"))
        return self


class GammaDelay(_Family[Q], Generic[Q]):
    """Given by mean and cv (coefficient of variation), or by shape and scale."""

    family: Literal["gamma"]
    mean: Annotated[Q, Field(gt=0)] | None = None
    cv: PositiveRatio | None = None
    shape: PositiveRatio | None = None
    scale: Annotated[Q, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _one_pair(self) -> "GammaDelay[Q]":
        require_one_of(self, ("mean", "cv"), ("shape", "scale"))
        return self


class WeibullDelay(_Family[Q], Generic[Q]):
    """log P(T > t) = -(t/scale)^shape."""

    family: Literal["weibull"]
    scale: Annotated[Q, Field(gt=0)]
    shape: PositiveRatio


class ParetoDelay(_Family[Q], Generic[Q]):
    """Generalised Pareto with threshold 0; the mean is infinite for a shape of 1 or more."""

    family: Literal["pareto"]
    scale: Annotated[Q, Field(gt=0)]
    shape: SignedRatio


class EmpiricalDelay(_Family[Q], Generic[Q]):
    """Measured samples; above the quantile 1 - tail_fraction a generalised Pareto tail is fitted.

    In a file, `file: x.csv` (with `column` and `unit` where needed) may stand for `samples`.
    """

    family: Literal["empirical"]
    samples: Annotated[tuple[Q, ...], Field(strict=False, min_length=2)]
    tail_fraction: Annotated[Ratio, Field(gt=0, lt=1)] = 0.1

    @model_validator(mode="after")
    def _can_be_fitted(self) -> "EmpiricalDelay[Q]":
        found = unfit(cast(tuple[float, ...], self.samples), self.tail_fraction)
        if found is not None:
            name, text = found
            raise located("EmpiricalDelay", [((name,), text)])
        return self


class MixtureComponent(StrictModel, Generic[Q]):
    """One of the laws a mixture chooses from."""

    probability: Probability
    delay: Annotated[
        ConstantDelay[Q]
        | ExponentialDelay[Q]
        | LognormalDelay[Q]
        | GammaDelay[Q]
        | WeibullDelay[Q]
        | ParetoDelay[Q]
        | EmpiricalDelay[Q],
        Field(discriminator="family"),
    ]

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """As for the families."""
        return _name(cls, params) or super().model_parametrized_name(params)


class MixtureDelay(_Family[Q], Generic[Q]):
    """Each draw comes from one component, chosen by its probability; components are no mixtures."""

    family: Literal["mixture"]
    components: Annotated[tuple[MixtureComponent[Q], ...], Field(strict=False, min_length=1)]

    @model_validator(mode="after")
    def _adds_up(self) -> "MixtureDelay[Q]":
        require_sum_of_one(self, "components", [each.probability for each in self.components])
        return self


TimeDelay = Annotated[
    ConstantDelay[Time]
    | ExponentialDelay[Time]
    | LognormalDelay[Time]
    | GammaDelay[Time]
    | WeibullDelay[Time]
    | ParetoDelay[Time]
    | EmpiricalDelay[Time]
    | MixtureDelay[Time],
    Field(discriminator="family"),
]
RatioDelay = Annotated[
    ConstantDelay[Ratio]
    | ExponentialDelay[Ratio]
    | LognormalDelay[Ratio]
    | GammaDelay[Ratio]
    | WeibullDelay[Ratio]
    | ParetoDelay[Ratio]
    | EmpiricalDelay[Ratio]
    | MixtureDelay[Ratio],
    Field(discriminator="family"),
]
