"""What else follows from an experiment whose ranks compute and then exchange: on more ranks, and with faster chips.

All of it in closed form, without a draw: the law of the slowest of n over realisations (`mc.step.marginal`) and the cost of the
exchange among n. Links are idle here; what congestion adds to the run can be given, where the number of ranks stays.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from mc.collectives.choice import Choice, fastest_by_size
from mc.config import ExperimentConfig
from mc.config.mitigations import MitigationsConfig
from mc.delays import AbstractDelay, Mixture, Scaled, Slowest
from mc.errors import InputError
from mc.experiment.build import build_compute, compute_time
from mc.experiment.scale import Mode, at_size
from mc.fabric import build_cluster
from mc.step.compute import Compute, scopes_of
from mc.step.marginal import slowest_over_realisations

Floats = NDArray[np.float64]
# The slowest of so many ranks is drawn at least.
_MOST_RANKS = 2**20
_FACTORS = tuple(2.0 ** (step / 2) for step in range(9))
# Sizes of a map: 1 KiB to 8 GiB, by doublings.
_SIZES = tuple(2.0**power for power in range(10, 34))


# Where a law is looked for, seconds, and what is taken for impossible there.
_TIMES = np.geomspace(1e-10, 1e5, 4001)
_IMPOSSIBLE = 1e-8
# Every so many of the times are looked at first; and so many are evaluated at once.
_ROUGH, _BLOCK = 8, 512


class OutlookError(InputError):
    """An experiment whose step has no closed form here."""


@dataclass(frozen=True)
class SlowestCurve:
    """The slowest of n ranks; seconds.

    Attributes:
        ranks: n.
        median: float64[ranks].
        p99: float64[ranks].
        alone: mean of one rank.
        here: n of the experiment.
    """

    ranks: Floats
    median: Floats
    p99: Floats
    alone: float
    here: int


@dataclass(frozen=True)
class Scaling:
    """The mean step on more and more ranks; all arrays are float64[ranks].

    Attributes:
        ranks: how many.
        here: how many the experiment has.
        steps: mean step by kind of scaling, seconds.
        quiet: likewise without noise.
        computing: mean of one rank that waits for nobody, noise included, likewise.
        exchange: what the exchange takes, seconds.
    """

    ranks: Floats
    here: int
    steps: dict[Mode, Floats]
    quiet: dict[Mode, Floats]
    computing: dict[Mode, Floats]
    exchange: Floats

    def efficiency(self, mode: Mode, *, quiet: bool = False) -> Floats:
        """The part of a step in which a rank computes."""
        if quiet:
            return 1 - self.exchange / self.quiet[mode]
        return self.computing[mode] / self.steps[mode]

    def speedup(self, mode: Mode, *, quiet: bool = False) -> Floats:
        """How many ranks' worth of computing is done: ranks times efficiency."""
        return self.ranks * self.efficiency(mode, quiet=quiet)


@dataclass(frozen=True)
class Saturation:
    """The step with faster chips; noise that is a part of the computing time shrinks with it, seconds of noise do not.

    Attributes:
        factors: how many times as fast chips are.
        noisy: how many times as fast the mean step is.
        quiet: likewise without noise.
        limits: of both with chips that take no time.
        step: mean step as it is, seconds.
    """

    factors: Floats
    noisy: Floats
    quiet: Floats
    limits: tuple[float, float]
    step: float


@dataclass(frozen=True)
class ChoiceMap:
    """The fastest way to carry out the exchange's collective.

    Attributes:
        collective: which.
        sizes: bytes.
        rows: by number of ranks.
        here: ranks and bytes of the experiment.
    """

    collective: str
    sizes: Floats
    rows: tuple[Choice, ...]
    here: tuple[int, float]


def check_outlook(config: ExperimentConfig) -> None:
    """Raises OutlookError if there is no closed form."""
    if config.serving is not None or config.model.compute is None or config.model.exchange is None:
        raise OutlookError("expected a model with `compute` and `exchange`")
    if config.mitigations != MitigationsConfig():
        raise OutlookError("expected an experiment without `mitigations`, whose steps have no closed form")
    if build_compute(config).kinds:
        raise OutlookError("expected chips of one kind")


def slowest_curve(config: ExperimentConfig) -> SlowestCurve:
    """Median and p99 of the slowest of n, from 1 to a million ranks or more; beyond the cluster it has more outermost units."""
    most = max(_MOST_RANKS, config.ranks)
    try:
        compute = build_compute(at_size(config, most, "weak")[0])
    except InputError:
        most, compute = config.cluster.size, build_compute(config)
    ranks = np.unique([*np.geomspace(1, most, 41).round(), config.ranks])
    found = _slowest(compute, ranks)
    return SlowestCurve(ranks, found[:, 1], found[:, 2], float(found[0, 0]), config.ranks)


def sizes_around(ranks: int) -> tuple[int, ...]:
    """Powers of two from few ranks to 4 times as many as there are, by factors of 4, and the number itself."""
    middle = 2 ** (ranks.bit_length() - 1)
    others = [int(middle * 4.0**step) for step in range(-3, 2)]
    return tuple(sorted({*(each for each in others if each != middle and each >= 2), ranks}))


def choice_map(
    config: ExperimentConfig, ranks: Sequence[int], advance: Callable[[int], None] = lambda count: None
) -> ChoiceMap | None:
    """The fastest algorithm and protocol by ranks and size, and at the experiment's own size; None where nothing is chosen."""
    assert config.model.exchange is not None
    collective, size = config.model.exchange.collective, config.model.exchange.size
    if collective in ("barrier", "send-recv") or not size:
        return None
    sizes = np.unique([*_SIZES, size])
    rows = []
    for count in ranks:
        advance(1)
        try:
            cluster = build_cluster(at_size(config, count, "weak")[0].cluster)
            rows.append(fastest_by_size(cluster, collective, count, sizes))
        except InputError:
            # Not every shape of a tier can be enlarged or filled in part.
            continue
    return ChoiceMap(collective, sizes, tuple(rows), (config.ranks, size)) if rows else None


def scaling(config: ExperimentConfig, ranks: Sequence[int], known: ChoiceMap | None = None) -> Scaling:
    """The mean step on several numbers of ranks, with links idle.

    Args:
        config: the experiment.
        ranks: how many.
        known: what exchanges cost, where that was found already and the experiment leaves the choice open.

    Raises:
        InputError: no number of ranks can be.
    """
    is_open = config.plan.algorithm == "auto" and config.plan.protocol == "auto"
    reused = {} if known is None or not is_open else {row.ranks: _at(known, row) for row in known.rows}
    kept: list[int] = []
    exchanges: list[float] = []
    columns: dict[str, list[float]] = {}
    for count in ranks:
        try:
            exchange = reused[count] if count in reused else _exchange(config, count)
            sized: dict[Mode, ExperimentConfig] = {
                "weak": at_size(config, count, "weak")[0],
                "strong": at_size(config, count, "strong")[0],
            }
        except InputError:
            continue
        kept.append(count)
        exchanges.append(exchange)
        for mode, each in sized.items():
            alone, slowest = _slowest(build_compute(each), [1.0, count])[:, 0]
            numbers = {
                "steps": slowest + exchange,
                "quiet": compute_time(each) + exchange,
                "computing": alone,
            }
            for name, value in numbers.items():
                columns.setdefault(f"{mode} {name}", []).append(value)
    if not kept:
        raise OutlookError("expected a number of ranks that can be; got none")
    modes: tuple[Mode, ...] = ("weak", "strong")

    def of(name: str) -> dict[Mode, Floats]:
        return {mode: np.array(columns[f"{mode} {name}"]) for mode in modes}

    return Scaling(
        np.array(kept, np.float64),
        config.ranks,
        of("steps"),
        of("quiet"),
        of("computing"),
        np.array(exchanges),
    )


def saturation(config: ExperimentConfig, exchange: float, congestion: float = 0.0) -> Saturation:
    """The mean step with chips that are 1 to 16 times as fast.

    Args:
        config: the experiment.
        exchange: what its exchange takes with idle links, seconds.
        congestion: what random links add in the mean, seconds.
    """
    # The last is out of reach: what does not shrink with computing is left.
    factors = np.array([*_FACTORS, 1e9])
    noisy, quiet = [], []
    for factor in factors:
        faster = _with_faster_chips(config, factor)
        noisy.append(float(_slowest(build_compute(faster), [config.ranks])[0, 0]) + exchange + congestion)
        quiet.append(compute_time(faster) + exchange)
    speedups = noisy[0] / np.array(noisy), quiet[0] / np.array(quiet)
    limits = float(speedups[0][-1]), float(speedups[1][-1])
    return Saturation(factors[:-1], speedups[0][:-1], speedups[1][:-1], limits, noisy[0])


def exchange_time(config: ExperimentConfig, known: ChoiceMap | None = None) -> float:
    """Seconds of the experiment's exchange with idle links."""
    if known is not None and config.plan.algorithm == "auto" and config.plan.protocol == "auto":
        for row in known.rows:
            if row.ranks == config.ranks:
                return _at(known, row)
    return _exchange(config, config.ranks)


def _at(known: ChoiceMap, row: Choice) -> float:
    return float(row.times[int(np.searchsorted(known.sizes, known.here[1]))])


def _exchange(config: ExperimentConfig, ranks: int) -> float:
    assert config.model.exchange is not None
    cluster = build_cluster(at_size(config, ranks, "weak")[0].cluster)
    found = fastest_by_size(
        cluster,
        config.model.exchange.collective,
        ranks,
        np.array([config.model.exchange.size]),
        config.plan.algorithm,
        protocol=config.plan.protocol,
    )
    return float(found.times[0])


def _slowest(compute: Compute, ranks: Sequence[float] | Floats) -> Floats:
    """Mean, median and p99 of the slowest of several numbers of ranks, float64[ranks, 3]."""
    scopes = scopes_of(compute.persistent, (*compute.shared, *compute.job))
    if all(unit == 1 for unit, _, _ in scopes):
        # Ranks have nothing in common, so the law of one will do.
        return _of_largest(slowest_over_realisations(compute, 1.0), np.asarray(ranks, np.float64))
    laws = [slowest_over_realisations(compute, float(count)) for count in ranks]
    return np.concatenate([_of_largest(law, np.ones(1)) for law in laws])


def _of_largest(law: AbstractDelay, copies: Floats) -> Floats:
    """Mean, median and p99 of the largest of so many draws, float64[copies, 3], off a grid of times where something can happen."""
    rough = _log_finished(law, _TIMES[::_ROUGH])

    def place_of(level: float) -> int:
        begin = _ROUGH * max(int(np.searchsorted(rough, level)) - 1, 0)
        return begin + int(np.searchsorted(_log_finished(law, _TIMES[begin : begin + _ROUGH + 1]), level))

    first, last = place_of(np.log(_IMPOSSIBLE) / copies.min()), place_of(-_IMPOSSIBLE / copies.max())
    times = np.geomspace(_TIMES[max(first - 1, 0)], _TIMES[min(last, _TIMES.size - 1)], _TIMES.size)
    log_finished = _log_finished(law, times)
    rows = []
    for count in copies:
        median, p99 = np.interp(np.log([0.5, 0.99]) / count, log_finished, times)
        late = -np.expm1(count * log_finished)
        rows.append((times[0] + np.trapezoid(late, times), median, p99))
    return np.array(rows)


def _log_finished(law: AbstractDelay, times: Floats) -> Floats:
    # In blocks of one size, for which alone programs are compiled.
    blocks = np.pad(times, (0, -times.size % _BLOCK), mode="edge").reshape(-1, _BLOCK)
    found = [_log_survival(law, jnp.asarray(block, jnp.result_type(float))) for block in blocks]
    log_survival = np.concatenate(found).astype(np.float64)[: times.size]
    with np.errstate(divide="ignore"):
        log_finished = np.log(-np.expm1(np.minimum(log_survival, 0.0)))
    # Rounding must not make it fall.
    return np.maximum.accumulate(np.maximum(log_finished, -1e30))


class _Known(AbstractDelay):
    """A law of which no more is asked than its log S at the times in question, which is known."""

    values: Float[Array, " times"]

    def log_survival(self, t):
        """Of whatever times: as given."""
        del t
        return self.values

    def quantile(self, log_survival):
        """Is not known."""
        raise NotImplementedError


def _log_survival(law: AbstractDelay, times: Float[Array, " times"]) -> Float[Array, " times"]:
    """Log S, with the parts of a law evaluated before it: units of chips are chips again, so one small program serves all of them."""
    match law:
        case Scaled():
            return _log_survival(law.delay, times / law.factor)
        case Slowest():
            return _compiled(Slowest(_Known(_log_survival(law.delay, times)), law.ranks), times)
        case Mixture():
            parts = tuple(_Known(_log_survival(part, times)) for part in law.components)
            return _compiled(Mixture(law.probabilities, parts), times)
        case _:
            return _compiled(law, times)


@eqx.filter_jit
def _compiled(law: AbstractDelay, times: Float[Array, " times"]) -> Float[Array, " times"]:
    return law.log_survival(times)


def _with_faster_chips(config: ExperimentConfig, factor: float) -> ExperimentConfig:
    compute = config.model.compute
    assert compute is not None
    faster = {
        name: getattr(compute, name) / factor
        for name in ("time", "flop")
        if getattr(compute, name) is not None
    }
    model = config.model.model_copy(update={"compute": compute.model_copy(update=faster)})
    return config.model_copy(update={"model": model})
