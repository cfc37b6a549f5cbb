"""What is kept of the samples of a cell: counts, in whole numbers, so that tallies add up to the same whatever the order.

- *Histogram.* A positive float64 has its exponent and the top of its mantissa in neighbouring bits. Cut after ten bits of
  mantissa, the bits are the number of a bucket: 1024 to each octave, no wider than 0.1 %, found without a logarithm
  (buckets as in G. Tene's HdrHistogram; the guarantee is that of DDSketch: C. Masson, J. E. Rim, H. K. Lee, VLDB 2019).
- *Moments.* Samples are rounded to whole multiples of 2^-46 s (14 fs), whose sum and sum of squares are integers of
  any length: exact, where a sum of floats depends on its order in the last digits.
- *Top.* The largest samples, exactly.

Steps of one realisation of the cluster depend on each other, so a tally has a row for each realisation, and says what the
rows together are worth as `mc.estimate` does for samples that are all there.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mc.estimate import QUANTILES, Estimate
from mc.estimate.mean import interval_of_mean
from mc.estimate.quantile import effective_size, interval_ranks

# Bits of the mantissa that tell buckets apart.
BITS = 10
_SHIFT = 52 - BITS
_PER_SECOND = 2.0**46
TOP = 16
# Limbs of 21 bits: 2^21 products of two of them fit into 63 bits.
_LIMB, _MASK = 21, (1 << 21) - 1
_MOST_AT_ONCE = 1 << 20


def bucket(samples: ArrayLike) -> NDArray[np.int64]:
    """The bucket of each sample; of zero, bucket 0."""
    return np.ascontiguousarray(samples, np.float64).view(np.int64) >> _SHIFT


def lower_edge(index: ArrayLike) -> NDArray[np.float64]:
    """Where buckets begin."""
    return (np.asarray(index, np.int64) << _SHIFT).view(np.float64)


@dataclass(frozen=True)
class Tally:
    """Counts of samples.

    Attributes:
        first: the lowest bucket.
        counts: [realisations, buckets], from `first` on.
        sums: of each realisation, in units of 2^-46 s.
        squares: sum of squares of all.
        top: the largest, falling.
    """

    first: int
    counts: NDArray[np.int64]
    sums: tuple[int, ...]
    squares: int
    top: NDArray[np.float64]

    @staticmethod
    def of(samples: ArrayLike) -> "Tally":
        """The tally of samples of shape (realisations, steps); of one row, steps are independent.

        Raises:
            ValueError: a sample is negative, not finite, or longer than a day and a half.
        """
        rows = np.atleast_2d(np.asarray(samples, np.float64))
        if not (np.isfinite(rows).all() and (rows >= 0).all() and (rows < 2.0**17).all()):
            raise ValueError("expected step times from 0 to 131072 s; got others")
        index = bucket(rows)
        first, last = int(index.min()), int(index.max())
        width = last - first + 1
        offset = np.arange(len(rows))[:, None] * width
        counts = np.bincount((index - first + offset).ravel(), minlength=width * len(rows))
        whole = np.rint(rows * _PER_SECOND).astype(np.int64)
        top = np.sort(np.partition(rows.ravel(), -min(TOP, rows.size))[-TOP:])[::-1]
        return Tally(
            first,
            counts.reshape(len(rows), width),
            tuple(_sum(row) for row in whole),
            _sum_of_squares(whole.ravel()),
            top,
        )

    def __add__(self, other: "Tally") -> "Tally":
        """Both together; their realisations are the same ones."""
        first = min(self.first, other.first)
        end = max(self.first + self.counts.shape[1], other.first + other.counts.shape[1])
        counts = np.zeros((len(self.counts), end - first), np.int64)
        for each in (self, other):
            counts[:, each.first - first : each.first - first + each.counts.shape[1]] += each.counts
        return Tally(
            first,
            counts,
            tuple(one + two for one, two in zip(self.sums, other.sums, strict=True)),
            self.squares + other.squares,
            np.sort(np.concatenate([self.top, other.top]))[::-1][:TOP],
        )

    def beside(self, other: "Tally") -> "Tally":
        """Both, their realisations being different ones."""
        rows = len(self.counts)
        first, last = self.first, self.first + self.counts.shape[1]
        low = min(first, other.first)
        high = max(last, other.first + other.counts.shape[1])
        counts = np.zeros((rows + len(other.counts), high - low), np.int64)
        counts[:rows, first - low : last - low] = self.counts
        counts[rows:, other.first - low : other.first - low + other.counts.shape[1]] = other.counts
        top = np.sort(np.concatenate([self.top, other.top]))[::-1][:TOP]
        return Tally(low, counts, self.sums + other.sums, self.squares + other.squares, top)

    @property
    def count(self) -> int:
        """How many samples."""
        return int(self.counts.sum())

    @property
    def sum(self) -> int:
        """Of all, in units of 2^-46 s."""
        return sum(self.sums)

    @property
    def mean(self) -> float:
        """Seconds; exact but for its last digit."""
        return self.sum / self.count / _PER_SECOND

    @property
    def deviation(self) -> float:
        """Standard deviation of a step, seconds."""
        n = self.count
        if n < 2:
            return 0.0
        # In integers, so that a small spread of large numbers loses nothing.
        return math.sqrt((n * self.squares - self.sum**2) / (n * (n - 1))) / _PER_SECOND

    def histogram(self) -> NDArray[np.int64]:
        """Counts of all realisations together, from bucket `first` on."""
        return self.counts.sum(0)

    def quantile(self, probability: float, confidence: float) -> Estimate:
        """A quantile: a sample where it is among the top, else the middle of its bucket."""
        n = self.count
        cumulated = np.cumsum(self.histogram())
        rank = max(math.ceil(n * probability - 1e-9), 1)
        value = self._ordered(rank, cumulated, 0.5)
        below = np.cumsum(self.counts, axis=1)
        place = int(np.searchsorted(cumulated, rank))
        worth = float(n)
        if len(self.counts) > 1:
            # Proportions below the bucket and up to its end, as on either side of a jump.
            sizes = self.counts.sum(1)
            ends = [below[:, place] / sizes, (below[:, place] - self.counts[:, place]) / sizes]
            worth = float(max(min(effective_size(end, n, confidence) for end in ends), len(sizes)))
        low, high = interval_ranks(n, worth, probability, confidence)
        return Estimate(
            value,
            -math.inf if low is None else min(self._ordered(low, cumulated, 0.0), value),
            math.inf if high is None else max(self._ordered(high, cumulated, 1.0), value),
        )

    def _ordered(self, rank: int, cumulated: NDArray[np.int64], part: float) -> float:
        """The sample of a rank (from 1), or a place in its bucket."""
        from_top = self.count - rank
        if from_top < len(self.top):
            return float(self.top[from_top])
        place = self.first + int(np.searchsorted(cumulated, rank))
        low, high = lower_edge([place, place + 1])
        return float(low + part * (high - low))

    def mean_estimate(self, confidence: float) -> Estimate:
        """The mean and its interval."""
        if len(self.counts) > 1:
            units = np.array(self.sums) / self.counts.sum(1) / _PER_SECOND
            centred = units - units.mean()
            spread, third = float(units.std(ddof=1)), float(np.mean(centred**3))
            skewness = third / float(np.mean(centred**2)) ** 1.5 if spread > 0 else 0.0
            count = len(units)
        else:
            count, spread, skewness = self.count, self.deviation, self._skewness()
        low, high = interval_of_mean(self.mean, spread, skewness, count, confidence)
        return Estimate(self.mean, low, high)

    def _skewness(self) -> float:
        """From the histogram, which is fine enough where the law is wider than a few buckets."""
        counts = self.histogram()
        if np.count_nonzero(counts) < 8:
            return 0.0
        edges = lower_edge(self.first + np.arange(len(counts) + 1))
        centred = (edges[:-1] + edges[1:]) / 2 - self.mean
        second = float(counts @ centred**2) / self.count
        return float(counts @ centred**3) / self.count / second**1.5 if second > 0 else 0.0

    def estimates(self, confidence: float) -> Mapping[str, Estimate]:
        """Mean and quantiles, by name."""
        found = {"mean": self.mean_estimate(confidence)}
        return found | {name: self.quantile(level, confidence) for name, level in QUANTILES.items()}


def _sum(whole: NDArray[np.int64]) -> int:
    return (int((whole >> 32).sum()) << 32) + int((whole & 0xFFFFFFFF).sum())


def _sum_of_squares(whole: NDArray[np.int64]) -> int:
    total = 0
    for start in range(0, len(whole), _MOST_AT_ONCE):
        part = whole[start : start + _MOST_AT_ONCE]
        limbs = [(part >> (place * _LIMB)) & _MASK for place in range(3)]
        for i, one in enumerate(limbs):
            for j, two in enumerate(limbs):
                total += int(one @ two) << ((i + j) * _LIMB)
    return total
