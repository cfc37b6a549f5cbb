"""How many tokens of a micro-batch go to each expert.

Tokens choose independently, so the count of expert e is binomial, Tπₑ on average, and counts of different experts are negatively
correlated, since each token takes k. With the tokens of a training step there are thousands, and their sum is normal: only
first and second moments matter. Those of the sum without replacement are matched by

    Nₑ = T·πₑ + √T·(Zₑ − dₑ/D·ΣZ),   Zₑ ~ normal(0, dₑ),  D = Σd,

with d such that each variance is exactly πₑ(1 − πₑ), as in Hájek's approximation (1964): exact for k = 1 (the multinomial) and
for experts that are alike. Where choices are limited to groups the same holds inside each group, and the totals of groups
vary with the covariance that tokens show. A term in the square of the normal gives each count the skewness of its binomial law
(Cornish and Fisher 1937), so that tens of tokens per expert are enough.

References:
    J. Hájek, "Asymptotic theory of rejective sampling with varying probabilities from a finite population", Annals of
    Mathematical Statistics 35 (1964).
    E. A. Cornish, R. A. Fisher, "Moments and cumulants in the specification of distributions", Review of the International
    Statistical Institute 5 (1937).
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_ITERATIONS = 30
# Of the variance in one expert: beyond, it has what the others leave, whatever its own.
_MOST = 0.9


def draw_counts(
    rng: np.random.Generator,
    chances: Floats,
    group_totals: Floats | None,
    groups: int,
    tokens: int,
    count: int,
) -> Floats:
    """Counts of `count` micro-batches in each layer, (layers, count, E).

    Args:
        rng: of all draws.
        chances: π, that a token chooses an expert, (layers, E).
        group_totals: how many experts of each group tokens took, (layers, tokens seen, groups); None if not limited.
        groups: of experts; 1 if not limited.
        tokens: T, in a micro-batch.
        count: micro-batches.
    """
    layers, experts = chances.shape
    shape = (layers, groups, experts // groups)
    pi = chances.reshape(shape)
    variance = pi * (1 - pi)
    share = _divided(pi, pi.sum(axis=-1, keepdims=True))
    between = np.zeros((layers, count, groups))
    if group_totals is not None:
        seen = group_totals.shape[1]
        centred = (group_totals - group_totals.mean(axis=1, keepdims=True)) / np.sqrt(seen - 1)
        between = rng.standard_normal((layers, count, seen)) @ centred
        variance_between = np.square(centred).sum(axis=1)[..., None]
        inside = np.maximum(variance - share**2 * variance_between, 0.0)
    else:
        inside = variance
    d = _independent_variances(inside)
    normals = rng.standard_normal((layers, count, *shape[1:])) * np.sqrt(d)[:, None]
    weight = _divided(d, d.sum(axis=-1, keepdims=True))[:, None]
    noise = normals - weight * normals.sum(axis=-1, keepdims=True) + share[:, None] * between[..., None]
    square = _divided(noise**2, variance[:, None]) - (variance > 0)[:, None]
    skewness = (1 - 2 * pi)[:, None] * square / 6
    counts = np.clip(tokens * pi[:, None] + np.sqrt(tokens) * noise + skewness, 0, tokens)
    counts = counts.reshape(layers, count, experts)
    return counts * (tokens * chances.sum(axis=-1)[:, None, None] / counts.sum(axis=-1, keepdims=True))


def _independent_variances(target: Floats) -> Floats:
    """The d with dₑ·(1 − dₑ/D) = target, along the last axis."""
    members = target.shape[-1]
    d = target * members / max(members - 1, 1)
    for _ in range(_ITERATIONS):
        weight = np.minimum(_divided(d, d.sum(axis=-1, keepdims=True)), _MOST)
        # Half of the step: alternates around the solution otherwise when one expert has most of the variance.
        d = 0.5 * (d + target / (1 - weight))
    return d


def _divided(above: Floats, below: Floats) -> Floats:
    positive = below > 0
    return np.where(positive, above / np.where(positive, below, 1.0), 0.0)
