"""The best plans of a space: every one is evaluated for real, or a bound says that it cannot be among them.

Best first. A queue holds plans, and sets of plans, by what they take at least (`bound`); the one that takes the least is
looked at more closely, in these steps:

1. a mapping with all its pipelines, recomputations, ZeRO and orders: messages cost nothing;
2. a mapping with a pipeline and a recomputation: likewise. Here memory is asked for, for each stage of ZeRO;
3. a plan: messages cost what their bytes take at least on the tiers that they cross;
4. a plan: messages that passes wait for cost what they cost;
5. a plan, evaluated (`mc.training.evaluate`, with chips and links as they are without noise);
6. where plans are compared by a number of noisy steps, a plan, drawn (`mc.advise.rank`).

Noise lengthens steps: a step T is a maximum of sums of durations D, which is convex and grows with each, so if means of D are no
less than durations without noise, d, E[T(D)] >= T(E[D]) >= T(d) (Jensen). A p99 below that is counted (`shortened`).

Plans may be compared by something that grows with the step, such as joules (`Objective`). As a bound never exceeds what it
bounds, the search is over when the least in the queue is no less than the k-th best that was evaluated: what is left cannot
be better. This is A* (Hart, Nilsson, Raphael, IEEE Trans. SSC 4(2), 1968): of all ways to search with these bounds it looks at
the fewest plans, but for ties.
"""

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mc.advise.bound import FreePrices, ManyVolumes, VolumePrices, Work, makespan_bound, skeleton, work_of
from mc.advise.checks import check_step
from mc.advise.evaluated import STEP_TIME, Evaluated, Objective, SearchResult, front_of
from mc.advise.space import ZERO, Candidate, Layout, Mapping, Refused, space_of
from mc.collectives import CollectiveError
from mc.config import ExperimentConfig
from mc.config.recompute import Recompute
from mc.errors import InputError
from mc.fabric import build_cluster
from mc.parallel import Plan, PlanError, build_plan, make_plan, memory
from mc.training import (
    Chip,
    TabulatedPrices,
    build_chip,
    build_prices,
    computing,
    evaluate,
    mean_attention,
)
from mc.training.replicas import optimizer_time
from mc.training.times import pieces_of
from mc.transformer import flops

Floats = NDArray[np.float64]
Advance = Callable[[int], None]
# Bounds add up what evaluations do in another order.
_ROUNDING = 1e-9
# What is drawn is as exact as its tables.
_DRAWN = 1e-3
# What says that an item of a stage is too slow.
_BOUNDS = ("computing", "computing", "volume of messages", "messages")


class AdviceError(InputError):
    """An experiment whose plans cannot be compared."""


def search(
    config: ExperimentConfig,
    count: int = 10,
    *,
    within: float = 0.0,
    objective: Objective = STEP_TIME,
    draw: Callable[[Evaluated], float] | None = None,
    advance: Advance = lambda count: None,
) -> SearchResult:
    """The best plans for a model on a cluster.

    Args:
        config: the experiment; its plan says what is not searched.
        count: how many plans to find.
        within: evaluates also what is worse than the last of these by no more than this part of it.
        objective: what is to be least.
        draw: the number of a plan's noisy steps that is to be least instead, seconds, no less than the step without noise.
        advance: told how many plans are settled, of `plans_in`.

    Raises:
        InputError: the experiment has no plans, or none of them fits.
    """
    check_step(config)
    return _Search(config, count, within, objective, draw, advance).run()


def plans_in(config: ExperimentConfig) -> int:
    """How many combinations there are.

    Raises:
        SpaceError: as `space_of`.
    """
    check_step(config)
    space, refused = space_of(config), Refused()
    for _ in space.mappings(refused):
        pass
    return refused.total


class _Search:
    """One search."""

    def __init__(
        self,
        config: ExperimentConfig,
        count: int,
        within: float,
        objective: Objective,
        draw: Callable[[Evaluated], float] | None,
        advance: Advance,
    ):
        self.config, self.count, self.within, self.advance = config, count, within, advance
        self.objective, self.draw = objective, draw
        self.drawn = self.shortened = 0
        self.space = space_of(config)
        chips = config.cluster.chips(config.ranks)
        if len({(chip.name, slowdown) for _, chip, slowdown in chips}) > 1:
            raise AdviceError(
                "cluster: expected chips of one kind, since plans are compared with all chips alike"
            )
        self.chip: Chip = build_chip(chips[0][1])
        size = chips[0][1].memory_size
        reserve = 1 - config.plan.memory_reserve
        self.available = None if size is None else reserve * size
        cluster = build_cluster(config.cluster)
        self.prices: TabulatedPrices = build_prices(cluster, config.plan.protocol)
        self.free, self.volume = FreePrices(), VolumePrices(cluster)
        documents, self.attention = config.plan.documents, 1.0
        if documents is not None:
            self.attention = mean_attention(documents.median, documents.sigma, self.space.length)
        self.works: dict[Any, Work] = {}
        self.volumes: dict[Mapping, ManyVolumes] = {}
        self.refused, self.pruned = Refused(), Counter[str]()
        self.found: list[Evaluated] = []
        # The best order of each plan, and what it is compared by.
        self.least: dict[str, tuple[float, Evaluated]] = {}
        self.queue: list[tuple[float, int, int, Any]] = []
        self.ticket = itertools.count()
        self.limit = math.inf
        # What every step takes besides.
        self.fixed = float(self.chip.efficiency.step)

    def run(self) -> SearchResult:
        written = self._written()
        self._start()
        while self.queue:
            bound, _, stage, item = heapq.heappop(self.queue)
            if bound > self.limit:
                self._prune(stage, item)
                continue
            (self._mapping, self._pipeline, self._plan, self._priced, self._noisy)[stage](item)
        if not self.found:
            raise AdviceError("plan: expected a plan that fits; there is none")
        return SearchResult(
            name=self.config.name,
            ranks=self.config.ranks,
            written=written,
            best=tuple(one for _, one in sorted(self.least.values(), key=lambda pair: pair[0])[: self.count]),
            front=front_of([*self.found, *([written] if written is not None and written.fits else [])]),
            total=self.refused.total,
            refused={reason: count for reason, count in self.refused.reasons.items() if count},
            pruned={reason: count for reason, count in self.pruned.items() if count},
            evaluated=len(self.found),
            available=self.available,
            drawn=self.drawn,
            shortened=self.shortened,
        )

    def _written(self) -> Evaluated | None:
        """The plan of the file."""
        try:
            return self._evaluate(build_plan(self.config))
        except (PlanError, CollectiveError):
            return None

    def _evaluate(self, plan: Plan) -> Evaluated:
        shape = self.space.shape
        found = evaluate(plan, shape, self.chip, self.prices, attention=self.attention)
        held = memory(shape, plan).total
        peak = plan.ranks * self.chip.peak[plan.formats.math]
        work = flops(shape, plan.sequence_length, plan.global_batch, plan.config.recompute).model
        step = float(found.step)
        return Evaluated(
            plan=plan,
            step=step,
            computing=float(computing(found, plan.passes, self.attention)),
            memory=held,
            mfu=float(work / peak / step),
            exposed={name: float(seconds) for name, seconds in found.exposed.items()},
            bubble_fraction=float(found.bubble_fraction),
            fits=self.available is None or held <= self.available,
        )

    def _push(self, step: float, stage: int, item: Any) -> None:
        bound = self.objective.at_least(step) * (1 - _ROUNDING)
        if bound > self.limit:
            self._prune(stage, item)
        else:
            heapq.heappush(self.queue, (bound, next(self.ticket), stage, item))

    def _prune(self, stage: int, item: Any) -> None:
        if stage == len(_BOUNDS):
            # It was evaluated, and counts as that.
            return
        mapping, layouts = item[0], 1
        if stage == 0:
            layouts = len(item[1]) * len(self.space.recomputes)
        orders = len(self.space.orders(mapping)) if stage <= 1 else 1
        number = layouts * orders * (len(ZERO) if stage <= 1 else 1)
        if stage == 2:
            number = len(item[2])
        self.pruned[_BOUNDS[stage]] += number
        self.advance(number)

    # Step 1: mappings.

    def _start(self) -> None:
        for mapping, layouts in self.space.mappings(self.refused):
            sizes = mapping.tp, mapping.cp, mapping.pp, mapping.dp
            possible = math.factorial(sum(size > 1 for size in sizes))
            orders = len(self.space.orders(mapping))
            each = len(layouts) * len(self.space.recomputes) * len(ZERO)
            self.refused.reasons["ep does not lie regularly in the order"] += each * (possible - orders)
            if orders:
                bound = min(self._computing(mapping, layout, "none") for layout in layouts)
                self._push(bound, 0, (mapping, layouts))
        self.advance(self.refused.reasons.total())

    def _mapping(self, item: tuple[Mapping, tuple[Layout, ...]]) -> None:
        mapping, layouts = item
        for layout in layouts:
            for recompute in self.space.recomputes:
                self._push(self._computing(mapping, layout, recompute), 1, (mapping, layout, recompute))

    def _computing(self, mapping: Mapping, layout: Layout, recompute: Recompute) -> float:
        """What computing takes at least."""
        key = (mapping.tp, mapping.cp, mapping.ep, mapping.micro_batch, recompute)
        one = Candidate(mapping, layout, recompute, 0, self.space.orders(mapping)[0])
        plan = self._made(one)
        if key not in self.works:
            self.works[key] = work_of(pieces_of(plan, self.space.shape, self.chip, self.free))
        return float(self._least(plan, self.works[key]))

    def _least(self, plan: Plan, work: Work) -> Floats:
        return self.fixed + makespan_bound(skeleton(self.space.shape, plan), work, plan.passes)

    def _made(self, one: Candidate) -> Plan:
        return make_plan(self.space.config(one), self.space.shape, self.space.ranks, self.space.node)

    # Step 2: memory.

    def _pipeline(self, item: tuple[Mapping, Layout, Recompute]) -> None:
        mapping, layout, recompute = item
        orders = self.space.orders(mapping)
        for zero in ZERO:
            one = Candidate(mapping, layout, recompute, zero, orders[0])
            first = self._made(one)
            if self.available is not None and memory(self.space.shape, first).total > self.available:
                self.refused.reasons["does not fit into memory"] += len(orders)
                self.advance(len(orders))
                continue
            bounds = self._by_volume(mapping, first)
            ranked = sorted(zip(bounds.tolist(), orders, strict=True))
            self._push(ranked[0][0], 2, (mapping, first, ranked))

    def _by_volume(self, mapping: Mapping, plan: Plan) -> Floats:
        """What a plan takes with messages at what their bytes take, for each order."""
        if mapping not in self.volumes:
            lying = [_in_order(plan, order).groups for order in self.space.orders(mapping)]
            self.volumes[mapping] = self.volume.among(lying)
        key = (mapping, plan.recompute, plan.zero == 3)
        if key not in self.works:
            prices = self.volumes[mapping]
            self.works[key] = work_of(pieces_of(plan, self.space.shape, self.chip, prices))
        orders = len(self.space.orders(mapping))
        return np.broadcast_to(self._least(plan, self.works[key]) + self._optimizer(plan), orders)

    def _optimizer(self, plan: Plan) -> float:
        return float(optimizer_time(plan, self.space.shape, self.chip))

    # Steps 3 to 5: prices, and the whole.

    def _plan(self, item: tuple[Mapping, Plan, list[tuple[float, tuple[str, ...]]]]) -> None:
        mapping, first, ranked = item
        order, others = ranked[0][1], ranked[1:]
        if others:
            self._push(others[0][0], 2, (mapping, first, others))
        plan = _in_order(first, order)
        groups = plan.groups
        among = [groups.tp.axes, groups.cp.axes, groups.ep.axes, groups.etp.axes]
        if plan.zero == 3:
            among += [groups.shard.axes, groups.replica.axes]
            among += [groups.expert_shard.axes, groups.expert_replica.axes]
        key = (plan.tp, plan.cp, plan.ep, plan.micro_batch, plan.recompute, plan.zero == 3, *among)
        try:
            if key not in self.works:
                self.works[key] = work_of(pieces_of(plan, self.space.shape, self.chip, self.prices))
        except CollectiveError:
            self._misfit()
            return
        self._push(float(self._least(plan, self.works[key])) + self._optimizer(plan), 3, (mapping, plan))

    def _misfit(self) -> None:
        self.refused.reasons["the network has no way for a collective of its groups"] += 1
        self.advance(1)

    def _priced(self, item: tuple[Mapping, Plan]) -> None:
        _, plan = item
        try:
            one = self._evaluate(plan)
        except CollectiveError:
            self._misfit()
            return
        self.found.append(one)
        self.advance(1)
        if self.draw is None:
            self._settle(one, self.objective.of(one))
        else:
            self._push(one.step * (1 - _DRAWN), len(_BOUNDS), one)

    # Step 6: noise.

    def _noisy(self, one: Evaluated) -> None:
        assert self.draw is not None
        number = self.draw(one)
        self.drawn += 1
        self.shortened += number < one.step * (1 - _DRAWN)
        self._settle(one, number)

    def _settle(self, one: Evaluated, number: float) -> None:
        """Keeps a plan if it is the best order of it so far, and looks at what may still be among the best."""
        key = one.without_order
        if key not in self.least or number < self.least[key][0]:
            self.least[key] = number, one
            if len(self.least) >= self.count:
                numbers = np.partition([each for each, _ in self.least.values()], self.count - 1)
                self.limit = float(numbers[self.count - 1]) * (1.0 + self.within)


def _in_order(plan: Plan, order: tuple[str, ...]) -> Plan:
    return replace(plan, order=order, config=plan.config.model_copy(update={"order": order}))
