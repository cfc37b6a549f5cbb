"""Sampling the steps of a replica that serves, and the requests that see them.

A sample is a step of decoding: what its round takes, guesses, the scheduler, and prompts that the same ranks prefill in
between. Requests are made of them: an answer takes the steps that follow one another from a random one on (round and
round, where a realisation has fewer), and a first token its wait, the pass of its prompt and of those before it, and the
way of its keys and values.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import PRNGKeyArray
from numpy.typing import NDArray

from mc.config import ExperimentConfig
from mc.experiment.build_serving import disturbances, server_of
from mc.inference import (
    WARM_UP,
    Disturbances,
    Layout,
    Server,
    ServingError,
    Stages,
    compound,
    draw_stages,
    rounds,
    steps_of_answers,
    waits,
)
from mc.random import stream
from mc.training.work import Sampling

Advance = Callable[[int], None]
Floats = NDArray[np.float64]
# Lengths of prompts whose passes are drawn.
_DRAWN_LENGTHS = 4
# Of the waterfall, after those of a pass without noise.
STEP_PARTS = ("pipeline", "guesses", "scheduler", "prefill", "straggler_wait", "routing_skew", "congestion")


@dataclass(frozen=True)
class Drawn:
    """Steps and prompts of all realisations.

    Attributes:
        server: what was drawn of.
        parts: name to seconds, scalars and arrays of shape (realisations, steps), which add up to a step.
        steps: their sum.
        prompt: seconds of passes of prompts, of the same shape.
        ttft: seconds to first tokens, likewise, and
        ttft_parts: what they go into, in the mean.
        tpot: seconds per further token, likewise, and
        answer_steps: steps of an answer, in the mean, and
        answer_s: seconds of one, likewise.
        prefill_busy: part of the time that ranks for prompts are busy; None where they are as many as keep up.
        sampling_s: how long drawing took.
    """

    server: Server
    parts: Mapping[str, Floats]
    steps: Floats
    prompt: Floats
    ttft: Floats
    ttft_parts: Mapping[str, float]
    tpot: Floats
    answer_steps: float
    answer_s: float
    prefill_busy: float | None
    sampling_s: float


def draw_serving(config: ExperimentConfig, key: PRNGKeyArray, advance: Advance) -> Drawn:
    """Samples the steps of an experiment that serves.

    Raises:
        InputError: the experiment cannot be, or does not fit into memory.
    """
    server = server_of(config)
    batch = server.batch
    begun = time.perf_counter()
    method: Sampling = "direct" if config.run.method == "direct" else "exact"
    most = min(config.run.realisations, config.run.samples)
    stages = server.decode(batch)
    queries = 1 + (server.serving.speculation.width if server.serving.speculation else 0)
    found = disturbances(config, server, server.layout, batch / server.layout.pp * queries, key, most)
    own = stream(key, "prefill")
    ahead_layout, tokens = server.prefill_layout, server.prompts * server.serving.prompt
    ahead = disturbances(config, server, ahead_layout, tokens, own if server.is_apart else key, most)
    realisations = most if found.remembers or ahead.remembers else 1
    count = -(-config.run.samples // realisations)
    found, ahead = (_first(each, realisations) for each in (found, ahead))

    quiet = server.round(stages)
    took = _rounds(server.layout, stages, found, key, count, method)
    shape = realisations, count
    prompts = _Prompts(server, lambda stages: _prompts(stages, ahead, own, count, method))
    advance(config.run.samples // 2)
    rng = np.random.default_rng([config.run.seed, 1])
    admitted = np.zeros(shape) if server.is_apart else prompts.admitted(rng, shape)
    length, prompt = prompts.passes(rng, shape)
    ranks, loads, links = took
    fixed = server.drafting(quiet), server.serving.kernels.scheduler
    parts = {name: np.asarray(seconds) for name, seconds in stages.parts().items()}
    on_top = (
        *(np.asarray(each) for each in (quiet - stages.through(), *fixed)),
        *(admitted, ranks - quiet, loads - ranks, links - loads),
    )
    parts |= dict(zip(STEP_PARTS, on_top, strict=True))
    steps = sum(parts.values(), np.zeros(shape))
    ttft, ttft_parts, busy = _first_tokens(rng, server, prompts, steps, length, prompt)
    further = np.asarray(server.serving.output - 1)
    if server.lengths.are_mixed:
        further = server.lengths.draw(rng, shape)[1].astype(np.int64) - 1
    tokens = np.broadcast_to(further, shape).ravel()
    answers = steps_of_answers(rng, server.serving.speculation, tokens, steps.size)
    whole = windows(steps, answers.reshape(shape))
    tpot = whole / further
    advance(config.run.samples - config.run.samples // 2)
    return Drawn(
        server,
        parts,
        steps,
        prompt,
        ttft,
        ttft_parts,
        tpot,
        float(answers.mean()),
        float(whole.mean()),
        busy,
        time.perf_counter() - begun,
    )


def _first(found: Disturbances, realisations: int) -> Disturbances:
    return Disturbances(found.rank, found.factor[:realisations], found.shared, found.load, found.tiers)


def _rounds(
    layout: Layout, stages: Stages, found: Disturbances, key: PRNGKeyArray, count: int, method: Sampling
) -> tuple[Floats, Floats, Floats]:
    """Seconds of rounds, with what disturbs ranks, loads and links too."""
    if layout.pp == 1:
        drawn = draw_stages(stages.passes, found, key, count, method)
        return drawn.ranks[0], drawn.loads[0], drawn.links[0]
    drawn = draw_stages(stages.passes, found, key, (count + WARM_UP) * layout.pp, method)
    moving = float(stages.transfer.seconds)
    ranks, loads, links = (rounds(each, moving) for each in (drawn.ranks, drawn.loads, drawn.links))
    return ranks, loads, links


def _prompts(stages: Stages, found: Disturbances, key: PRNGKeyArray, count: int, method: Sampling) -> Floats:
    drawn = draw_stages(stages.passes, found, key, count, method)
    return drawn.links.sum(axis=0) + stages.moving


class _Prompts:
    """Passes of prompts of the lengths that requests have.

    Disturbances lengthen passes by factors that change little with the length: they are drawn for a few lengths, all with the same
    random numbers, and lie on straight lines over the logarithm of the length between.
    """

    def __init__(self, server: Server, draw: Callable[[Stages], Floats]):
        """Draws what is needed of a server's prompts."""
        self.server = server
        lengths = server.lengths
        if not lengths.are_mixed:
            self.one = draw(server.prefill)
            return
        least, most = float(lengths.prompts.min()), float(lengths.prompts.max())
        self.known = np.unique(np.geomspace(least, most, _DRAWN_LENGTHS))
        drawn = [server.prefill_of(float(each)) for each in self.known]
        self.factors = np.array([draw(each) / each.through() for each in drawn])

    def _factor(self, lengths: Floats) -> Floats:
        """By which each step's pass of so many tokens takes longer."""
        if len(self.known) == 1:
            return self.factors[0]
        place = np.interp(np.log(lengths), np.log(self.known), np.arange(len(self.known)))
        low = np.minimum(place.astype(int), len(self.known) - 2)
        ends = [np.take_along_axis(self.factors, each[None], axis=0)[0] for each in (low, low + 1)]
        return ends[0] + (place - low) * (ends[1] - ends[0])

    def passes(self, rng: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
        """A pass for each step: tokens of its longest prompt, and its seconds."""
        if not self.server.lengths.are_mixed:
            return np.full(shape, float(self.server.serving.prompt)), self.one
        lengths, chances = self.server.lengths.longest(self.server.together)
        drawn = rng.choice(lengths, size=shape, p=chances)
        return drawn, self.server.pass_seconds(drawn) * self._factor(drawn)

    def admitted(self, rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        """Seconds of prompts in each step, on the ranks that decode."""
        server = self.server
        if not server.lengths.are_mixed:
            return _admissions(rng, server, shape) * self.one
        groups = server.layout.dp
        found = np.zeros(shape)
        for _ in range(groups):
            begun = rng.binomial(server.batch // groups, server.ending, size=shape)
            np.maximum(found, self.behind(rng, begun), out=found)
        return found

    def behind(self, rng: np.random.Generator, counts: NDArray[np.int64]) -> Floats:
        """Seconds of so many prompts one after the other."""
        lengths = self.server.lengths
        if not lengths.are_mixed:
            return counts * self.one
        usual = np.full(counts.shape, float(self.server.serving.prompt))
        quiet = compound(rng, self.server.pass_seconds(lengths.prompts), lengths.shares, counts)
        return quiet * self._factor(np.clip(usual, self.known[0], self.known[-1]))


def _admissions(rng: np.random.Generator, server: Server, shape: tuple[int, int]) -> Floats:
    """Passes of prompts in each step: as many as the group has that gets most."""
    groups = server.layout.dp
    requests = server.batch // groups
    found = np.zeros(shape)
    for _ in range(groups):
        np.maximum(found, rng.binomial(requests, server.ending, size=shape), out=found)
    return found


def _first_tokens(
    rng: np.random.Generator,
    server: Server,
    prompts: _Prompts,
    steps: Floats,
    length: Floats,
    prompt: Floats,
) -> tuple[Floats, dict[str, float], float | None]:
    """TTFT, what it goes into, and how busy ranks for prompts are."""
    rate, alone = server.serving.rate, server.serving.prefill
    waited, busy = np.zeros(steps.shape), None
    if alone is None:
        # Those of its group that came in the same step and are before it, and the rest of the step that is under way.
        requests = server.batch // server.layout.dp
        others = rng.binomial(max(requests - 1, 0), server.ending, size=steps.shape)
        waited = prompts.behind(rng, rng.integers(0, others + 1))
        if rate is not None:
            waited = waited + rng.random(steps.shape) * steps
    elif rate is not None and alone.replicas is not None:
        each = rate / (alone.replicas * server.prompts)
        busy = float(each * prompt.mean())
        if busy >= 1:
            least = rate * float(prompt.mean()) / server.prompts
            raise ServingError(
                f"serving.prefill.replicas: expected more than {least:.3g}, which {rate:g} requests a second keep "
                f"busy; got {alone.replicas}"
            )
        waited = waits(prompt, rng.exponential(1 / each, size=prompt.shape))
    sent: Any = server.transfer
    if server.lengths.are_mixed:
        # Of a pass with several prompts the request has any that is no longer.
        asked = np.minimum(server.lengths.draw(rng, steps.shape)[0], length)
        sent = server.sending(length if server.together == 1 else asked, server.pass_seconds(length))
    taken, wait = server.wait_for_place()
    place = (
        (rng.random(steps.shape) < taken) * rng.exponential(wait, size=steps.shape) if taken else np.zeros(())
    )
    parts = {"place": place, "wait": waited, "prefill": prompt, "kv_transfer": np.asarray(sent)}
    return place + waited + prompt + sent, {name: float(np.mean(each)) for name, each in parts.items()}, busy


def windows(steps: Floats, counts: NDArray[np.int64]) -> Floats:
    """Sums of so many steps that follow one another, from each one on, round and round in a realisation."""
    size = steps.shape[1]
    sums = np.concatenate([np.zeros((steps.shape[0], 1)), np.cumsum(np.tile(steps, 2), axis=1)], axis=1)
    whole, rest = np.divmod(counts, size)
    start = np.arange(size)[None, :]
    found = np.take_along_axis(sums, start + rest, axis=1) - np.take_along_axis(
        sums, start + 0 * rest, axis=1
    )
    return found + whole * sums[:, size : size + 1]
