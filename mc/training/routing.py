"""Skewed routing: the busiest rank of a layer with experts.

Tokens choose experts by popularity (`mc.parallel.routing_choice`). Popularity is lognormal, as token counts of
DeepSeek-V3's layers are (github.com/deepseek-ai/DeepEP, pull request 393); its `skew` is the standard deviation of the
logarithm. It belongs to the layer and stays: drawn once per layer and realisation. Counts come and go with each micro-batch. Experts
lie on ranks in their order, as many on each. All ranks of the group wait for the one that receives most, in the
exchange and in the experts' work, so what a layer takes is what it would take with all alike, times the *load factor*

    F = (largest number of choices that fall on one rank) / (their mean).

Where a token is sent once to each node, however many of its experts are there, the network between nodes waits for the
node that receives most tokens, which averages over its ranks (`node_load`); only what a node passes on to its ranks, and the
experts' work, goes with the busiest rank.

What ranks send is the same for all. In a part of the model with k layers the times add up, so the factor is the mean of k:

    mean over layers = persistent × transient.

`persistent` is a part's mean over micro-batches, drawn once per part and realisation; `transient`, of mean 1, is drawn per
micro-batch and group. Neither has a closed form: both are tabulated once from 2,048 simulated layers of 16 micro-batches with a
key of their own, so a change of skew or size moves the law smoothly. Tests hold the tables to tokens that all choose for themselves.

With a `capacity_factor` each expert takes so many times the mean, rounded up. Beyond, tokens are dropped (`drop`), and F
counts what is served over the mean of what was asked for; or all are served (`wait`), and the capacity changes nothing.

What this leaves out: tokens of one document choose alike, which makes counts vary more than independent tokens; and popularity
drifts during training.
"""

import math
import zlib
from dataclasses import dataclass
from functools import lru_cache

import equinox as eqx
import numpy as np
from numpy.typing import NDArray

from mc.delays import AbstractDelay, Constant, Empirical
from mc.errors import InputError
from mc.parallel import Plan, nodes_of
from mc.parallel.routing_choice import Choice
from mc.training.routing_counts import draw_counts
from mc.training.sampled import law_of_samples
from mc.transformer import Transformer

Floats = NDArray[np.float64]

_KEY = zlib.crc32(b"routing")
_LAYERS, _MICRO_BATCHES, _TOKENS_SEEN = 2_048, 16, 128
_NODE_LAYERS, _NODE_DRAWS = 256, 32
# Layers at a time: what they take in memory is theirs times the tokens seen times the experts.
_AT_ONCE = 16
_PARTS = 16_384


class RoutingError(InputError):
    """Experts that cannot be chosen or placed so."""


@dataclass(frozen=True)
class Routing:
    """The tokens and experts of one expert-parallel group.

    Attributes:
        choice: how a token chooses.
        ranks: over which the experts lie (ep).
        tokens: of all ranks of the group, in a micro-batch.
        skew: standard deviation of the logarithm of popularity.
        capacity_factor: the most that an expert takes, over the mean; None for no limit.
        drop: whether what is beyond is dropped, and not served all the same.
        nodes: to each of which a token is sent once; 1 where it is sent to ranks.
    """

    choice: Choice
    ranks: int
    tokens: int
    skew: float = 0.0
    capacity_factor: float | None = None
    drop: bool = False
    nodes: int = 1

    def __post_init__(self):
        """Experts in equal parts, and enough of them."""
        choice = self.choice
        for name, parts in (("ranks", self.ranks), ("groups", choice.groups)):
            if parts < 1 or choice.experts % parts:
                raise RoutingError(f"{name}: expected a divisor of the {choice.experts} experts; got {parts}")
        eligible = choice.experts // choice.groups * min(choice.group_limit, choice.groups)
        if not 1 <= choice.top_k <= eligible:
            raise RoutingError(
                f"top_k: expected 1 to {eligible}, as many as a token may choose of; got {choice.top_k}"
            )
        if self.tokens < 1:
            raise RoutingError(f"tokens: expected 1 or more; got {self.tokens}")

    @property
    def mean_load(self) -> float:
        """Choices per rank, on average."""
        return self.tokens * self.choice.top_k / self.ranks

    @property
    def capacity(self) -> float:
        """The most choices that an expert serves."""
        if self.capacity_factor is None or not self.drop:
            return math.inf
        return math.ceil(self.capacity_factor * self.tokens * self.choice.top_k / self.choice.experts)

    @property
    def highest(self) -> float:
        """No load factor is above."""
        per_rank = self.choice.experts // self.ranks
        return min(self.tokens * min(self.choice.top_k, per_rank), per_rank * self.capacity) / self.mean_load


class LoadLaw(eqx.Module):
    """The law of the load factor of a part of the model: the mean over its layers with experts.

    Attributes:
        persistent: once per part and realisation.
        transient: per micro-batch and group of ranks; of mean 1.
        mean: of their product.
        dropped: part of the choices that are not served.
        nodes: mean load of the busiest node, for tokens that are sent once to each.
    """

    persistent: AbstractDelay
    transient: AbstractDelay
    mean: float = eqx.field(static=True)
    dropped: float = eqx.field(static=True)
    nodes: float = eqx.field(static=True, default=1.0)


@dataclass(frozen=True)
class Loads:
    """Simulated layers.

    Attributes:
        factor: F, (layers, micro-batches).
        dropped: part of the choices, (layers, micro-batches).
    """

    factor: Floats
    dropped: Floats


def routing_of(shape: Transformer, plan: Plan) -> Routing:
    """The routing of a group of ranks that share a layer's experts.

    Raises:
        RoutingError: the transformer has no experts.
    """
    experts = shape.experts
    if experts is None:
        raise RoutingError("expected a transformer with experts; got one without")
    choice = Choice(experts.count, experts.top_k, experts.groups, experts.group_limit)
    # A group has etp x ep ranks. Each cp rank has its own tokens, and so has, for the experts, each tp rank: tensor
    # parallel ranks hold different tokens between the products, or would choose the same experts for copies.
    per_rank = plan.micro_batch * plan.sequence_length / (plan.tp * plan.cp)
    given, nodes = plan.routing, nodes_of(experts, plan)
    return Routing(
        choice,
        plan.ep,
        max(round(per_rank * plan.ep * plan.etp), 1),
        given.skew,
        given.capacity_factor,
        given.overflow == "drop" and given.capacity_factor is not None,
        1 if nodes is None else nodes.between.size,
    )


@lru_cache(maxsize=256)
def load_law(routing: Routing, layers: int = 1) -> LoadLaw:
    """The law of the mean load factor of so many layers."""
    if routing.ranks == 1 and not routing.drop:
        return LoadLaw(Constant(1.0), Constant(1.0), 1.0, 0.0)
    loads = _table(routing)
    persistent, transient = _separated(loads.factor, persists=routing.skew > 0)
    rng = np.random.default_rng([_KEY, layers])
    if layers > 1:
        chosen = rng.integers(persistent.size, size=(_PARTS, layers))
        weights = persistent[chosen]
        drawn = transient[chosen, rng.integers(transient.shape[1], size=chosen.shape)]
        persistent = weights.mean(axis=1)
        transient = (weights * drawn).sum(axis=1) / weights.sum(axis=1)
    highest = routing.highest
    return LoadLaw(
        _law(persistent, highest, bounded=routing.capacity < math.inf),
        _law(transient, highest / persistent.min(), bounded=routing.capacity < math.inf),
        float(loads.factor.mean()),
        float(loads.dropped.mean()),
        node_load(routing.choice, routing.nodes, routing.skew),
    )


@lru_cache(maxsize=256)
def node_load(
    choice: Choice, nodes: int, skew: float, layers: int = _NODE_LAYERS, draws: int = _NODE_DRAWS
) -> float:
    """Tokens that the busiest node receives, each once, over the mean: the mean over layers.

    Of tokens without number, since a node gets thousands of a micro-batch. A draw serves tokens for all rotations of
    groups, and of nodes inside of groups, so that without skew all are exactly alike.
    """
    if nodes == 1 or skew == 0:
        return 1.0
    rng = np.random.default_rng(_KEY)
    members, inside = choice.experts // choice.groups, max(nodes // choice.groups, 1)
    found = []
    for _ in range(layers):
        popularity = np.float32(skew) * rng.standard_normal((1, choice.experts), np.float32)
        drawn = choice.balanced_scores(rng, np.zeros_like(popularity), draws * choice.groups)
        blocks = drawn.reshape(-1, choice.groups, members)
        turned = np.concatenate(
            [np.roll(blocks, turn * members // inside, axis=-1) for turn in range(inside)]
        )
        chosen = choice.chosen(popularity + turned.reshape(-1, choice.experts))
        visits = chosen.reshape(len(chosen), nodes, -1).any(axis=-1).mean(axis=0)
        found.append(visits.max() / visits.mean())
    return float(np.mean(found))


@lru_cache(maxsize=64)
def _table(routing: Routing) -> Loads:
    choice = routing.choice
    # Streams of their own, so that laws of different sizes and skews share their randomness.
    popularity, tokens, counts = (np.random.default_rng([_KEY, stream]) for stream in range(3))
    found = []
    for log_popularity in _popularity(popularity, choice, routing.skew, _LAYERS):
        scores = choice.balanced_scores(tokens, log_popularity, _TOKENS_SEEN)
        needed = choice.needed(scores)
        chances = np.full(log_popularity.shape, choice.top_k / choice.experts)
        if routing.skew > 0:
            chances = choice.chances(needed, log_popularity)
        totals, groups = None, 1
        if choice.is_limited:
            groups, chosen = choice.groups, scores >= needed
            totals = chosen.reshape(*chosen.shape[:-1], groups, -1).sum(axis=-1).astype(np.float64)
        drawn = draw_counts(counts, chances, totals, groups, routing.tokens, _MICRO_BATCHES)
        found.append(_loads(routing, drawn))
    factors, dropped = ([getattr(each, name) for each in found] for name in ("factor", "dropped"))
    return Loads(np.concatenate(factors), np.concatenate(dropped))


def _popularity(rng: np.random.Generator, choice: Choice, skew: float, layers: int):
    """Logarithms of popularities, some layers at a time."""
    for start in range(0, layers, _AT_ONCE):
        shape = (min(_AT_ONCE, layers - start), choice.experts)
        yield skew * rng.standard_normal(shape, np.float32)


def _loads(routing: Routing, counts: Floats) -> Loads:
    served = np.minimum(counts, routing.capacity)
    dropped = (counts - served).sum(axis=-1) / (routing.tokens * routing.choice.top_k)
    per_rank = served.reshape(*counts.shape[:-1], routing.ranks, -1).sum(axis=-1)
    # Normal counts may come to a little more than all tokens.
    return Loads(np.minimum(per_rank.max(axis=-1) / routing.mean_load, routing.highest), dropped)


def _separated(factor: Floats, *, persists: bool) -> tuple[Floats, Floats]:
    """A layer's mean, and each micro-batch over it; the error of the mean is taken out of one and put into the other."""
    means, count = factor.mean(axis=1), factor.shape[1]
    error = factor.var(axis=1, ddof=1).mean() / count
    spread = means.var(ddof=1)
    kept = math.sqrt(max(0.0, 1 - error / spread)) if persists and spread > 0 else 0.0
    ratio = factor / means[:, None]
    return means.mean() + (means - means.mean()) * kept, 1 + (ratio - 1) * math.sqrt(count / (count - 1))


def _law(values: Floats, highest: float, *, bounded: bool) -> AbstractDelay:
    if bounded or np.ptp(values) <= 1e-6 * values.max():
        return law_of_samples(values, 0.0, max(highest, values.max()))
    return Empirical.fit(values)
