"""The best hardware for an experiment's step under a budget of power or of money.

Figures are the chip's peak (of all formats) and memory bandwidth, and each tier's bandwidth and latency. What one costs is said per
chip, as it is now. In watts the catalog has some of that:

    peak                 power − idle_power of the chip, less what its own links take
    bandwidth of a tier  8·energy·b; in a network of its own with its ports and cards (`mc.energy`)

What has no cost stays as it is, and so does what else a chip draws (idle, hosts). Prices in money are nowhere in the catalog and
never guessed: they are told, or there is no answer. The step is the one without noise, with all figures of the chip's efficiency as
they are; it is evaluated for many sets of figures at once (`mc.training.evaluate_many`). Or its mean, median or p99 under
noise is to be least (`mc.advise.noisy`), which a step that computes and then exchanges has, too.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from mc.advise.allocate import STEPS, Allocation, BudgetError, Priced, allocate
from mc.advise.checks import check_step
from mc.advise.noisy import PEAK, Aim, descend, of_barriers, of_transformer
from mc.config import ExperimentConfig
from mc.document import did_you_mean
from mc.energy import EnergyError, StepEnergy, design
from mc.experiment.quiet_step import QuietStep, build_quiet
from mc.fabric import Cluster, build_cluster
from mc.parallel import Group
from mc.training import Chip, ClusterPrices, ManyPrices, Price, build_prices, evaluate_many
from mc.training.arithmetic import Number
from mc.units import Dimension, UnitError, parse

Floats = NDArray[np.float64]
Advance = Callable[[int], None]
WATTS = "W"
MEMORY, REST = "memory bandwidth", "rest"
# The steepest power of a cost: with more, a factor of 16 is beyond what doubles hold beside other costs.
_STEEPEST = 16
_LINK = ("bandwidth", "latency")
_AMOUNT = re.compile(r"([0-9][0-9.,eE+]*)\s*([A-Za-z$€£¥][\w$€£¥]*)$")
_COST = re.compile(r"(?P<name>[^=]+)=(?P<amount>[^^]+?)\s*(\^\s*(?P<exponent>-?[0-9.]+))?$")


@dataclass(frozen=True)
class Amount:
    """Power, or money.

    Attributes:
        number: in SI, or as it was written.
        unit: `W`, or the currency as it was written.
    """

    number: float
    unit: str


@dataclass(frozen=True)
class Cost:
    """What a figure costs for each chip, as it is now, and how that grows with the figure."""

    name: str
    amount: Amount
    exponent: float


@dataclass(frozen=True)
class Spending:
    """A budget and what it buys.

    Attributes:
        name: of the experiment.
        ranks: how many chips.
        tokens: of a step; None where it has none.
        unit: of costs.
        fixed: of each chip, what does not change.
        now: what everything costs now, for each chip, the fixed part included.
        values: what figures are now, SI.
        allocation: for each chip, without what is fixed.
        constant: figures without a cost.
        number: what of sampled steps is least; None for the step without noise.
    """

    name: str
    ranks: int
    tokens: float | None
    unit: str
    fixed: float
    now: float
    values: tuple[float, ...]
    allocation: Allocation
    constant: tuple[str, ...]
    number: Aim | None = None


def amount(text: str, option: str) -> Amount:
    """Power with a unit, or a number with a currency; raises BudgetError."""
    try:
        return Amount(parse(text, Dimension.POWER), WATTS)
    except UnitError:
        pass
    matched = _AMOUNT.match(text.strip())
    if matched is None:
        raise BudgetError(
            f"{option}: expected a power or an amount of money, such as 18 MW or 900e6 USD; got `{text}`"
        )
    try:
        number = float(matched[1].replace(",", ""))
    except ValueError:
        raise BudgetError(f"{option}: expected a number and a currency; got `{text}`") from None
    return Amount(number, matched[2])


def cost(text: str) -> Cost:
    """`NAME=AMOUNT`, or `NAME=AMOUNT ^EXPONENT`; raises BudgetError."""
    matched = _COST.match(text)
    if matched is None:
        raise BudgetError(
            f"--cost: expected NAME=AMOUNT or NAME=AMOUNT ^EXPONENT, for each chip as it is now; got `{text}`"
        )
    name = matched["name"].strip()
    exponent = matched["exponent"] or ("-1" if name.startswith("latency") else "1")
    try:
        power = float(exponent)
    except ValueError:
        raise BudgetError(f"--cost: {name}: expected a number as exponent; got {exponent}") from None
    if not 0 < abs(power) <= _STEEPEST:
        raise BudgetError(
            f"--cost: {name}: expected an exponent that is not 0, from -{_STEEPEST} to {_STEEPEST}; got {exponent}"
        )
    return Cost(name, amount(matched["amount"], f"--cost: {name}"), power)


def spend(
    config: ExperimentConfig,
    budget: Amount | None,
    told: Sequence[Cost] = (),
    *,
    number: Aim | None = None,
    limit: float = 16.0,
    steps: int = STEPS,
    advance: Advance = lambda count: None,
) -> Spending:
    """The fastest step that a budget for all chips buys.

    Args:
        config: the experiment, on chips of one kind; without a `number` of a transformer.
        budget: of all chips; what they cost now if left out.
        told: costs; in watts they come before those of the catalog.
        number: what of the noisy step is to be least; the step without noise if left out.
        limit: no figure changes by more than this factor.
        steps: of the descent.
        advance: told of each step.

    Raises:
        InputError: the experiment cannot be built, or its costs are not known.
    """
    if config.serving is not None:
        raise BudgetError("expected an experiment of training; got one with `serving`")
    check_step(config)
    quiet = None
    if config.model.transformer is not None:
        quiet = build_quiet(config)
    elif number is None:
        raise BudgetError(
            "expected a model with a `transformer`, or `--by` p99, p50 or mean; got `compute` and `exchange`"
        )
    if number is not None and config.mitigations.is_any:
        raise BudgetError("expected an experiment without `mitigations`, whose steps are not differentiated")
    if len(config.cluster.chips(config.ranks)) > 1:
        raise BudgetError("cluster: expected chips of one kind; got several")
    values = _values(config)
    unit = budget.unit if budget is not None else (told[0].amount.unit if told else WATTS)
    costs = _costs(config, values, unit, told)
    fixed = costs.pop(REST, Priced(REST, 0.0)).cost
    figures = list(costs.values())
    if not figures:
        raise BudgetError(_missing(unit, values))
    now = fixed + sum(each.cost for each in figures)
    ranks = config.ranks
    each = now if budget is None else budget.number / ranks
    if each <= fixed:
        raise BudgetError(
            f"--budget: expected more than {fixed * ranks:.4g} {unit}, which does not depend on figures; "
            f"got {each * ranks:.4g}"
        )
    names, left = [one.name for one in figures], each - fixed
    tokens = None if quiet is None else float(quiet.plan.global_batch * quiet.plan.sequence_length)
    options = {"limit": limit, "steps": steps, "advance": advance}
    if quiet is None:
        assert number is not None
        found = descend(*of_barriers(config, names, number), figures, left, **options)
    else:
        times = _times(quiet, build_cluster(config.cluster), names)
        if number is None:
            found = allocate(times, figures, left, **options)
        else:
            found = descend(times, of_transformer(config, names, number), figures, left, **options)
    return Spending(
        config.name,
        ranks,
        tokens,
        unit,
        fixed,
        now,
        tuple(values[one.name] for one in figures),
        found,
        tuple(name for name in values if name not in costs),
        number,
    )


def _values(config: ExperimentConfig) -> dict[str, float]:
    chip, found = config.cluster.chip, {}
    if config.model.transformer is not None:
        found = {PEAK: chip.peak.offered[config.plan.formats.math], MEMORY: chip.memory_bandwidth or 0.0}
    elif config.model.compute is not None and config.model.compute.format is not None:
        found = {PEAK: chip.peak.offered[config.model.compute.format]}
    for tier in config.cluster.tiers:
        found[f"bandwidth of {tier.name}"] = tier.bandwidth_per_rank
        found[f"latency of {tier.name}"] = tier.link.latency
    return {name: value for name, value in found.items() if value}


def _costs(
    config: ExperimentConfig, values: dict[str, float], unit: str, told: Sequence[Cost]
) -> dict[str, Priced]:
    known = {}
    if unit == WATTS:
        try:
            known = catalog_costs(design(config.cluster), config)
        except EnergyError:
            if not told:
                raise
    for each in told:
        if each.name != REST and each.name not in values:
            raise BudgetError(
                f"--cost: unknown figure `{each.name}`; {did_you_mean(each.name, [*values, REST], most=len(values) + 1)}"
            )
        if each.amount.unit != unit:
            raise BudgetError(
                f"--cost: {each.name}: expected a cost in {unit}; got one in {each.amount.unit}"
            )
        if not each.amount.number > 0:
            raise BudgetError(f"--cost: {each.name}: expected a cost > 0; got {each.amount.number:g}")
        known[each.name] = Priced(each.name, each.amount.number, each.exponent)
    return known


def catalog_costs(drawn: StepEnergy, config: ExperimentConfig) -> dict[str, Priced]:
    """Watts of a chip's figures, and of the rest; `drawn` is a chip's second at its design power."""
    watts = {}
    inside = 0.0
    for tier, each in zip(config.cluster.tiers, drawn.tiers, strict=True):
        if each.inside:
            assert tier.link.energy is not None
            watts[f"bandwidth of {tier.name}"] = own = 8 * tier.link.energy * tier.bandwidth_per_rank
            inside += own
        else:
            watts[f"bandwidth of {tier.name}"] = each.total
    watts = {PEAK: drawn.busy - inside, **watts, REST: drawn.idle + drawn.host}
    return {name: Priced(name, number) for name, number in watts.items() if number > 0}


def _missing(unit: str, values: dict[str, float]) -> str:
    return (
        f"--cost: expected what figures cost in {unit}, for each chip as it is now, such as "
        f"--cost '{PEAK}=20000 {unit}'; got none, and the catalog has no prices. Figures are {', '.join(values)}, and `{REST}`"
    )


class _Sized:
    """Prices that are compiled once for all sizes."""

    def __init__(self, prices: ManyPrices):
        self.prices = prices

    def price(self, collective: str, group: Group, size: Number) -> Price:
        """As `ManyPrices` has it."""
        return self.prices.price(collective, group, jnp.asarray(size, jnp.result_type(float)))  # pyright: ignore[reportArgumentType]

    def tier(self, group: Group) -> int:
        """Index of the outermost tier that a group spans."""
        return self.prices.tier(group)


def _times(quiet: QuietStep, cluster: Cluster, names: Sequence[str]) -> Callable[[Floats], Floats]:
    """Seconds of a step for rows of factors on the figures named."""
    source = build_prices(cluster, quiet.plan.protocol).source
    tiers = {tier.name: place for place, tier in enumerate(cluster.tiers)}
    links = []
    for column, name in enumerate(names):
        figure, _, tier = name.partition(" of ")
        if figure in _LINK:
            links.append((column, figure, tiers[tier]))

    def scaled(row: Float[Array, " figures"]) -> ClusterPrices:
        found = source
        for column, figure, place in links:

            def where(one: ClusterPrices, figure: str = figure, place: int = place) -> Array:
                return getattr(one.cluster.tiers[place].link, figure)

            found = eqx.tree_at(where, found, where(found) * row[column])
        return found

    scale = eqx.filter_jit(eqx.filter_vmap(scaled))

    def times(rows: Floats) -> Floats:
        prices = _Sized(ManyPrices(scale(jnp.asarray(rows, jnp.result_type(float)))))
        chip = _scaled(quiet.chips.chips[0], dict(zip(names, rows.T, strict=True)))
        found = evaluate_many(quiet.plan, quiet.shape, chip, prices, attention=quiet.mean_attention)
        return np.broadcast_to(found.step, rows.shape[:1])

    return times


def _scaled(chip: Chip, factor: dict[str, Floats]) -> Chip:
    if PEAK in factor:
        chip = replace(chip, peak={name: each * factor[PEAK] for name, each in chip.peak.items()})
    if MEMORY in factor:
        chip = replace(chip, memory_bandwidth=chip.memory_bandwidth * factor[MEMORY])
    return chip
