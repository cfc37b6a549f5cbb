"""What the data say about the parameters, and what they leave to the priors, in words.

In standardised coordinates a prior has covariance I, so the posterior's says by itself how much was learnt. An
eigenvalue λ of the data's part of JᵀJ narrows the prior along its direction by 1/√(1 + λ): above 1 the data say
more than the prior. A single parameter with a wide posterior may still be part of a narrow direction; the pairs that
are name the product or the ratio that the data do fix.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Posterior standard deviation over that of the prior: below the first learnt, above the second not.
LEARNT, LEFT = 0.35, 0.9
_TOGETHER, _PAIRS = 0.7, 5


@dataclass(frozen=True)
class Identified:
    """What is known after a fit.

    Attributes:
        narrowed: per parameter, the posterior's standard deviation over the prior's.
        directions: how many directions the data say more about than the priors.
        pairs: (first, second, what the data fix of them, its standard deviation over the prior's).
    """

    narrowed: NDArray[np.float64]
    directions: int
    pairs: tuple[tuple[int, int, str, float], ...]

    def learnt(self, place: int) -> str:
        """How one parameter is known: from the `data`, from `both`, or from the `prior`."""
        found = self.narrowed[place]
        return "data" if found < LEARNT else "prior" if found > LEFT else "both"

    def sentences(self, names: list[str]) -> list[str]:
        """For people."""
        of = {kind: [n for i, n in enumerate(names) if self.learnt(i) == kind] for kind in ("data", "prior")}
        lines = [
            f"The data say more than the priors about {self.directions} of {len(names)} directions; they fix "
            f"{len(of['data'])} parameters by themselves and leave {len(of['prior'])} at their priors."
        ]
        if of["prior"]:
            lines.append(f"Left free by the data: {_grouped(of['prior'])}.")
        lines += [
            f"Only the {what} of {names[first]} and {names[second]} is known (to {100 * narrow:.0f} % of its prior's width)."
            for first, second, what, narrow in self.pairs
        ]
        return lines


def identify(covariance: NDArray[np.float64]) -> Identified:
    """What a posterior covariance in standardised coordinates says."""
    narrowed = np.sqrt(np.diag(covariance))
    directions = int(np.sum(np.linalg.eigvalsh(covariance) < 0.5))
    pairs = []
    for first in range(len(covariance)):
        for second in range(first + 1, len(covariance)):
            if min(narrowed[first], narrowed[second]) < LEARNT:
                continue
            between = covariance[first, second] / (narrowed[first] * narrowed[second])
            sign, what = (1.0, "product") if between < 0 else (-1.0, "ratio")
            variance = (
                covariance[first, first] + covariance[second, second] + 2 * sign * covariance[first, second]
            )
            together = float(np.sqrt(max(variance, 0.0) / 2))
            if together < _TOGETHER * min(narrowed[first], narrowed[second]):
                pairs.append((first, second, what, together))
    pairs.sort(key=lambda each: each[3])
    return Identified(narrowed, directions, tuple(pairs[:_PAIRS]))


def _grouped(names: list[str]) -> str:
    """Names that differ in their last word only, together."""
    found: dict[str, list[str]] = {}
    for name in names:
        *before, last = name.split(" ")
        found.setdefault(" ".join(before), []).append(last)
    return "; ".join(f"{before} {', '.join(last)}".strip() for before, last in found.items())
