"""Requests of many lengths: what is in flight, and passes of several prompts.

**In flight.** A request takes as many steps as its answer is long, so of the requests that are decoded at once those with the
answer o are as many as w·(o − 1), with w the share of requests that have it (Little's law, kind by kind): long answers are met more
often than they come. Keys that are read and room that is held are means over these.

**Room.** With B requests of independent lengths the rank holds B·m + 3·s·√B bytes, with the mean m and the deviation s of one:
once in a thousand times they need more.

**Passes.** Where prompts of one pass begin and end together, it takes as long as the longest of them. On ranks that decode a
step waits for the group whose new prompts take longest: with n requests that end with the probability q each, prompts of a group
take a compound binomial time, with the transform (1 − q + q·φ)^n, and the maximum over groups has its distribution to the power
of their number.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mc.config.requests import LEAST, RequestLawConfig
from mc.config.serving import ServingConfig

Floats = NDArray[np.float64]
# Points of the compound law, and how many deviations above its mean it ends at least.
_POINTS, _FAR = 1 << 14, 12.0


@dataclass(frozen=True)
class Lengths:
    """Kinds of requests.

    Attributes:
        prompts: tokens.
        outputs: tokens of the answers.
        shares: of all requests; they add up to 1.
    """

    prompts: Floats
    outputs: Floats
    shares: Floats

    @property
    def are_mixed(self) -> bool:
        """Whether there are several kinds."""
        return len(self.shares) > 1

    @property
    def in_flight(self) -> Floats:
        """Shares of the requests that are decoded at once."""
        steps = self.shares * (self.outputs - 1)
        return steps / steps.sum()

    def longest(self, prompts: int) -> tuple[Floats, Floats]:
        """Lengths of prompts, and the chances that the longest of so many has them."""
        known, place = np.unique(self.prompts, return_inverse=True)
        below = np.cumsum(np.bincount(place, self.shares))
        return known, np.diff(np.append(0.0, (below / below[-1]) ** prompts))

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Prompts and answers of requests as they come."""
        chosen = rng.choice(len(self.shares), size=shape, p=self.shares)
        return self.prompts[chosen], self.outputs[chosen]


def lengths_of(serving: ServingConfig) -> Lengths:
    """Of the requests of a serving block."""
    if serving.requests is None:
        return Lengths(np.array([float(serving.prompt)]), np.array([float(serving.output)]), np.ones(1))
    if isinstance(serving.requests, RequestLawConfig):
        given = serving.requests
        strata = given.prompt.strata(LEAST["prompt"]), given.output.strata(LEAST["output"])
        prompts, outputs = np.meshgrid(*(np.array(each, np.float64) for each in strata), indexing="ij")
        return _merged(prompts.ravel(), outputs.ravel(), np.ones(prompts.size))
    rows = np.array([[each.prompt, each.output, each.weight] for each in serving.requests], np.float64)
    return _merged(*rows.T)


def _merged(prompts: Floats, outputs: Floats, weights: Floats) -> Lengths:
    """Each kind once."""
    kinds, place = np.unique(np.stack([prompts, outputs]), axis=1, return_inverse=True)
    shares = np.bincount(place.ravel(), weights)
    return Lengths(kinds[0], kinds[1], shares / shares.sum())


def slowest_group(seconds: Floats, shares: Floats, requests: int, ending: float, groups: int) -> float:
    """What prompts of the group that gets most of them take in a step, in the mean.

    Args:
        seconds: of prompts' passes.
        shares: of prompts.
        requests: of a group.
        ending: probability that one ends in a step, and another one begins.
        groups: which do not wait for each other before.
    """
    mean, square = float(shares @ seconds), float(shares @ seconds**2)
    if groups == 1:
        return requests * ending * mean
    spread = np.sqrt(requests * ending * square)
    most = requests * ending * mean + _FAR * max(spread, float(seconds.max()))
    # Each time is split between the two points around it, which keeps the mean.
    place = seconds / most * (_POINTS - 1)
    low = np.floor(place).astype(int)
    law = np.bincount(low, shares * (1 - (place - low)), _POINTS) + np.bincount(
        low + 1, shares * (place - low), _POINTS
    )
    compound = np.fft.irfft((1 - ending + ending * np.fft.rfft(law)) ** requests, _POINTS)
    below = np.clip(np.cumsum(compound), 0.0, 1.0)
    return float(np.sum(1.0 - below[:-1] ** groups)) * most / (_POINTS - 1)


def compound(rng: np.random.Generator, seconds: Floats, shares: Floats, counts: NDArray[np.int64]) -> Floats:
    """Sums of so many prompts' seconds each."""
    drawn = rng.choice(seconds, size=int(counts.sum()), p=shares)
    ends = np.cumsum(counts.ravel())
    sums = np.append(0.0, np.cumsum(drawn))
    return (sums[ends] - sums[ends - counts.ravel()]).reshape(counts.shape)
