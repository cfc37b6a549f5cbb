r"""The mean or a quantile of a noisy step for other figures of the hardware, under common random numbers.

A step that computes and then exchanges is drawn anew for each set of figures, by one compiled program with the same random numbers:
its quantile is a continuous function of the figures.

A transformer's step costs more to draw than to evaluate. With Q the number at figures x₀, T the step without noise, and e and ε
their elasticities there,

    Q(x) ≈ Q(x₀) · T(x)/T(x₀) · ∏ (x_i/x₀_i)^(e_i − ε_i)

has the value and the gradient of Q at x₀, and bends as T does. The best figures under it are the next x₀, until they stay: a
point where it has the gradient of Q itself. e are pathwise derivatives of the draws (`mc.sensitivity`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mc.advise.allocate import Allocation, Priced, Times, allocate
from mc.config import ExperimentConfig
from mc.config.figures import figures, with_figures
from mc.experiment.build import build, stages_of
from mc.fabric import build_cluster
from mc.sensitivity import training
from mc.sensitivity.derivatives import NUMBERS
from mc.sensitivity.steps import cells_of, times_of

Floats = NDArray[np.float64]
Advance = Callable[[int], None]
# Rounds of a transformer's descent, and relative changes below which figures stay.
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
            start = "cluster.chip.peak." if figure == "peak" else "cluster.chip.memory_bandwidth"
            found[name] = tuple(path for path in known if path.startswith(start))
    return found


def at(config: ExperimentConfig, paths: Mapping[str, tuple[str, ...]], factors: Floats) -> ExperimentConfig:
    """An experiment with so many times as much of some figures."""
    values = {each.path: each.value for each in figures(config)}
    pairs = zip(paths.values(), factors.tolist(), strict=True)
    return with_figures(config, {path: values[path] * factor for some, factor in pairs for path in some})


def barrier_times(config: ExperimentConfig, names: Sequence[str], number: Aim) -> Times:
    """Of rows of factors on figures, the number of each row's steps, by the same random numbers."""
    built = build(config)
    cells = cells_of(config, built, number.samples)
    stages = tuple(stages_of(config, build_cluster(config.cluster)))
    paths = paths_of(config, names)
    flat = [path for some in paths.values() for path in some]
    now = {each.path: each.value for each in figures(config)}
    column = [place for place, some in enumerate(paths.values()) for _ in some]
    one = times_of(config, cells, stages, flat)
    drawn = jax.jit(lambda values: jax.lax.map(one, values))

    def times(rows: Floats) -> Floats:
        values = rows[:, column] * np.array([now[path] for path in flat])
        return number.of(np.asarray(drawn(jnp.asarray(values, jnp.result_type(float))), np.float64))

    return times


def descend(
    config: ExperimentConfig,
    quiet: Times,
    priced: Sequence[Priced],
    budget: float,
    number: Aim,
    *,
    limit: float,
    steps: int,
    advance: Advance,
) -> Allocation:
    """The best figures for a number of a transformer's noisy steps; arguments as for `allocate`, with its steps without noise.

    Raises:
        InputError: the experiment cannot be built, or the budget does not suffice.
    """
    names = [each.name for each in priced]
    paths = paths_of(config, names)
    point, done = np.ones(len(names)), 0
    best: tuple[float, Allocation] | None = None
    first, found, path, stays = 0.0, None, [], False
    for index in range(ROUNDS):
        value, slopes = _drawn(at(config, paths, point), paths, number)
        first = first or value
        if found is not None and (best is None or value < best[0]):
            best = value, found
        path.append(value if best is None else best[0])
        due = steps * (index + 1) // ROUNDS
        advance(due - done)
        done = due
        if found is not None and (stays or index == ROUNDS - 1):
            break
        found = allocate(_surrogate(quiet, point, value, slopes), priced, budget, limit=limit, steps=steps)
        moved = np.abs(np.log(found.factor / point))
        stays, point = bool((moved < _STAYS).all()), found.factor
    advance(steps - done)
    assert best is not None
    return replace(best[1], before=first, time=best[0], path=np.array(path))


def _drawn(
    config: ExperimentConfig, paths: Mapping[str, tuple[str, ...]], number: Aim
) -> tuple[float, Floats]:
    """A number of drawn steps, and its elasticities by name."""
    only = {path for some in paths.values() for path in some}
    times, found = training.elasticities(config, number.samples, only=only)
    by_path = {each.path: each.of(number.name).value for each in found}
    slopes = [sum(by_path.get(path, 0.0) for path in some) for some in paths.values()]
    return float(number.of(times)), np.array(slopes)


def _surrogate(quiet: Times, point: Floats, value: float, slopes: Floats) -> Times:
    """The step without noise, bent to the value and the slopes of a number at a point."""
    moves = _WIDTH * np.eye(len(point))
    # As many rows as the descent has, since what is compiled is for so many.
    count = len(point)
    around = np.ones((max(2 * count + 1, count * (count - 1)), count)) * point
    around[1 : count + 1] *= np.exp(-moves)
    around[count + 1 : 2 * count + 1] *= np.exp(moves)
    logs = np.log(quiet(around))
    own = (logs[count + 1 : 2 * count + 1] - logs[1 : count + 1]) / (2 * _WIDTH)

    def times(rows: Floats) -> Floats:
        bend = np.log(rows / point) @ (slopes - own)
        return value * quiet(rows) / np.exp(logs[0]) * np.exp(bend)

    return times
