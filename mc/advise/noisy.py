r"""The mean or a quantile of a noisy step for other figures of the hardware, under common random numbers.

To draw steps costs more than to guess them. With Q the number at figures x₀, G a guess of it, and e and ε their elasticities there,

    Q(x) ≈ Q(x₀) · G(x)/G(x₀) · ∏ (x_i/x₀_i)^(e_i − ε_i)

has the value and the gradient of Q at x₀, and bends as G does. The best figures under it are the next x₀, until they stay: a
point where it has the gradient of Q itself. For a transformer G is the step without noise and e are pathwise derivatives of the
draws (`mc.sensitivity`). For ranks that compute and then exchange G is the number of computing alone, over the peak, and the
exchange on idle links; e are differences of draws with the same random numbers, whose quantiles are continuous in the figures.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from mc.advise.allocate import Allocation, Priced, Times, allocate
from mc.config import ExperimentConfig
from mc.config.figures import figures, with_figures
from mc.experiment.build import build, stages_of
from mc.experiment.steps_under import cells_of, compute_of, exchange_of, idle_exchange_of
from mc.fabric import build_cluster
from mc.sensitivity import training
from mc.sensitivity.derivatives import NUMBERS

Floats = NDArray[np.float64]
# The number of the steps that are drawn, and its elasticities, for a set of figures.
Drawn = Callable[[Floats], tuple[float, Floats]]
Advance = Callable[[int], None]
PEAK = "peak"
# Rounds of the descent, and relative changes below which figures stay.
ROUNDS, _STAYS = 5, 0.01
_WIDTH = 5e-3


@dataclass(frozen=True)
class Aim:
    """What of a step is to be least.

    Attributes:
        name: `mean`, `p50` or `p99`.
        samples: steps to draw, about.
    """

    name: str
    samples: int

    def of(self, times: Floats) -> Floats:
        """Of steps, [..., realisations, steps]."""
        probability, drawn = NUMBERS[self.name], times.reshape(*times.shape[:-2], -1)
        if probability is None:
            return drawn.mean(axis=-1)
        return np.quantile(drawn, probability, axis=-1, method="inverted_cdf")


def paths_of(config: ExperimentConfig, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Where the figures that cost something stand, by name: `peak`, `memory bandwidth`, `bandwidth of TIER`, `latency of TIER`."""
    known = [each.path for each in figures(config)]
    found = {}
    for name in names:
        figure, _, tier = name.partition(" of ")
        if tier:
            found[name] = (f"cluster.tiers.{tier}.link.{figure}",)
        else:
            start = "cluster.chip.peak." if figure == PEAK else "cluster.chip.memory_bandwidth"
            found[name] = tuple(path for path in known if path.startswith(start))
    return found


def at(config: ExperimentConfig, paths: Mapping[str, tuple[str, ...]], factors: Floats) -> ExperimentConfig:
    """An experiment with so many times as much of some figures."""
    values = {each.path: each.value for each in figures(config)}
    pairs = zip(paths.values(), factors.tolist(), strict=True)
    return with_figures(config, {path: values[path] * factor for some, factor in pairs for path in some})


def of_barriers(config: ExperimentConfig, names: Sequence[str], number: Aim) -> tuple[Times, Drawn]:
    """For a step that computes and then exchanges: a guess of its number, and the number as it is drawn.

    Only the peak changes how long ranks compute, whose tables are what takes long: computing is drawn for three peaks, with little
    less and little more of it, and the exchange for all figures.
    """
    built = build(config)
    cells = cells_of(config, built, number.samples)
    stages = tuple(stages_of(config, build_cluster(config.cluster)))
    paths = paths_of(config, names)
    flat = [path for some in paths.values() for path in some]
    now = {each.path: each.value for each in figures(config)}
    column = [place for place, some in enumerate(paths.values()) for _ in some]

    def drawn_for(times: Callable[[Array], Array]) -> Times:
        compiled = jax.jit(lambda values: jax.lax.map(times, values))

        def drawn(rows: Floats) -> Floats:
            values = rows[:, column] * np.array([now[path] for path in flat])
            return np.asarray(compiled(jnp.asarray(values, jnp.result_type(float))), np.float64)

        return drawn

    compute = drawn_for(compute_of(config, cells, stages, flat))
    exchange = drawn_for(exchange_of(config, cells, stages, flat))
    idle = drawn_for(idle_exchange_of(config, stages, flat))
    peak = names.index(PEAK) if PEAK in names else None
    columns = range(len(names))
    places = np.array(
        [0, *(int(each == peak) for each in columns), *(2 * (each == peak) for each in columns)]
    )
    # As long as without a figure that changes it, computing is drawn once.
    seconds = {} if peak is not None else {1.0: compute(np.ones((1, len(names))))}

    def computing(factor: float) -> Floats:
        """With a peak and with less and more of it, [1 or 3, realisations, steps]."""
        if factor not in seconds:
            rows = np.ones((3, len(names)))
            rows[:, peak] = factor * np.exp([0.0, -_WIDTH, _WIDTH])
            seconds[factor] = compute(rows)
        return seconds[factor]

    alone = float(number.of(computing(1.0)[0]))

    def guess(rows: Floats) -> Floats:
        return (alone if peak is None else alone / rows[:, peak]) + idle(rows)

    def drawn(point: Floats) -> tuple[float, Floats]:
        own = computing(1.0 if peak is None else float(point[peak]))
        logs = np.log(number.of(own[places] + exchange(_around(point))))
        count = len(point)
        return float(np.exp(logs[0])), (logs[count + 1 :] - logs[1 : count + 1]) / (2 * _WIDTH)

    return guess, drawn


def of_transformer(config: ExperimentConfig, names: Sequence[str], number: Aim) -> Drawn:
    """A number of a transformer's steps as they are drawn."""
    paths = paths_of(config, names)
    only = {path for some in paths.values() for path in some}

    def drawn(point: Floats) -> tuple[float, Floats]:
        times, found = training.elasticities(at(config, paths, point), number.samples, only=only)
        by_path = {each.path: each.of(number.name).value for each in found}
        slopes = [sum(by_path.get(path, 0.0) for path in some) for some in paths.values()]
        return float(number.of(times)), np.array(slopes)

    return drawn


def descend(
    guess: Times,
    drawn: Drawn,
    priced: Sequence[Priced],
    budget: float,
    *,
    limit: float,
    steps: int,
    advance: Advance,
) -> Allocation:
    """The best figures for a number of noisy steps.

    Args:
        guess: a number that goes about as the one that is drawn, for many sets of figures at once.
        drawn: the number and its elasticities at a set of figures.
        priced: as for `allocate`, like the rest.
        budget: for all of them.
        limit: no figure changes by more than this factor.
        steps: of each descent.
        advance: told of `steps` in all.

    Raises:
        InputError: the experiment cannot be built, or the budget does not suffice.
    """
    point, done = np.ones(len(priced)), 0
    best: tuple[float, Allocation] | None = None
    first, found, path, stays = 0.0, None, [], False
    for index in range(ROUNDS):
        value, slopes = drawn(point)
        first = first or value
        if found is not None and (best is None or value < best[0]):
            best = value, found
        path.append(value if best is None else best[0])
        due = steps * (index + 1) // ROUNDS
        advance(due - done)
        done = due
        if found is not None and (stays or index == ROUNDS - 1):
            break
        found = allocate(_surrogate(guess, point, value, slopes), priced, budget, limit=limit, steps=steps)
        moved = np.abs(np.log(found.factor / point))
        stays, point = bool((moved < _STAYS).all()), found.factor
    advance(steps - done)
    assert best is not None
    return replace(best[1], before=first, time=best[0], path=np.array(path))


def _around(point: Floats) -> Floats:
    """A point, and with less and more of each of its figures, [1 + 2·figures, figures]."""
    moves = _WIDTH * np.eye(len(point))
    return np.concatenate([point[None], point * np.exp(-moves), point * np.exp(moves)])


def _surrogate(guess: Times, point: Floats, value: float, slopes: Floats) -> Times:
    """A guess, bent to the value and the slopes of a number at a point."""
    count = len(point)
    # As many rows as the descent has, since what is compiled is for so many.
    around = np.ones((max(2 * count + 1, count * (count - 1)), count)) * point
    around[: 2 * count + 1] = _around(point)
    logs = np.log(guess(around))
    own = (logs[count + 1 : 2 * count + 1] - logs[1 : count + 1]) / (2 * _WIDTH)

    def times(rows: Floats) -> Floats:
        bend = np.log(rows / point) @ (slopes - own)
        return value * guess(rows) / np.exp(logs[0]) * np.exp(bend)

    return times
