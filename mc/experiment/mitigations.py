"""What each mitigation of stragglers does to an experiment's steps and to its useful throughput.

Every variant is drawn with the seed, the samples and the realisations of the experiment itself (common random numbers), so
differences are those of pairs wherever the same steps are drawn (`mc.results.comparison`).

**Useful throughput** is what a job gets done: n workers that compute for a step of mean T, of whose samples a part u counts, do
n·u/T of it per second; with failures, times the share of days in which the job goes forward. Against the experiment as it is,
with T₀ and d = T − T₀ in the interval of the paired difference, it is (n·u·g)/(n₀·u₀·g₀) · 1/(1 + d/T₀).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mc.config import ExperimentConfig, load_experiment
from mc.document import ConfigError
from mc.errors import InputError
from mc.estimate import Estimate
from mc.experiment.run import run
from mc.goodput import build_failures, goodput
from mc.results import RunResult
from mc.results.comparison import Comparison, compare

Advance = Callable[[int], None]


@dataclass(frozen=True)
class Tried:
    """An experiment with something done about its stragglers.

    Attributes:
        name: what is done.
        found: its steps beside those of the experiment as it is.
        chips: that the job holds.
        useful: part of the samples that count.
        throughput: useful work per second, over that of the experiment as it is.
        per_chip: the same for each chip that the job holds.
    """

    name: str
    found: Comparison
    chips: int
    useful: float
    throughput: Estimate
    per_chip: Estimate


@dataclass(frozen=True)
class Mitigations:
    """Everything that was tried on an experiment.

    Attributes:
        name: of the experiment.
        chips: that it holds as it is.
        result: its steps as it is.
        tried: the least p99 first.
        impossible: what cannot be built, by what is done, with the reason.
    """

    name: str
    chips: int
    result: RunResult
    tried: tuple[Tried, ...]
    impossible: Mapping[str, str]


def default_switches(config: ExperimentConfig) -> tuple[tuple[str, ...], ...]:
    """What may be worth trying on an experiment, as overrides; some of it may not be possible there.

    Chips that stand beside or are taken out come from those of the cluster that are free, or from the job's own where it has
    all of them; then it goes on with whole nodes, so that its exchange stays as even as it was.
    """
    workers = config.workers
    some = sorted({1, max(1, workers // 100)})
    tried = [(f"mitigations.drop_slowest={count}",) for count in some if count < workers]
    of_one = 1 if config.model.transformer is None else config.ranks // workers
    tried += [(*_beside(config, count * of_one), f"mitigations.backup_workers={count}") for count in some]
    if config.model.transformer is None:
        tried += [(f"mitigations.local_steps={steps}",) for steps in (4, 16)]
        tried += [(f"mitigations.delayed_sync={steps}",) for steps in (1, 4)]
        tried += [("plan.algorithm=hierarchical",)] if config.plan.algorithm != "hierarchical" else []
    else:
        tried += [("plan.bucket=25 MB",), ("plan.bucket=1 GB",)]
        # Replicas that shard state cannot go on without each other.
        whole = ("plan.zero=0",) if config.plan.zero else ()
        tried += [whole] if whole else []
        tried += [(*whole, "mitigations.local_steps=4"), (*whole, "mitigations.delayed_sync=1")]
    noise = config.cluster.noise
    if noise.persistent is not None or noise.slow_chips is not None:
        # What is left after 0.5 % are gone has to be whole nodes too.
        removed = max(1, config.cluster.size // 150)
        tried.append((*_beside(config, removed), "mitigations.remove_slowest=0.5 %"))
    if config.failures is not None and not config.failures.spares:
        spares = max(1, config.chips // 500)
        tried.append((*_beside(config, spares), f"mitigations.hot_spares={spares}"))
    return tuple(tried)


def _beside(config: ExperimentConfig, aside: int) -> tuple[str, ...]:
    """What makes room for so many chips beside the ranks."""
    if config.plan.ranks != "all" and config.ranks + aside <= config.cluster.size:
        return ()
    unit = config.cluster.tiers[0].fan_out
    if config.model.transformer is not None:
        unit = max(unit, config.ranks // config.workers)
    return (f"plan.ranks={max((config.cluster.size - aside) // unit, 1) * unit}",)


def variants_of(
    name: str, overrides: Sequence[str], switches: Sequence[Sequence[str]]
) -> tuple[dict[str, ExperimentConfig], dict[str, ConfigError]]:
    """An experiment with each of some switches, by what is done; and those with which it cannot be, with the reason.

    Args:
        name: of the experiment, or its file.
        overrides: of all.
        switches: overrides of each variant.
    """
    variants, refused = {}, {}
    for keys in switches:
        title = ", ".join(key.removeprefix("mitigations.") for key in keys)
        try:
            variants[title] = load_experiment(name, [*overrides, *keys])
        except ConfigError as error:
            refused[title] = error
    return variants, refused


def try_mitigations(
    config: ExperimentConfig,
    variants: Mapping[str, ExperimentConfig],
    advance: Advance = lambda count: None,
    *,
    skip: bool = False,
) -> Mitigations:
    """Draws an experiment and variants of it under the same noise.

    Args:
        config: as it is.
        variants: by what is done.
        advance: told how many more steps are drawn.
        skip: whether to go on without variants that cannot be built, as those that do not fit into memory.

    Raises:
        InputError: one of them cannot be built.
    """
    base = run(config, advance=advance)
    tried, impossible = [], {}
    for name, variant in variants.items():
        try:
            drawn = run(variant.model_copy(update={"run": config.run}), advance=advance)
        except InputError as error:
            if not skip:
                raise
            impossible[name] = " ".join(str(error).split())
            continue
        tried.append(_tried(name, compare(base, drawn), config, variant))
    tried.sort(key=lambda each: each.found.times["p99"].after)
    return Mitigations(config.name, config.chips, base, tuple(tried), impossible)


def _tried(name: str, found: Comparison, config: ExperimentConfig, variant: ExperimentConfig) -> Tried:
    mean = found.times["mean"]
    share = _work(variant, mean.after) / _work(config, mean.before)
    change = mean.difference

    def relative(difference: float) -> float:
        left = 1 + difference / mean.before
        return share / left if left > 0 else float("inf")

    throughput = Estimate(relative(change.value), relative(change.high), relative(change.low))
    chips = config.chips / variant.chips
    per_chip = replace(
        throughput,
        value=throughput.value * chips,
        low=throughput.low * chips,
        high=throughput.high * chips,
    )
    return Tried(name, found, variant.chips, variant.useful, throughput, per_chip)


def _work(config: ExperimentConfig, mean: float) -> float:
    """What counts of a step's work: of workers that all have the same, or of a transformer's batch of a given size."""
    if config.model.transformer is None:
        amount = config.ranks * config.useful
    else:
        assert config.plan.global_batch is not None
        amount = config.plan.global_batch * config.useful
    if config.failures is None:
        return amount
    failures = build_failures(config.failures, config.mitigations.spares)
    return amount * goodput(config.ranks, failures, mean).effective_ratio
