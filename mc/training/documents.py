"""Sequences of several documents: attention stays inside each, so micro-batches differ in work.

Documents of lognormal lengths L are strung together and cut into sequences of S tokens, as GPT-style data loaders do; what is cut
off goes on in the next sequence, and sequences are shuffled. A causal document of l tokens takes l²/2 of attention where
a sequence of one takes S²/2, so a sequence's work is

    A = Σ lᵢ²/S² ≤ 1

of that of a single document. Lengths count as continuous here; a token more or less is nothing.

Seen from where a sequence begins, the document there is one of length-biased law (a lognormal again, with its median
e^{σ²} times as long), and a uniform part of it is left. Later documents follow the plain law. The mean has a closed form: A is the
probability that two random tokens of the sequence are of one document, and that of two tokens u apart is E(L − u)⁺/E L, so

    E A = 2/(S²·E L) · E[ S·l²/2 − l³/6 + (L − l)·S·l − (L − l)·l²/2 ],   l = min(L, S),

which takes partial moments of the lognormal only. The law of a micro-batch's mean has none: it is simulated.

References:
    D. R. Cox, "Renewal Theory" (1962), section 5: length-biased sampling.
"""

import math
import zlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mc.delays import AbstractDelay
from mc.training.sampled import law_of_samples

# Sequences to simulate, and documents; of many documents per sequence, fewer sequences tell as much.
_SEQUENCES, _FEWEST, _DOCUMENTS = 65_536, 4_096, 1e7
_KEY = zlib.crc32(b"documents")
# Nothing is shorter than a token, nor makes less work than sequences of these.
_TOKEN = 1.0


@lru_cache(maxsize=64)
def attention_law(median: float, sigma: float, sequence_length: int, sequences: int = 1) -> AbstractDelay:
    """The law of a micro-batch's attention work, as a part of that of full-length documents.

    It moves with the micro-batch: one draw for all stages and layers.

    Args:
        median: of the lengths of documents, tokens.
        sigma: standard deviation of their logarithm.
        sequence_length: S, tokens.
        sequences: in a micro-batch.
    """
    per_sequence = 1 + sequence_length / max(median * math.exp(sigma**2 / 2), _TOKEN)
    affordable = int(_DOCUMENTS / per_sequence)
    rng = np.random.default_rng(_KEY)
    wanted = min(max(affordable, _FEWEST), _SEQUENCES * min(sequences, 4))
    work = simulate_attention(rng, median, sigma, sequence_length, wanted)
    if sequences > 1:
        # Means of random ones of them: a micro-batch of many sequences would take too many of its own.
        work = rng.choice(work, (min(wanted, _SEQUENCES // 4), sequences)).mean(axis=1)
    return law_of_samples(work, min(_TOKEN / sequence_length, work.min()), 1.0)


def simulate_attention(
    rng: np.random.Generator, median: float, sigma: float, sequence_length: int, sequences: int
) -> NDArray[np.float64]:
    """The work of so many independent sequences."""
    first = median * np.exp(sigma * (sigma + rng.standard_normal(sequences)))
    length = np.minimum(rng.random(sequences) * first, sequence_length)
    work, used = length**2, length
    open_ones = np.flatnonzero(used < sequence_length)
    while open_ones.size:
        drawn = np.maximum(median * np.exp(sigma * rng.standard_normal(open_ones.size)), _TOKEN)
        length = np.minimum(drawn, sequence_length - used[open_ones])
        work[open_ones] += length**2
        used[open_ones] += length
        open_ones = open_ones[used[open_ones] < sequence_length]
    return np.minimum(work / float(sequence_length) ** 2, 1.0)


def mean_attention(median: float, sigma: float, sequence_length: int) -> float:
    """E A, the mean work of a sequence, by the formula above."""
    s = float(sequence_length)

    def partial(power: int, *, above: bool) -> float:
        """E[Lⁿ; L > S] or E[Lⁿ; L ≤ S] over E L, by logarithms: moments of wide laws are no floats."""
        if sigma == 0:
            return median ** (power - 1) if above == (median > s) else 0.0
        score = (math.log(s / median) - power * sigma**2) / sigma
        tail = float(special.log_ndtr(-score if above else score))
        return math.exp((power - 1) * math.log(median) + (power**2 - 1) * sigma**2 / 2 + tail)

    # Up to S: S·l²/2 − l³/6; beyond: L·S²/2 − S³/6.
    short = s * partial(2, above=False) / 2 - partial(3, above=False) / 6
    long = s**2 * partial(1, above=True) / 2 - s**3 * partial(0, above=True) / 6
    return min(2 * (short + long) / s**2, 1.0)
