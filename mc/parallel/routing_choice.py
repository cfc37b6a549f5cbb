"""How a token chooses its experts.

A token's score for expert e is log wₑ + G, with wₑ the expert's popularity in this layer and G of a Gumbel law, drawn for each token
and expert; it takes the `top_k` best. So a single choice falls on e with probability wₑ/Σw, and several are drawn one after
the other without replacement (Plackett 1975; Yellott 1977). With group-limited routing (DeepSeek-V2 and -V3) experts are in
equal groups; a group's score is the sum of its best `group_best`, and a token chooses inside its `group_limit` best groups.

How often an expert is chosen has no closed form for top_k > 1. Counting choices of n tokens would leave an error of
√(E/kn); here each token says instead what the *chance* of each expert was, given the scores of all others: e is
chosen if its score reaches a threshold that follows from those (`needed`), so with chance 1 − exp(−wₑ·e^{−needed}).
Averaged over a hundred tokens (Rao-Blackwell) this gives the mean load of one of 64 ranks to 0.2 %, for which counting would
take two million tokens.

References:
    R. L. Plackett, "The analysis of permutations", Applied Statistics 24 (1975).
    J. I. Yellott, "The relationship between Luce's choice axiom, Thurstone's theory of comparative judgment, and the double
    exponential distribution", Journal of Mathematical Psychology 15 (1977).
    DeepSeek-AI, "DeepSeek-V3 Technical Report", arXiv 2412.19437, section 2.1.2.
"""

import math
import zlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]
_SHORT = 64
_KEY = zlib.crc32(b"destinations")
_TOKENS_SEEN = 16_384


@dataclass(frozen=True)
class Choice:
    """The rule by which a token chooses.

    Attributes:
        experts: E, how many there are.
        top_k: k, how many a token takes.
        groups: of neighbouring experts, equally large.
        group_limit: how many of the groups a token may take experts from.
        group_best: how many of its best experts a group's score adds up: 2 in DeepSeek-V3, 1 in DeepSeek-V2.
    """

    experts: int
    top_k: int
    groups: int = 1
    group_limit: int = 1
    group_best: int = 2

    @property
    def is_limited(self) -> bool:
        """Whether groups matter."""
        return self.group_limit < self.groups

    def scores(self, rng: np.random.Generator, log_popularity: Scores, tokens: int) -> Scores:
        """Scores of so many tokens in each layer, (..., tokens, E), from the logarithm of popularities, (..., E)."""
        shape = (*log_popularity.shape[:-1], tokens, self.experts)
        clocks = rng.standard_exponential(shape, np.float32)
        return log_popularity[..., None, :] - np.log(np.maximum(clocks, 1e-37))

    def balanced_scores(self, rng: np.random.Generator, log_popularity: Scores, tokens: int) -> Scores:
        """As `scores`, but where groups matter, each draw serves one token for every rotation of the groups.

        Whatever luck a draw holds for a group, it then holds for all, and chances that hardly differ are found exactly.
        """
        if not self.is_limited:
            return self.scores(rng, log_popularity, tokens)
        drawn = self.scores(rng, np.zeros_like(log_popularity), -(-tokens // self.groups))
        blocks = drawn.reshape(*drawn.shape[:-1], self.groups, -1)
        turned = np.stack([np.roll(blocks, turn, axis=-2) for turn in range(self.groups)], axis=-3)
        return log_popularity[..., None, :] + turned.reshape(*log_popularity.shape[:-1], -1, self.experts)

    def needed(self, scores: Scores) -> Scores:
        """The score that each expert would have to have to be chosen, given those of all others; (..., E).

        Experts whose score is at least this are chosen.
        """
        if not self.is_limited:
            return _beyond(scores, scores, self.top_k)
        shape = (*scores.shape[:-1], self.groups, self.experts // self.groups)
        return _needed_in_groups(self, scores.reshape(shape)).reshape(scores.shape)

    def chosen(self, scores: Scores) -> NDArray[np.bool_]:
        """Which experts each token chooses, (..., E)."""
        if self.is_limited:
            blocks = scores.reshape(*scores.shape[:-1], self.groups, -1)
            best = min(self.group_best, blocks.shape[-1])
            total = _largest(blocks, best).sum(axis=-1)
            allowed = total >= _largest(total, self.group_limit).min(axis=-1, keepdims=True)
            scores = np.where(allowed[..., None], blocks, -np.inf).reshape(scores.shape)
        return scores >= _largest(scores, self.top_k).min(axis=-1, keepdims=True)

    def chances(self, needed: Scores, log_popularity: Scores) -> NDArray[np.float64]:
        """How often each expert is chosen, (..., E): the mean over tokens, scaled to add up to `top_k`."""
        with np.errstate(over="ignore"):
            rates = np.exp(log_popularity[..., None, :] - needed)
        found = -np.expm1(-rates).mean(axis=-2, dtype=np.float64)
        return np.minimum(found * (self.top_k / found.sum(axis=-1, keepdims=True)), 1.0)


@lru_cache(maxsize=256)
def destinations(choice: Choice, parts: int) -> float:
    """To how many of equal parts of the experts (ranks, nodes) a token goes, on average.

    A token that is sent to each of them once leaves a rank as tokens x (this number) copies, of which 1/parts stay in its own
    part. Without groups it is parts·(1 − C(E − E/parts, k)/C(E, k)), whatever the skew: before popularity is known, any k
    experts are as likely as any others. With groups it is found from 16,384 tokens, to 0.2 %; skews up to 1 change it less.
    """
    experts, k = choice.experts, choice.top_k
    if not choice.is_limited:
        return parts * (1 - math.comb(experts - experts // parts, k) / math.comb(experts, k))
    rng = np.random.default_rng(_KEY)
    chosen = choice.chosen(choice.scores(rng, np.zeros(experts, np.float32), _TOKENS_SEEN))
    return float(chosen.reshape(_TOKENS_SEEN, parts, -1).any(axis=-1).sum(axis=-1).mean())


def _largest(values: Scores, count: int) -> Scores:
    size = values.shape[-1]
    return values if count >= size else np.partition(values, size - count, axis=-1)[..., size - count :]


def _beyond(scores: Scores, among: Scores, count: int) -> Scores:
    """What each of `scores` has to exceed to be one of the `count` best of `among`, which holds it too."""
    size = among.shape[-1]
    if count >= size:
        return np.full_like(scores, -np.inf)
    places = (size - count - 1, size - count)
    # Short rows are sorted sooner than divided.
    ordered = np.sort(among, axis=-1) if size <= _SHORT else np.partition(among, places, axis=-1)
    last, next_one = ordered[..., size - count, None], ordered[..., size - count - 1, None]
    return np.where(scores >= last, next_one, last)


def _needed_in_groups(choice: Choice, scores: Scores) -> Scores:
    """`needed` with groups; scores are (..., groups, members)."""
    members, limit = scores.shape[-1], choice.group_limit
    best = min(choice.group_best, members)
    ordered = -np.sort(-scores, axis=-1)
    total = ordered[..., :best].sum(axis=-1)

    # A group is chosen if it beats the best `limit` of the others: the last of those chosen, or for one that is
    # chosen now, the first that is not.
    to_beat = _beyond(total, total, limit)[..., None]
    rank = np.argsort(np.argsort(-total, axis=-1), axis=-1)
    # Without expert e, its group has the sum of the others' best, and e comes on top of one less of them.
    is_best = scores >= ordered[..., best - 1, None]
    below = ordered[..., best, None] if best < members else np.full_like(to_beat, -np.inf)
    with_one_less = total[..., None] - np.where(is_best, scores, ordered[..., best - 1, None])
    without = np.where(is_best, with_one_less + below, total[..., None])
    for_group = np.where(without >= to_beat, -np.inf, to_beat - with_one_less)

    # Inside: a group that is not chosen would take the place of the last one that is.
    lists = min(choice.top_k + 1, members)
    order = np.argsort(rank, axis=-1)
    leading = np.take_along_axis(ordered, order[..., None], axis=-2)[..., :limit, :lists]
    shared = leading[..., : limit - 1, :].reshape(*leading.shape[:-2], 1, (limit - 1) * lists)
    own = np.where((rank < limit)[..., None], leading[..., limit - 1, None, :], ordered[..., :lists])
    among = np.concatenate([np.broadcast_to(shared, (*own.shape[:-1], shared.shape[-1])), own], axis=-1)
    inside = _beyond(scores, among, choice.top_k)
    return np.maximum(for_group, inside)
