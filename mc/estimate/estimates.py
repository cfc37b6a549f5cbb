"""All that is said of a step time's distribution, in one call."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from mc.estimate.mean import mean_estimate
from mc.estimate.quantile import quantile_estimate
from mc.estimate.samples import Estimate, as_realisations

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}
"""The quantiles that a run reports, by name."""


@dataclass(frozen=True)
class Estimates:
    """Mean and quantiles of the step time, each with its interval.

    Attributes:
        mean: the mean step time.
        p50: median; `p95`, `p99`, `p99_9` likewise.
        confidence: coverage of each interval.
        samples: number of sampled steps.
        realisations: number of independent realisations of the cluster among them.
        effective_samples: for each name, how many independent steps the samples are worth.
    """

    mean: Estimate
    p50: Estimate
    p95: Estimate
    p99: Estimate
    p99_9: Estimate
    confidence: float
    samples: int
    realisations: int
    effective_samples: Mapping[str, float] = field(default_factory=dict)

    def items(self) -> Iterator[tuple[str, Estimate]]:
        """Name and estimate: the mean, then the quantiles in rising order."""
        yield "mean", self.mean
        for name in QUANTILES:
            yield name, getattr(self, name)


def estimate(samples: ArrayLike, confidence: float = 0.95) -> Estimates:
    """Estimates mean, p50, p95, p99 and p99.9 of the step time.

    Args:
        samples: shape (realisations, steps); steps of one realisation may be correlated, realisations are
            independent. One realisation (or a 1-D array) is read as independent steps.
        confidence: coverage of each two-sided interval, in (0, 1).

    Raises:
        ValueError: for samples that are empty, not finite or of more than two dimensions, or a confidence
            outside (0, 1).
    """
    shape = np.shape(samples)
    clusters = as_realisations(samples)
    ordered = np.sort(clusters, axis=None)
    mean, size = mean_estimate(clusters, confidence)
    found, effective = {"mean": mean}, {"mean": size}
    for name, probability in QUANTILES.items():
        found[name], effective[name] = quantile_estimate(clusters, probability, confidence, ordered=ordered)
    return Estimates(
        **found,
        confidence=float(confidence),
        samples=clusters.size,
        realisations=shape[0] if len(shape) == 2 else 1,
        effective_samples=effective,
    )
