"""The same experiment on more and more chips.

Each replica of a transformer stays as it is (tp, cp, pp, ep), and there are more of them. *Weak* scaling keeps the
micro-batches of a replica, so the global batch grows with the chips; *strong* scaling keeps the global batch (Amdahl
1967; Gustafson, "Reevaluating Amdahl's law", CACM 31, 1988). A model of `compute` and `exchange` keeps what each rank
computes (weak) or what all compute together (strong); its message stays as it is, as gradients do.

With T(n) the mean step and W(n) the work of a step on n chips, throughput is W/T, efficiency (W/T)/n over that of the
smallest size, and what a doubling brings the ratio of two throughputs, at best 2. Where two sizes are not a doubling apart
it is the geometric mean over the doublings between them.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mc.config import ExperimentConfig, NoiseConfig
from mc.config.cluster import ClusterConfig
from mc.config.shape import SwitchedConfig
from mc.errors import InputError
from mc.estimate import Estimate
from mc.experiment.quiet_step import build_quiet
from mc.experiment.run import run
from mc.goodput import build_failures, goodput
from mc.parallel import PlanError, build_plan, checked_plan, memory
from mc.transformer import build_transformer, flops

Mode = Literal["weak", "strong"]
Advance = Callable[[int], None]

# What a doubling has to bring by default.
WORTH: dict[Mode, float] = {"weak": 1.9, "strong": 1.5}
# Parts of a step that are spent on messages.
_EXPOSED = ("bandwidth", "latency_floor", "exposed_communication", "congestion")


class ScaleError(InputError):
    """An experiment that cannot be had on so many chips."""


@dataclass(frozen=True)
class Times:
    """The step on so many chips; without noise there are no quantiles.

    Attributes:
        mean: seconds.
        p50: seconds.
        p99: seconds.
        exposed: seconds of the mean that messages take which nothing hides.
        straggler: part of the mean that is spent waiting for the slowest.
    """

    mean: Estimate
    p50: Estimate | None
    p99: Estimate | None
    exposed: float
    straggler: Estimate | None


@dataclass(frozen=True)
class ScalePoint:
    """One size.

    Attributes:
        chips: how many.
        replicas: dp; None for a model of `compute` and `exchange`, like all that follows from a plan.
        micro_batches: that go through each replica in a step.
        global_batch: sequences in a step.
        enlarged: units that the outermost tier was given, where the cluster is too small; else None.
        times: of a step.
        work: of a step, in steps of the experiment as it is written.
        tokens_per_s: of all.
        mfu: part of the peak of all chips; None where the model states no FLOP.
        efficiency: throughput of a chip over that of a chip at the smallest size.
        doubling: what a doubling since the size before brings, as a factor on throughput; None for the smallest.
        goodput: part of the time that goes forward in spite of failures, where the experiment has some.
        memory: bytes on the fullest rank.
        problem: why that does not fit; None if it does.
    """

    chips: int
    replicas: int | None
    micro_batches: int | None
    global_batch: int | None
    enlarged: int | None
    times: Times
    work: float
    tokens_per_s: float | None
    mfu: float | None
    efficiency: float
    doubling: Estimate | None
    goodput: float | None
    memory: float | None
    problem: str | None


@dataclass(frozen=True)
class ScaleResult:
    """All sizes.

    Attributes:
        name: of the experiment.
        cluster: its name.
        model: its name.
        outermost: name of the outermost tier.
        units: that it has as written.
        mode: weak or strong.
        samples: steps drawn for each size; 0 without noise.
        worth: what a doubling has to bring.
        points: by size.
        left_out: sizes that cannot be, and why.
    """

    name: str
    cluster: str
    model: str
    outermost: str
    units: int
    mode: Mode
    samples: int
    worth: float
    points: tuple[ScalePoint, ...]
    left_out: tuple[tuple[int, str], ...]

    @property
    def stop(self) -> int | None:
        """Index of the first point whose doubling brings too little; None if all bring enough."""
        for index, point in enumerate(self.points):
            if point.doubling is not None and point.doubling.value < self.worth:
                return index
        return None

    @property
    def with_failures(self) -> tuple[float, ...]:
        """What doublings bring over days, of which failures take a part; none where there are no failures."""
        found = []
        for before, after in itertools.pairwise(self.points):
            if after.doubling is None or after.goodput is None or not before.goodput:
                return ()
            ratio = after.goodput / before.goodput
            found.append(after.doubling.value * ratio ** (1 / math.log2(after.chips / before.chips)))
        return tuple(found)


def scale(
    config: ExperimentConfig,
    chips: Sequence[int],
    *,
    mode: Mode = "weak",
    samples: int = 100,
    worth: float | None = None,
    advance: Advance = lambda count: None,
) -> ScaleResult:
    """An experiment at several sizes.

    Args:
        config: the experiment.
        chips: the sizes.
        mode: what stays: the work of a replica (`weak`) or that of all (`strong`).
        samples: steps to draw for each size; 0 for the step without noise.
        worth: what a doubling has to bring; as `WORTH` says if left out.
        advance: told how many more steps are drawn, or sizes evaluated.

    Raises:
        ScaleError: no size can be.
    """
    points: list[ScalePoint] = []
    left_out: list[tuple[int, str]] = []
    for count in sorted(set(chips)):
        try:
            sized, units = at_size(config, count, mode)
        except InputError as error:
            left_out.append((count, "; ".join(str(error).splitlines())))
            advance(max(samples, 1))
            continue
        points.append(_point(config, sized, units, mode, samples, points, advance))
    if not points:
        reasons = dict.fromkeys(reason for _, reason in left_out)
        raise ScaleError("expected a size that can be; got none: " + "; ".join(reasons))
    return ScaleResult(
        config.name,
        config.cluster.name,
        config.model.name,
        config.cluster.tiers[-1].name,
        config.cluster.tiers[-1].fan_out,
        mode,
        samples,
        WORTH[mode] if worth is None else worth,
        tuple(points),
        tuple(left_out),
    )


def at_size(config: ExperimentConfig, chips: int, mode: Mode) -> tuple[ExperimentConfig, int | None]:
    """The experiment on so many chips, and how many units its outermost tier was given if the cluster is too small.

    Raises:
        InputError: it cannot be; memory is not looked at.
    """
    cluster, units = enlarged(config.cluster, chips)
    plan: dict[str, Any] = {"ranks": chips}
    model = config.model
    if model.transformer is not None:
        given = build_plan(config)
        names = [name for name in ("tp", "cp", "pp") if getattr(given, name) > 1]
        one = given.tp * given.cp * given.pp
        arithmetic = " x ".join(f"{name} {getattr(given, name)}" for name in names) + f" = {one:,} chips"
        if chips < one:
            raise ScaleError(f"one replica takes {arithmetic}")
        if chips % one:
            raise ScaleError(f"no whole number of replicas, each of {arithmetic}")
        replicas = chips // one
        batch = given.global_batch
        if mode == "weak":
            batch = given.global_batch // given.dp * replicas
        plan |= {"dp": None, "global_batch": batch}
    elif mode == "strong":
        compute, share = model.compute, config.ranks / chips
        assert compute is not None
        scaled = {
            name: share * getattr(compute, name)
            for name in ("time", "flop")
            if getattr(compute, name) is not None
        }
        model = model.model_copy(update={"compute": compute.model_copy(update=scaled)})
    sized = config.model_copy(
        update={"cluster": cluster, "model": model, "plan": config.plan.model_copy(update=plan)}
    )
    if model.transformer is not None:
        build_plan(sized)
    return sized, units


def enlarged(cluster: ClusterConfig, chips: int) -> tuple[ClusterConfig, int | None]:
    """The cluster with so many chips or more, and how many units its outermost tier was given for that, if it was.

    Raises:
        ScaleError: that tier cannot be enlarged.
    """
    if chips <= cluster.size:
        return cluster, None
    *inner, outer = cluster.tiers
    if not (outer.shape is None or isinstance(outer.shape, SwitchedConfig)):
        raise ScaleError(
            f"the cluster has {cluster.size:,} chips, and its outermost tier, the {outer.shape.kind} "
            f"`{outer.name}`, cannot be enlarged"
        )
    units = -(-chips // math.prod(tier.fan_out for tier in inner))
    while True:
        tiers = (*inner, outer.model_copy(update={"fan_out": units}))
        found = cluster.model_copy(update={"tiers": tiers})
        # Units may be smaller than they should be.
        if found.size >= chips:
            return found, units
        units += 1


def _point(
    config: ExperimentConfig,
    sized: ExperimentConfig,
    enlarged: int | None,
    mode: Mode,
    samples: int,
    before: Sequence[ScalePoint],
    advance: Advance,
) -> ScalePoint:
    chips, transformer = sized.ranks, sized.model.transformer
    replicas = micro_batches = batch = held = problem = None
    if transformer is not None:
        shape, plan = build_transformer(transformer), build_plan(sized)
        replicas, micro_batches, batch = plan.dp, plan.micro_batches, plan.global_batch
        work = batch / build_plan(config).global_batch
        tokens = batch * plan.sequence_length
        flop = flops(shape, plan.sequence_length, batch, sized.plan.recompute).model
        number_format = plan.formats.math
        held = float(memory(shape, plan).total)
        try:
            checked_plan(sized)
        except PlanError as error:
            problem = str(error)
        sized = with_enough_memory(sized)
    else:
        compute, tokens = sized.model.compute, None
        assert compute is not None
        work = chips / config.ranks if mode == "weak" else 1.0
        flop = None if compute.flop is None else chips * compute.flop
        number_format = compute.format
    times = _sampled(sized, samples, advance) if samples else _quiet(sized)
    if not samples:
        advance(1)
    peak = None
    if number_format is not None:
        kinds = sized.cluster.chips(chips)
        peak = sum(count * chip.peak.offered[number_format] for count, chip, _ in kinds)
    mean = times.mean.value
    first = before[0] if before else None
    efficiency = 1.0
    if first is not None:
        efficiency = work / mean / chips / (first.work / first.times.mean.value / first.chips)
    going = None
    if sized.failures is not None:
        going = float(
            goodput(chips, build_failures(sized.failures, sized.mitigations.spares), mean).effective_ratio
        )
    return ScalePoint(
        chips=chips,
        replicas=replicas,
        micro_batches=micro_batches,
        global_batch=batch,
        enlarged=enlarged,
        times=times,
        work=work,
        tokens_per_s=None if tokens is None else tokens / mean,
        mfu=None if flop is None or peak is None else flop / peak / mean,
        efficiency=efficiency,
        doubling=_doubling(before[-1], chips, work, times.mean) if before else None,
        goodput=going,
        memory=held,
        problem=problem,
    )


def _doubling(last: ScalePoint, chips: int, work: float, now: Estimate) -> Estimate:
    more, each, then = work / last.work, 1 / math.log2(chips / last.chips), last.times.mean

    def brought(before: float, after: float) -> float:
        # An interval of few samples has no end, or reaches down to nothing.
        if not math.isfinite(after) or before <= 0:
            return 0.0
        return (more * before / after) ** each if after > 0 else math.inf

    return Estimate(brought(then.value, now.value), brought(then.low, now.high), brought(then.high, now.low))


def with_enough_memory(config: ExperimentConfig) -> ExperimentConfig:
    """The same on chips whose memory has no end, for steps that are to be timed whether they fit or not."""
    enough = {"memory_size": None}
    tiers = tuple(
        tier.model_copy(
            update={
                "exceptions": tier.exceptions
                and tuple(
                    each.model_copy(update={"chip": each.chip and each.chip.model_copy(update=enough)})
                    for each in tier.exceptions
                )
            }
        )
        for tier in config.cluster.tiers
    )
    cluster = {"chip": config.cluster.chip.model_copy(update=enough), "tiers": tiers}
    return config.model_copy(update={"cluster": config.cluster.model_copy(update=cluster)})


def _sampled(config: ExperimentConfig, samples: int, advance: Advance) -> Times:
    how = config.run.model_copy(
        update={"samples": samples, "realisations": min(config.run.realisations, samples)}
    )
    found = run(config.model_copy(update={"run": how}), advance=advance)
    estimates = found.estimates
    exposed = sum(float(found.parts[name].mean()) for name in _EXPOSED if name in found.parts)
    return Times(estimates.mean, estimates.p50, estimates.p99, exposed, found.slowest_rank.share)


def _quiet(config: ExperimentConfig) -> Times:
    if config.model.transformer is not None:
        found = build_quiet(config).breakdown
        seconds, parts = float(found.step), {name: float(part) for name, part in found.parts.items()}
    else:
        tiers = tuple(
            tier.model_copy(update={"jitter": None, "congestion": None}) for tier in config.cluster.tiers
        )
        cluster = config.cluster.model_copy(update={"noise": NoiseConfig(), "tiers": tiers})
        once = config.run.model_copy(update={"samples": 1, "realisations": 1, "method": "exact"})
        drawn = run(config.model_copy(update={"cluster": cluster, "run": once}))
        seconds = float(drawn.samples.mean())
        parts = {name: float(part.mean()) for name, part in drawn.parts.items()}
    exposed = sum(parts[name] for name in _EXPOSED if name in parts)
    return Times(Estimate(seconds, seconds, seconds), None, None, exposed, None)
