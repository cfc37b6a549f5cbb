"""Plans without noise: different ones one after the other, and one with many sets of numbers.

The plans are those of three models on the clusters that trained them, with up to 16 stages, 8 to 128 micro-batches and 1 to 7
parts per stage. What is made once for a cluster (tables of prices) is not in the figures; what is made once for a
schedule is in the first of them, what is found out about the critical path in a few evaluations (cones, `mc.pipeline.critical`)
in the first two. Calculon evaluates 209 plans a second (Isaev et al., SC 2023, on a machine of theirs).
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import jax
import numpy as np

from benchmarks.measure import Finding, at_least, best_of, ratio, seconds
from mc.config import PlanConfig, load_cluster, load_model
from mc.errors import InputError
from mc.fabric import build_cluster
from mc.parallel import Group, Plan, make_plan
from mc.pipeline import Transfer, levels_of, makespan_of
from mc.training import (
    Chip,
    Price,
    TabulatedPrices,
    build_chip,
    build_prices,
    evaluate,
    evaluate_many,
    table_of,
    times_of,
)
from mc.transformer import Transformer, build_transformer

# Model, cluster, ranks, tokens of a sequence, ranks that may share matrices, that share experts, parts per stage.
_JOBS = (
    ("llama3-405b", "llama3-24k", 8192, 8192, (8,), 1, (1, 2, 4, 7)),
    ("gpt3-175b", "selene-3072", 1024, 2048, (4, 8), 1, (1, 2, 3, 6)),
    ("deepseek-v3", "h800-2048", 2048, 4096, (1, 2), 32, (1, 2, 3)),
)
_SCHEDULES = ("1f1b", "interleaved", "zb-h1", "dualpipe", "gpipe")
# Of a job: schedule, stages, micro-batches, parts per stage.
_KNOWN = (
    (0, "1f1b", 16, 16, 1),
    (0, "interleaved", 16, 16, 7),
    (1, "1f1b", 8, 64, 1),
    (1, "interleaved", 8, 32, 3),
    (2, "1f1b", 16, 64, 1),
    (2, "dualpipe", 16, 64, 1),
)
# Factors on all numbers, up and down.
_SPREAD = 1.2


class _Job(NamedTuple):
    shape: Transformer
    chip: Chip
    prices: TabulatedPrices


class _Scaled(NamedTuple):
    """Prices whose latencies and bandwidths are those of many clusters."""

    source: TabulatedPrices
    latency: np.ndarray
    bandwidth: np.ndarray

    def price(self, collective: str, group: Group, size: float) -> Price:
        found = self.source.price(collective, group, size)
        return Price(found.latency * self.latency, found.bandwidth * self.bandwidth) if group.axes else found

    def tier(self, group: Group) -> int:
        return self.source.tier(group)


def run(*, quick: bool) -> Iterator[Finding]:
    """The targets of evaluations without noise."""
    few, repeats = (30, 2) if quick else (240, 5)
    yield from _different(few, repeats)
    for known in _KNOWN:
        yield from _many(known, 1 << (13 if quick else 16), repeats)


@cache
def _job(place: int) -> _Job:
    model, cluster, *_ = _JOBS[place]
    transformer, system = load_model(model).transformer, load_cluster(cluster)
    assert transformer is not None
    assert system.chip is not None
    return _Job(build_transformer(transformer), build_chip(system.chip), build_prices(build_cluster(system)))


def _plan(place: int, schedule: str, stages: int, micro_batches: int, chunks: int, **keys: Any) -> Plan:
    _, _, ranks, tokens, sharing, experts, _ = _JOBS[place]
    tp = keys.pop("tp", sharing[-1])
    dp = ranks // (tp * stages)
    told = {
        "tp": tp,
        "pp": stages,
        "ep": experts,
        "schedule": schedule,
        "chunks": chunks,
        "global_batch": dp * micro_batches * keys.get("micro_batch", 1),
        "sequence_length": tokens,
        "layers_per_stage": "spread",
        "zero": 1,
        "overlap": {"pipeline": True},
    }
    return make_plan(PlanConfig.model_validate(told | keys), _job(place).shape, ranks)


def _mix(count: int) -> list[tuple[int, Plan]]:
    """So many plans of all that there are, evenly over models and numbers."""
    found = []
    for place, (*_, sharing, _, parts) in enumerate(_JOBS):
        grid = itertools.product(
            _SCHEDULES, (1, 2, 4, 8, 16), (8, 16, 32, 64, 128), parts, sharing, (1, 2), (False, True)
        )
        for schedule, stages, micro_batches, chunks, tp, size, is_hidden in grid:
            if (schedule == "interleaved") != (chunks > 1) or (stages == 1 and schedule != "1f1b"):
                continue
            keys = {"tp": tp, "micro_batch": size, "overlap": {"pipeline": is_hidden}}
            try:
                found.append((place, _plan(place, schedule, stages, micro_batches, chunks, **keys)))
            except InputError:
                continue  # not a plan: a schedule has its own limits
    return found[:: max(1, len(found) // count)]


def _different(count: int, repeats: int) -> Iterator[Finding]:
    mix = _mix(count)
    passes = itertools.count()

    def with_other_numbers(step: Callable[[Plan, _Job], Any]) -> None:
        # No two passes are alike.
        factor = _SPREAD ** np.random.default_rng(next(passes)).uniform(-1.0, 1.0)
        jobs = [_job(place) for place in range(len(_JOBS))]
        chips = [replace(each.chip, memory_bandwidth=each.chip.memory_bandwidth * factor) for each in jobs]
        for place, plan in mix:
            step(plan, jobs[place]._replace(chip=chips[place]))

    def whole() -> None:
        with_other_numbers(lambda plan, job: evaluate(plan, *job))

    def forgetful(*names: tuple[str, str]) -> float:
        for module, name in names:
            getattr(import_module(module), name).cache_clear()
        return seconds(whole)

    # Makes the tables of prices.
    whole()
    cones = (("mc.pipeline.critical", "critical"), ("mc.parallel.messages", "messages"))
    schedules = (("mc.pipeline.registry", "_build"), ("mc.pipeline.levels", "_cached"))
    first = min(forgetful(*cones, *schedules) for _ in range(repeats))
    note = f"{len(mix)} plans, hardly two of one schedule; Calculon: 209/s, as published"
    yield at_least("different plans, schedules laid out for each", len(mix) / first, "/s", 209, note)
    known = min(forgetful(*cones) for _ in range(repeats))
    note = "the same, each for the first time otherwise"
    yield at_least("different plans, schedules known", len(mix) / known, "/s", 209, note)
    for _ in range(8):
        whole()
    again = best_of(whole, repeats=repeats)
    note = "the same with other memory bandwidths in every pass, in floats"
    yield at_least("different plans, cones known", len(mix) / again, "/s", 1000, note)
    note = "with a loop over operations in Python for each pipeline"
    loops = ratio(lambda: with_other_numbers(_with_loops), whole, repeats=repeats)
    yield at_least("different plans, over loops", loops, "x", 1.5, note)


def _with_loops(plan: Plan, job: _Job) -> None:
    """What takes the time in an evaluation without cones."""
    times = times_of(plan, job.shape, job.chip, job.prices)
    table = np.asarray(table_of(times, lambda each: each.seconds), np.float64)
    levels = levels_of(plan.schedule, plan.pp, plan.micro_batches, plan.chunks)
    forward, backward = (price.seconds for price in times.transfer)
    late = Transfer(forward, backward, blocking=not plan.overlap.pipeline)
    makespan_of(levels, table, transfer=late)
    makespan_of(levels, table)


def _many(known: tuple[int, str, int, int, int], count: int, repeats: int) -> Iterator[Finding]:
    place, schedule, stages, micro_batches, chunks = known
    job = _job(place)
    plan = _plan(place, schedule, stages, micro_batches, chunks)
    chip, prices = _varied(job, count)
    time = best_of(lambda: evaluate_many(plan, job.shape, chip, prices).step, repeats=repeats)
    name = f"{_JOBS[place][0]}, {schedule}, p = {stages}, m = {micro_batches}, v = {plan.chunks}"
    note = f"{count:,} sets of peaks, bandwidths, latencies and efficiencies, {_SPREAD - 1:.0%} up and down"
    yield at_least(name, count / time / 1e3, "thousand/s", 100, note)
    one = jax.tree.map(lambda number: float(number[0]) if np.ndim(number) else number, chip)
    each = best_of(_alone(plan, job, one), repeats=repeats) / _ALONE
    yield at_least(f"{name}: over one at a time", each * count / time, "x", 30, "in floats, cones known")


_ALONE = 20


def _alone(plan: Plan, job: _Job, chip: Chip) -> Callable[[], None]:
    def several() -> None:
        for _ in range(_ALONE):
            evaluate(plan, job.shape, chip, job.prices)

    return several


def _varied(job: _Job, count: int) -> tuple[Chip, _Scaled]:
    rng = np.random.default_rng(0)

    def factor() -> np.ndarray:
        return _SPREAD ** rng.uniform(-1.0, 1.0, count)

    chip = jax.tree.map(lambda number: number * factor(), replace(job.chip, efficiency=job.chip.efficiency))
    return chip, _Scaled(job.prices, factor(), factor())
