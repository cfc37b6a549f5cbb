"""A step of decoding and a pass of prompts without noise, and where their time goes.

**Decoding.** A replica has B requests. With p stages, B/p of them are in each, and all move on together: a request gets a
token per *round*,

    round = max(Σ over stages of (S + transfer), p · the slowest S),

since a stage serves p parts in it. On top come guesses, the scheduler, and prompts, if the same ranks prefill: each of
the requests of a group ends in a step with probability E/(output − 1), with E tokens per step, and another one begins
with a pass of its prompt. Groups prefill together, so the one with most prompts counts. In all TPOT is

    (round + guesses + scheduler + prefill · E[max over groups of binomial(B/dp, E/(output − 1))])/E.

**Prefilling** passes all stages once. Ranks of their own send keys and values over a tier to the ranks that decode: those of
a rank, at the bandwidth of the slower side's ranks together; with `overlap` only the last layer's are waited for.

Where requests have several lengths (`mc.inference.lengths`), keys are those of the requests in flight, and each length
of prompts has a pass of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mc.config import ExperimentConfig
from mc.config.serving import LARGEST, LayoutConfig, ServingConfig
from mc.inference.layout import Layout, build_layout
from mc.inference.lengths import Lengths, lengths_of, slowest_group
from mc.inference.memory import (
    ServingError,
    ServingMemory,
    cache_bytes,
    largest_batch,
    serving_memory,
    too_much,
)
from mc.inference.operations import Tokens
from mc.inference.passes import Fabric, Model, Pass, context_keys
from mc.inference.queueing import batch_for_rate, place_wait
from mc.inference.speculation import tokens_per_step
from mc.training import Chip, Price
from mc.transformer import Transformer

Floats = NDArray[np.float64]
# Requests at once on chips of unknown memory.
_NO_LIMIT = 1 << 16
# Numbers of places in use whose steps are worked out; between them lie straight lines.
_SIZES = 33
# Lengths of prompts whose passes are worked out; likewise.
_LENGTHS = 65
# Tokens of an answer at which the keys of several lengths are counted.
_PLACES = 32
# Of a pass, in the order of the waterfall.
PASS_PARTS = ("weights", "kv_cache", "activations", "compute", "kernel_starts", "latency_floor", "bandwidth")


@dataclass(frozen=True)
class Stages:
    """Stages that a batch passes.

    Attributes:
        passes: one per stage.
        transfer: to the next.
    """

    passes: tuple[Pass, ...]
    transfer: Price

    def through(self, load: float = 1.0) -> float:
        """Seconds through all of them."""
        return sum(each.at(load).seconds for each in self.passes) + self.moving

    @property
    def moving(self) -> float:
        """Seconds between stages."""
        return (len(self.passes) - 1) * float(self.transfer.seconds)

    def parts(self, load: float = 1.0) -> dict[str, float]:
        """Seconds through all of them, by what they go into."""
        found: dict[str, float] = {name: 0.0 for name in PASS_PARTS}
        for each in self.passes:
            at = each.at(load)
            work = at.work
            amounts = (
                *(work.weights, work.cache, work.activations, work.compute, work.kernels),
                at.sent.latency + at.shown * at.tokens.latency,
                at.sent.bandwidth + at.shown * at.tokens.bandwidth,
            )
            for name, seconds in zip(PASS_PARTS, amounts, strict=True):
                found[name] += seconds
        found["latency_floor"] += (len(self.passes) - 1) * float(self.transfer.latency)
        found["bandwidth"] += (len(self.passes) - 1) * float(self.transfer.bandwidth)
        return found


@dataclass(frozen=True)
class Server:
    """What an experiment that serves describes, without noise.

    Attributes:
        serving: the block.
        shape: of the model.
        layout: of the ranks that decode, and
        prefill_layout: of those that prefill.
        models: what passes follow from, likewise.
        memory_size: of a chip; None if unknown.
        tier_bandwidth: bytes per second and rank over which keys and values are sent; 0 where they are not.
        tier_latency: seconds.
    """

    serving: ServingConfig
    shape: Transformer
    layout: Layout
    prefill_layout: Layout
    models: tuple[Model, Model]
    memory_size: float | None
    tier_bandwidth: float
    tier_latency: float

    @property
    def is_apart(self) -> bool:
        """Whether prompts have ranks of their own."""
        return self.serving.prefill is not None

    @property
    def tokens_per_step(self) -> float:
        """That a request gets, in the mean."""
        return tokens_per_step(self.serving.speculation)

    def decode(self, batch: float) -> Stages:
        """The stages of a step with so many requests."""
        serving, layout = self.serving, self.layout
        queries = 1.0 + (serving.speculation.width if serving.speculation else 0)
        tokens = Tokens(batch / (layout.dp * layout.pp), queries, self._keys, is_prompt=False)
        return _stages(self.models[0], layout, tokens)

    @cached_property
    def lengths(self) -> Lengths:
        """Of its requests."""
        return lengths_of(self.serving)

    @cached_property
    def _keys(self) -> float:
        """That a token of an answer meets, in the mean."""
        found = self.lengths
        if not found.are_mixed:
            return context_keys(self.shape, self.serving.prompt, self.serving.output)
        if self.shape.window is None:
            return float(found.in_flight @ (found.prompts + found.outputs / 2))
        made = (np.arange(_PLACES) + 0.5) / _PLACES
        # Sequences in flight, at equal steps of their lengths.
        long = np.sort((found.prompts[:, None] + found.outputs[:, None] * made).ravel())
        order = np.argsort((found.prompts[:, None] + found.outputs[:, None] * made).ravel())
        shares = np.repeat(found.in_flight / _PLACES, _PLACES)[order]
        known = np.unique(np.round(np.geomspace(max(long[0], 1.0), long[-1], _LENGTHS)))
        keys = [self.shape.keys(float(each), causal=False) for each in known]
        return float(shares @ np.interp(long, known, keys))

    @cached_property
    def prefill(self) -> Stages:
        """The stages of a pass of prompts, of their mean length."""
        return self.prefill_of(self.serving.prompt)

    def prefill_of(self, length: float) -> Stages:
        """The stages of a pass of prompts of so many tokens."""
        alone = self.serving.prefill
        prompts = 1.0 if alone is None else float(alone.batch)
        keys = self.shape.keys(length, causal=True)
        return _stages(self.models[1], self.prefill_layout, Tokens(prompts, length, keys, is_prompt=True))

    @property
    def prompts(self) -> int:
        """That a pass of prompts has."""
        alone = self.serving.prefill
        return self.prefill_layout.dp * (1 if alone is None else alone.batch)

    @cached_property
    def _passes(self) -> tuple[Floats, Floats]:
        """Lengths of prompts, and seconds of their passes."""
        least, most = self.lengths.prompts.min(), self.lengths.prompts.max()
        known = np.unique(np.round(np.geomspace(least, most, _LENGTHS)))
        return known, np.array([self.prefill_of(float(each)).through() for each in known])

    def pass_seconds(self, lengths: Floats) -> Floats:
        """Of passes of prompts of so many tokens."""
        return np.interp(lengths, *self._passes)

    @cached_property
    def mean_pass(self) -> float:
        """Seconds of a pass of prompts: of the longest of those that are prefilled together."""
        if not self.lengths.are_mixed:
            return self.prefill.through()
        lengths, chances = self.lengths.longest(self.together)
        return float(chances @ self.pass_seconds(lengths))

    @property
    def together(self) -> int:
        """Prompts that begin and end a pass together."""
        alone = self.serving.prefill
        return self.prompts if alone is not None and alone.packing == "longest" else 1

    @cached_property
    def transfer(self) -> float:
        """Seconds to send a request's keys and values that are waited for."""
        return float(self.sending(self.serving.prompt, self.prefill.through()))

    def sending(self, prompts: Any, passes: Any) -> Any:
        """Likewise, of prompts of so many tokens in passes of so many seconds."""
        alone = self.serving.prefill
        if alone is None:
            return 0.0 * passes
        layers = self.shape.layers
        # Of heads that several ranks have, each sends its share; so do the tp ranks of latent attention.
        whole = cache_bytes(self.shape, Layout(), self.serving.formats.cache, prompts, layers)
        ranks = min(self.layout.tp * self.layout.pp, self.prefill_layout.tp * self.prefill_layout.pp)
        seconds = whole / ranks / self.tier_bandwidth
        if alone.overlap:
            seconds = np.maximum(seconds / layers, seconds - passes * (layers - 1) / layers)
        return self.tier_latency + seconds

    def round(self, stages: Stages, load: float = 1.0) -> float:
        """Seconds in which each request gets one step."""
        slowest = max(each.at(load).seconds for each in stages.passes)
        return max(stages.through(load), self.layout.pp * slowest)

    def drafting(self, seconds: float) -> float:
        """Seconds of guesses, beside those of a round."""
        given = self.serving.speculation
        return 0.0 if given is None else given.width * given.draft * seconds

    def admissions(self, batch: float) -> float:
        """Passes of prompts per step on the ranks that decode, in the mean."""
        if self.is_apart:
            return 0.0
        requests = int(batch / self.layout.dp)
        if self.layout.dp == 1:
            return requests * self.ending
        below = stats.binom.cdf(np.arange(requests + 1), requests, self.ending)
        return float(np.sum(1.0 - below**self.layout.dp))

    @property
    def ending(self) -> float:
        """Probability that a request ends in a step."""
        return min(self.tokens_per_step / (self.serving.output - 1), 1.0)

    def step(self, batch: float) -> float:
        """Seconds of a step in the mean, with what comes on top of the round."""
        seconds = self.round(self.decode(batch))
        seconds += self.drafting(seconds) + self.serving.kernels.scheduler
        return seconds + self.admitting(batch)

    def admitting(self, batch: float) -> float:
        """Seconds of prompts in a step on the ranks that decode, in the mean."""
        if self.is_apart or not self.lengths.are_mixed:
            return self.admissions(batch) * self.prefill.through()
        passes, requests = self.pass_seconds(self.lengths.prompts), int(batch / self.layout.dp)
        return slowest_group(passes, self.lengths.shares, requests, self.ending, self.layout.dp)

    def requests_per_s(self, batch: float) -> float:
        """That a replica answers, with so many at once."""
        return batch * self.tokens_per_step / (self.step(batch) * (self.serving.output - 1))

    def memory(self, batch: float) -> ServingMemory:
        """Of a rank that decodes."""
        each = batch / self.layout.dp
        return serving_memory(self.serving, self.shape, self.layout, self.memory_size, each)

    @cached_property
    def batch(self) -> int:
        """Requests that are decoded at once.

        Raises:
            ServingError: they do not fit, or cannot be as many as arrive.
        """
        rate, most = self.serving.rate, self.places
        if rate is None:
            return most
        found = batch_for_rate(rate, self.requests_per_s, self.layout.dp * self.layout.pp, most)
        if found is None:
            raise ServingError(
                f"serving.rate: expected at most {self.requests_per_s(most):.3g} requests a second, which a replica "
                f"serves with {most} at once; got {rate:g}"
            )
        return found

    @cached_property
    def places(self) -> int:
        """Requests that may be decoded at once.

        Raises:
            ServingError: they do not fit.
        """
        asked = self.serving.batch
        most = largest_batch(self.serving, self.shape, self.layout, self.memory_size)
        if self.is_apart:
            self._check_prefill()
        if asked == LARGEST and most is None:
            raise ServingError(
                "serving.batch: expected a number, since the chip has no `memory_size`; got `largest`"
            )
        if isinstance(asked, int):
            memory = self.memory(asked)
            if memory.most is not None and memory.requests > memory.most:
                raise ServingError(too_much(self.serving, memory, memory.requests))
            most = asked
        return _NO_LIMIT if most is None else most

    def wait_for_place(self) -> tuple[float, float]:
        """The chance that a request finds all places taken, and how long it then waits; none without a rate.

        Raises:
            ServingError: requests come as fast as they are answered with all places in use, and wait without end.
        """
        rate, most = self.serving.rate, self.places
        if rate is None or most == _NO_LIMIT:
            return 0.0, 0.0
        at_once = self.layout.dp * self.layout.pp
        known = np.unique(np.round(np.geomspace(at_once, most, _SIZES)))
        answered = np.array([self.requests_per_s(float(each)) for each in known])
        every = np.interp(np.arange(1, most + 1), np.append(0.0, known), np.append(0.0, answered))
        if rate >= every[-1]:
            raise ServingError(
                f"serving.rate: expected less than {every[-1]:.6g} requests a second, which a replica answers with all "
                f"{most} places in use; got {rate:g}"
            )
        return place_wait(rate, every)

    def _check_prefill(self) -> None:
        memory = serving_memory(self.serving, self.shape, self.prefill_layout, self.memory_size)
        if memory.available is not None and memory.weights > memory.available:
            raise ServingError("serving.prefill" + too_much(self.serving, memory, 0).removeprefix("serving"))


def _stages(model: Model, layout: Layout, tokens: Tokens) -> Stages:
    stages = layout.stages(model.shape)
    last = len(stages) - 1
    passes = tuple(
        model.stage(layers, tokens, first=index == 0, last=index == last)
        for index, layers in enumerate(stages)
    )
    return Stages(passes, model.transfer(tokens))


def build_server(
    config: ExperimentConfig,
    shape: Transformer,
    chip: Chip,
    fabrics: Sequence[Fabric],
) -> Server:
    """What an experiment that serves describes.

    Args:
        config: the experiment.
        shape: of the model, without blocks that predict further tokens.
        chip: all are like it.
        fabrics: around the ranks that decode, and around those that prefill.
    """
    serving = config.serving
    assert serving is not None
    layouts: Sequence[LayoutConfig] = (serving, serving.prefill or serving)
    built = [build_layout(each, shape, serving.redundant_experts) for each in layouts]
    models = [Model(serving, shape, *each) for each in zip(built, (chip, chip), fabrics, strict=True)]
    bandwidth = latency = 0.0
    if serving.prefill is not None:
        tiers = {tier.name: tier for tier in config.cluster.tiers}
        tier = tiers[serving.prefill.tier] if serving.prefill.tier else config.cluster.tiers[-1]
        bandwidth, latency = tier.bandwidth_per_rank, tier.link.latency
    return Server(
        serving,
        shape,
        built[0],
        built[1],
        (models[0], models[1]),
        config.cluster.chip.memory_size,
        bandwidth,
        latency,
    )
