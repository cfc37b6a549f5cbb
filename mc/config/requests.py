"""How long prompts and answers are, where they are not all alike.

    requests:                                        # kinds of requests, with their weights
      - {prompt: 500, output: 100, weight: 9}
      - {prompt: 20000, output: 1000}

    requests: {file: trace.csv}                      # a row for each request, columns `prompt` and `output`

    requests:                                        # lognormal, independent of each other
      prompt: {median: 1000, sigma: 1.0, most: 32768}
      output: {median: 200, sigma: 0.8}

A lognormal law is cut into strata of equal probability, each with its mean length.
"""

import math
from itertools import pairwise
from statistics import NormalDist
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from mc.document import StrictModel

# Of a lognormal law: the last one has half a per cent.
STRATA = 200
LEAST: dict[Literal["prompt", "output"], int] = {"prompt": 1, "output": 2}
Tokens = Annotated[int, Field(ge=1, le=10**8)]
Answer = Annotated[int, Field(ge=2, le=10**8)]


class RequestConfig(StrictModel):
    """Requests that are alike.

    Attributes:
        prompt: tokens.
        output: tokens of the answer.
        weight: how many there are, over those of the other kinds.
    """

    prompt: Tokens
    output: Answer
    weight: Annotated[float, Field(gt=0, le=1e12)] = 1.0


class LengthConfig(StrictModel):
    """A lognormal number of tokens.

    Attributes:
        median: tokens.
        sigma: standard deviation of the logarithm.
        most: tokens; longer ones are cut.
    """

    median: Annotated[float, Field(ge=1, le=1e8)]
    sigma: Annotated[float, Field(ge=0, le=4)]
    most: Tokens | None = None

    def strata(self, least: int) -> list[int]:
        """Lengths of equal probability, none below `least`."""
        normal = NormalDist()
        # Of a lognormal between two quantiles: E[X; a < Z < b] = median·exp(σ²/2)·(Φ(b − σ) − Φ(a − σ)).
        inside = (normal.cdf(normal.inv_cdf(each / STRATA) - self.sigma) for each in range(1, STRATA))
        below = [0.0, *inside, 1.0]
        mean = self.median * math.exp(self.sigma**2 / 2)
        lengths = [round(mean * (high - low) * STRATA) for low, high in pairwise(below)]
        most = max(lengths) if self.most is None else self.most
        return [max(min(each, most), least) for each in lengths]


class RequestLawConfig(StrictModel):
    """Prompts and answers of lognormal lengths, independent of each other.

    Attributes:
        prompt: tokens of a request.
        output: tokens of its answer.
    """

    prompt: LengthConfig
    output: LengthConfig


def _is_law(value: object) -> str:
    return "law" if isinstance(value, dict | RequestLawConfig) else "kinds"


RequestsConfig = Annotated[
    Annotated[tuple[RequestConfig, ...], Field(strict=False, min_length=1), Tag("kinds")]
    | Annotated[RequestLawConfig, Tag("law")],
    Discriminator(_is_law),
]


def mean_length(
    requests: "tuple[RequestConfig, ...] | RequestLawConfig", name: Literal["prompt", "output"]
) -> int:
    """Tokens of prompts or of answers in the mean, rounded."""
    if isinstance(requests, RequestLawConfig):
        return round(sum(getattr(requests, name).strata(LEAST[name])) / STRATA)
    weight = sum(each.weight for each in requests)
    return round(sum(getattr(each, name) * each.weight for each in requests) / weight)
