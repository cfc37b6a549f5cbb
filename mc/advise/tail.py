"""What each figure of the hardware is worth with noise: to the step's mean and tail, to tokens per joule and per dollar.

Elasticities of the step are those of its draws (`mc.sensitivity`). With T the mean step, of which a chip computes for C, a step takes
J(x, T, C) joules (`mc.energy`), so for a figure x

    e(tokens per joule) = −d ln J/d ln x  along  T ~ x^e(T), C ~ C(x),

by differences over 1 % of x, of which only C(x), without noise, has to be evaluated anew, and only for figures of the chip. Powers
and energies per bit, which do nothing to the step, are among them. A step costs so much per chip-hour and so much per kilowatt-hour,
as far as prices are given; ends of the intervals are those of e(T).
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from mc.config import ExperimentConfig
from mc.config.figures import Figure, figures, with_figures
from mc.energy import EnergyError
from mc.errors import InputError
from mc.estimate import Estimate
from mc.experiment.energy import plan_energy
from mc.experiment.quiet_step import QuietStep, build_quiet
from mc.sensitivity import Elasticity, Sensitivity, sensitivity
from mc.training import computing

Advance = Callable[[int], None]
_STEP = 1e-2
_POWERS = ("power", "idle_power", "host_power", "energy", "adapter_power", "port_power")
_KWH = 3.6e6
CHIP_HOUR, KWH = "chip-hour", "kWh"
# Elasticities below this say nothing.
_NOTHING = 1e-6


@dataclass(frozen=True)
class Prices:
    """What a step costs, in dollars.

    Attributes:
        chip_hour: of a chip for an hour.
        kwh: of a kilowatt-hour.
    """

    chip_hour: float = 0.0
    kwh: float = 0.0


@dataclass(frozen=True)
class TailWorth:
    """One figure.

    Attributes:
        path: where it stands.
        value: what it is, SI.
        step: its elasticities of the step; None if it does nothing to it.
        per_joule: its elasticity of tokens per joule; None where powers are not known.
        per_dollar: of tokens per dollar; None without prices.
    """

    path: str
    value: float
    step: Elasticity | None
    per_joule: Estimate | None
    per_dollar: Estimate | None


@dataclass(frozen=True)
class TailWorths:
    """All figures of the hardware.

    Attributes:
        found: the step.
        tokens_per_joule: None where powers are not known, and
        unknown: which.
        tokens_per_dollar: None without prices.
        worths: the one that matters most to p99 first.
    """

    found: Sensitivity
    tokens_per_joule: float | None
    unknown: str
    tokens_per_dollar: float | None
    worths: tuple[TailWorth, ...]


def parse_prices(texts: Sequence[str]) -> Prices | None:
    """Prices as the command line gives them, `chip-hour=2.50` and `kWh=0.08`; None without any.

    Raises:
        InputError: of something else, or no positive number.
    """
    found: dict[str, float] = {}
    for text in texts:
        name, _, amount = text.partition("=")
        try:
            value = float(amount)
        except ValueError:
            value = math.nan
        if name not in (CHIP_HOUR, KWH) or not 0 < value < math.inf or name in found:
            raise InputError(
                f"--price: expected `{CHIP_HOUR}=DOLLARS` or `{KWH}=DOLLARS`, each once; got {text}"
            )
        found[name] = value
    return Prices(found.get(CHIP_HOUR, 0.0), found.get(KWH, 0.0)) if found else None


def tail_worth(
    config: ExperimentConfig,
    samples: int,
    prices: Prices | None = None,
    *,
    only: Collection[str] = (),
    advance: Advance = lambda count: None,
) -> TailWorths:
    """What figures of the cluster are worth.

    Args:
        config: the experiment, with a transformer.
        samples: steps to draw.
        prices: of a step.
        only: paths of figures that the step is differentiated in; all by default.
        advance: told how many per cent more are done.

    Raises:
        InputError: the experiment cannot be built, or a price of energy is given and powers are not.
    """
    if config.model.transformer is None:
        raise InputError("expected a model with a `transformer`; got `compute` and `exchange`")
    found = sensitivity(config, samples, only=only, advance=advance)
    quiet = build_quiet(config)
    mean = found.numbers["mean"].value
    try:
        energy: _Energy | None = _Energy(config, quiet, mean)
        unknown = ""
    except EnergyError as error:
        energy, unknown = None, "; ".join(str(error).splitlines())
        if prices is not None and prices.kwh:
            raise
    by_path = {each.path: each for each in found.elasticities if each.path.startswith("cluster.")}
    powers = [
        each
        for each in figures(config)
        if energy is not None and each.path.rsplit(".", 1)[-1] in _POWERS and each.value > 0
    ]
    asked = {each.path: each for each in figures(config) if each.path in by_path}
    worths = [
        _worth(figure, by_path.get(figure.path), energy, prices, mean, quiet.plan.ranks)
        for figure in (*asked.values(), *(each for each in powers if each.path.startswith("cluster.")))
    ]
    worths = [each for each in worths if each.step is not None or _matters(each.per_joule)]
    worths.sort(key=lambda each: -abs(each.step.p99.value) if each.step else 0.0)
    tokens = float(quiet.plan.global_batch * quiet.plan.sequence_length)
    joules = None if energy is None else energy.joules(None, 1.0, 0.0)
    dollars = None
    if prices is not None:
        dollars = prices.chip_hour * quiet.plan.ranks * mean / 3600 + prices.kwh * (joules or 0.0) / _KWH
    return TailWorths(
        found,
        None if joules is None else tokens / joules,
        unknown,
        None if dollars is None else tokens / dollars,
        tuple(worths),
    )


class _Energy:
    """Joules of a step with other figures."""

    def __init__(self, config: ExperimentConfig, quiet: QuietStep, mean: float):
        self.config, self.quiet, self.mean = config, quiet, mean
        self.known: dict[tuple[str, float], float] = {}
        self.joules(None, 1.0, 0.0)

    def joules(self, figure: Figure | None, factor: float, elasticity: float) -> float:
        """Of all ranks, with so many times as much of a figure, if the mean step has this elasticity in it."""
        config = self.config
        if figure is not None:
            config = with_figures(config, {figure.path: figure.value * factor})
        seconds = self.mean * factor**elasticity
        works = self._computing(config, figure, factor)
        return plan_energy(config, self.quiet.plan, self.quiet.shape, seconds, works).total

    def _computing(self, config: ExperimentConfig, figure: Figure | None, factor: float) -> float:
        is_of_chip = figure is not None and figure.path.startswith("cluster.chip.")
        if figure is None or not is_of_chip or figure.path.rsplit(".", 1)[-1] in _POWERS:
            figure, factor = None, 1.0
        key = ("" if figure is None else figure.path, factor)
        if key not in self.known:
            quiet = self.quiet if figure is None else build_quiet(config)
            self.known[key] = float(computing(quiet.breakdown, quiet.plan.passes, quiet.mean_attention))
        return self.known[key]


def _worth(
    figure: Figure,
    step: Elasticity | None,
    energy: _Energy | None,
    prices: Prices | None,
    mean: float,
    ranks: int,
) -> TailWorth:
    ends = (0.0, 0.0, 0.0) if step is None else (step.mean.value, step.mean.low, step.mean.high)
    width = math.log1p(_STEP) - math.log1p(-_STEP)

    def slopes(elasticity: float) -> tuple[float, float]:
        """Of joules, and of dollars."""
        if not math.isfinite(elasticity):
            return elasticity, elasticity
        sides = [1 - _STEP, 1 + _STEP]
        joules = [0.0, 0.0] if energy is None else [energy.joules(figure, each, elasticity) for each in sides]
        of_joules = 0.0 if energy is None else math.log(joules[1] / joules[0]) / width
        if prices is None:
            return of_joules, 0.0
        times = [mean * each**elasticity for each in sides]
        dollars = [
            prices.chip_hour * ranks * seconds / 3600 + prices.kwh * used / _KWH
            for seconds, used in zip(times, joules, strict=True)
        ]
        return of_joules, math.log(dollars[1] / dollars[0]) / width

    found = [slopes(each) for each in ends]
    per_joule, per_dollar = (_negative([each[place] for each in found]) for place in (0, 1))
    return TailWorth(
        figure.path,
        figure.value,
        step,
        None if energy is None else per_joule,
        None if prices is None else per_dollar,
    )


def _negative(slopes: Sequence[float]) -> Estimate:
    value, *ends = (-each for each in slopes)
    return Estimate(value, min(ends), max(ends))


def _matters(one: Estimate | None) -> bool:
    return one is not None and abs(one.value) > _NOTHING
