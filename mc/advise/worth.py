r"""What each figure of the hardware is worth: elasticities of the step without noise.

    e = d ln T / d ln x,

so 1 % more of x changes the step by e %. The step is piecewise smooth in every figure: where another term becomes the longest
it has a kink. So both sides are taken, each as a difference of the step itself over `STEP` of the figure,

    e+ = ln(T(x·(1 + h))/T(x)) / ln(1 + h),   e− = ln(T(x)/T(x/(1 + h))) / ln(1 + h),

and what is reported is their mean, with the interval that they span: narrow where the step is smooth, wide at a kink.
Everything that is worked on or waited for takes times of degree −1 in rates and +1 in delays, so scaling all rates up and all
delays down by one factor scales the step: the elasticities of rates add up to −1 less those of delays (Euler's theorem), but
for figures that are pure numbers. A test holds that.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax

from mc.advise.checks import check_step
from mc.config import ExperimentConfig
from mc.config.axes import Axes
from mc.errors import InputError
from mc.experiment.quiet_step import QuietStep, build_quiet
from mc.fabric import Cluster, build_cluster
from mc.parallel import Group
from mc.training import Chip, ClusterPrices, Price, build_prices, evaluate

STEP = 1e-2
# Smaller elasticities are rounding of prices, which are single precision.
_NOTHING = 2e-5
Advance = Callable[[int, int], None]
# What a chip reaches: parts, and times.
_REACHED = (
    "attention",
    "memory",
    "kernel",
    "launch",
    "collective_launch",
    "pass_launch",
    "wait",
    "step",
    "overlap",
)


class WorthError(InputError):
    """An experiment whose figures have no elasticities here."""


@dataclass(frozen=True)
class Worth:
    """One figure.

    Attributes:
        name: which.
        number: what it is, SI.
        elasticity: of the step.
        sides: with less of it, and with more.
    """

    name: str
    number: float
    elasticity: float
    sides: tuple[float, float]

    @property
    def low(self) -> float:
        """The smaller side."""
        return min(self.sides)

    @property
    def high(self) -> float:
        """The larger side."""
        return max(self.sides)


@dataclass(frozen=True)
class Worths:
    """All figures, the one that matters most first.

    Attributes:
        name: of the experiment.
        step: seconds without noise.
        worths: of figures that matter at all.
    """

    name: str
    step: float
    worths: tuple[Worth, ...]


@dataclass(frozen=True)
class Number:
    """A figure that may change.

    Attributes:
        name: which.
        value: what it is.
        scaled: the chip and the cluster with so many times as much of it.
    """

    name: str
    value: float
    scaled: Callable[[Chip, Cluster, float], tuple[Chip, Cluster]]


def worth(config: ExperimentConfig, advance: Advance = lambda done, of: None) -> Worths:
    """How the step without noise depends on each figure of the chip and of its links that is not 0.

    Args:
        config: the experiment, with a transformer on chips of one kind.
        advance: told how many figures are done, and of how many.

    Raises:
        InputError: the experiment cannot be built.
    """
    if config.model.transformer is None:
        raise WorthError("expected a model with a `transformer`; got `compute` and `exchange`")
    check_step(config)
    quiet, cluster = build_quiet(config), build_cluster(config.cluster)
    chip, *others = quiet.chips.chips
    if others:
        raise WorthError("cluster: expected chips of one kind; got several")
    numbers = tuple(_numbers(quiet, cluster))
    known = _Floats(build_prices(cluster, quiet.plan.protocol).source)
    base, found, width = _step(quiet, chip, known), [], math.log1p(STEP)
    for done, each in enumerate(numbers, 1):

        def at(factor: float, each: Number = each) -> float:
            other, links = each.scaled(chip, cluster, factor)
            same = links is cluster
            prices = known if same else _Floats(build_prices(links, quiet.plan.protocol).source)
            return _step(quiet, other, prices)

        sides = math.log(base / at(1 / (1 + STEP))) / width, math.log(at(1 + STEP) / base) / width
        if any(abs(side) > _NOTHING for side in sides):
            found.append(Worth(each.name, each.value, sum(sides) / 2, sides))
        advance(done, len(numbers))
    found.sort(key=lambda one: -abs(one.elasticity))
    return Worths(config.name, base, tuple(found))


def _step(quiet: QuietStep, chip: Chip, prices: "_Floats") -> float:
    return float(evaluate(quiet.plan, quiet.shape, chip, prices, attention=quiet.mean_attention).step)


class _Floats:
    """Prices as floats, each message by itself, since tables interpolate; asked for once."""

    def __init__(self, source: ClusterPrices):
        """Args: source, of the prices."""
        self.source = source
        self.known: dict[tuple[str, Axes, float], Price] = {}

    def price(self, collective: str, group: Group, size: Any) -> Price:
        """What a collective of a group costs."""
        key = (collective, group.axes, size)
        if key not in self.known:
            with jax.disable_jit():
                found = self.source.price(collective, group, size)
            self.known[key] = Price(float(found.latency), float(found.bandwidth))
        return self.known[key]

    def tier(self, group: Group) -> int:
        """Index of the outermost tier that a group spans; -1 for one rank."""
        return self.source.tier(group)


def _numbers(quiet: QuietStep, cluster: Cluster):
    chip, formats = quiet.chips.chips[0], quiet.plan.formats
    for name in dict.fromkeys((formats.math, formats.attention, "bf16")):
        if name in chip.peak:
            yield Number(f"peak, {name}", float(chip.peak[name]), _peak(name))
    yield Number(
        f"chip.efficiency.matmul, {formats.math}",
        float(chip.efficiency.matmul[formats.math]),
        _matmul(formats.math),
    )
    yield Number("memory bandwidth", float(chip.memory_bandwidth), _memory)
    for name in _REACHED:
        value = float(getattr(chip.efficiency, name))
        if value:
            yield Number(f"chip.efficiency.{name}", value, _reached(name))
    for place, tier in enumerate(cluster.tiers):
        for name in ("bandwidth", "latency"):
            value = float(getattr(tier.link, name))
            if value:
                yield Number(f"{name} of {tier.name}", value, _link(place, name))


def _peak(name: str):
    return lambda chip, cluster, factor: (
        replace(chip, peak=chip.peak | {name: chip.peak[name] * factor}),
        cluster,
    )


def _matmul(name: str):
    def scaled(chip: Chip, cluster: Cluster, factor: float) -> tuple[Chip, Cluster]:
        matmul = chip.efficiency.matmul
        return replace(
            chip, efficiency=replace(chip.efficiency, matmul=matmul | {name: matmul[name] * factor})
        ), cluster

    return scaled


def _memory(chip: Chip, cluster: Cluster, factor: float) -> tuple[Chip, Cluster]:
    return replace(chip, memory_bandwidth=chip.memory_bandwidth * factor), cluster


def _reached(name: str):
    def scaled(chip: Chip, cluster: Cluster, factor: float) -> tuple[Chip, Cluster]:
        reached = replace(chip.efficiency, **{name: getattr(chip.efficiency, name) * factor})
        return replace(chip, efficiency=reached), cluster

    return scaled


def _link(place: int, name: str):
    def scaled(chip: Chip, cluster: Cluster, factor: float) -> tuple[Chip, Cluster]:
        def where(one: Cluster) -> Any:
            return getattr(one.tiers[place].link, name)

        return chip, eqx.tree_at(where, cluster, where(cluster) * factor)

    return scaled
