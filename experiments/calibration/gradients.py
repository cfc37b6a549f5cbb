"""Do gradients pay? Evaluations of the simulator until a fit is near, with gradients and without.

Truths are drawn from priors, and times of all-reduces over sizes follow from them without scatter; every method
looks for the figures from the same centres, by the same loss, the mean square of log(predicted/true). Four figures: latency and
bandwidth of two plain tiers. Twelve: base latencies, hops and bandwidths of two tiers under NCCL's protocols, whose time is the
least of several ways, with corners where they meet.

An evaluation is one forward run of all times. A gradient by reverse mode is counted as four of them, its value included,
however quick it is in fact: the bound of Griewank and Walther (Evaluating Derivatives, 2nd ed. 2008, section 4.6).
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray
from scipy import optimize

from experiments.nccl_logs.compare import config_of
from experiments.nccl_logs.systems import System
from mc.calibration import Curve, Parameters, parameter_at
from mc.calibration.loss import predictor
from mc.config import ClusterConfig

GRADIENT = 4
BUDGET, QUICK_BUDGET = 4000, 400
TRUTHS, QUICK_TRUTHS = 10, 2
# Root mean square of log(predicted/true).
GOALS = (0.05, 0.01)
_RATE, _BOUND = 0.1, 4.0
_SIZES = np.logspace(2, 9, 12)
Run = Callable[["Loss"], None]


class SpentError(Exception):
    """The budget is spent, or the last goal is reached."""


@dataclass(frozen=True)
class Cost:
    """What one method took.

    Attributes:
        parameters: how many were looked for.
        method: its name.
        goal: root mean square of log(predicted/true).
        reached: how many fits came so near within the budget.
        truths: of so many.
        evaluations: the median over all fits; None where the median fit did not come so near.
        left: the median of where it ended, in the unit of the goal.
    """

    parameters: int
    method: str
    goal: float
    reached: int
    truths: int
    evaluations: float | None
    left: float


class Loss:
    """A loss that counts what is asked of it."""

    def __init__(self, batch: Any, gradient: Any, measured: Any, number: int, budget: int, seed: int):
        self.batch, self.gradient, self.measured = batch, gradient, measured
        self.number, self.budget, self.seed = number, budget, seed
        self.count, self.best = 0, np.inf
        self.reached: dict[float, int] = {}

    def __call__(self, z: NDArray[np.float64]) -> float:
        """One evaluation."""
        found = float(self.batch(np.asarray(z)[None], self.measured)[0])
        self._told(found, 1)
        return found

    def with_gradient(self, z: NDArray[np.float64]) -> tuple[Any, Any]:
        """Value and gradient."""
        value, slope = self.gradient(z, self.measured)
        self._told(float(value), GRADIENT)
        return value, slope

    def many(self, z: NDArray[np.float64]) -> None:
        """Evaluations at once, counted one by one."""
        for each in np.asarray(self.batch(z, self.measured)):
            self._told(float(each), 1)

    def _told(self, value: float, cost: int) -> None:
        self.count += cost
        if self.count > self.budget:
            raise SpentError
        self.best = min(self.best, value if np.isfinite(value) else np.inf)
        for goal in GOALS:
            if np.sqrt(self.best) <= goal:
                self.reached.setdefault(goal, self.count)
        if len(self.reached) == len(GOALS):
            raise SpentError


def costs(
    advance: Callable[[int], None] = lambda done: None,
    *,
    quick: bool = False,
    problems: tuple[int, ...] = (4, 12),
) -> list[Cost]:
    """Of every method on every problem."""
    rows = []
    with jax.enable_x64(True):
        for number in problems:
            rows += _costs(*problem(number), quick=quick)
            advance(1)
    return rows


def problem(number: int) -> tuple[ClusterConfig, Parameters, list[Curve]]:
    """A cluster, its free figures, and the curves that tell of them; their times are not used."""
    if number == 4:
        tiers = [
            {
                "name": "node",
                "link": {"bandwidth": "450 GB/s", "duplex": "each", "latency": "2 us"},
                "fan_out": 8,
            },
            {
                "name": "network",
                "link": {"bandwidth": "50 GB/s", "duplex": "each", "latency": "5 us"},
                "fan_out": 8,
            },
        ]
        config = ClusterConfig.model_validate({"name": "system", "chip": {"peak": {}}, "tiers": tiers})
        paths: list[tuple[str, ...]] = [
            (f"tiers.{tier}.link.{key}",) for tier in ("node", "network") for key in ("latency", "bandwidth")
        ]
        ranks, names = (8, 64), ("ring", "tree")
    else:
        config = config_of(System("system", 8, 8, "NVLink-4", "InfiniBand-NDR", 8))
        paths: list[tuple[str, ...]] = [("tiers.node.link.bandwidth",), ("tiers.network.link.bandwidth",)]
        for name in ("LL", "Simple"):
            below = [f"tiers.{tier}.link.protocols.{name}" for tier in ("node", "network")]
            paths.append(tuple(f"{each}.ring.base_latency" for each in below))
            paths.append(tuple(f"{each}.tree.base_latency" for each in below))
            paths += [(f"{each}.ring.hop_latency",) for each in below]
            paths.append((f"{below[1]}.tree.hop_latency",))
        ranks, names = (8, 64), ("ring", "tree")
    parameters = Parameters(tuple(parameter_at(config, each) for each in paths))
    curves = [
        Curve("all-reduce", n, names, "auto", _SIZES, np.ones(len(_SIZES)), f"{n} ranks") for n in ranks
    ]
    return config, parameters, curves


def _costs(config: ClusterConfig, parameters: Parameters, curves: list[Curve], *, quick: bool) -> list[Cost]:
    predict, number = predictor(config, parameters, curves), len(parameters)

    def logarithms(z: Any) -> Any:
        return jnp.log(jnp.concatenate(predict(z, None)))

    def loss(z: Any, measured: Any) -> Any:
        return jnp.mean((logarithms(z) - measured) ** 2)

    batch = jax.jit(jax.vmap(loss, in_axes=(0, None)))
    gradient = jax.jit(jax.value_and_grad(loss))
    truths = np.random.default_rng(9).normal(size=(QUICK_TRUTHS if quick else TRUTHS, number))
    measured = jax.jit(jax.vmap(logarithms))(truths)
    budget = QUICK_BUDGET if quick else BUDGET
    rows = []
    for name, run in METHODS.items():
        losses = [Loss(batch, gradient, each, number, budget, seed) for seed, each in enumerate(measured)]
        for each in losses:
            with contextlib.suppress(SpentError):
                run(each)
        for goal in GOALS:
            found = np.array([each.reached.get(goal, np.inf) for each in losses])
            middle = float(np.median(found))
            left = float(np.median([np.sqrt(each.best) for each in losses]))
            reached = int(np.isfinite(found).sum())
            rows.append(
                Cost(number, name, goal, reached, len(losses), middle if middle < np.inf else None, left)
            )
    return rows


def _descend(loss: Loss, optimizer: optax.GradientTransformationExtraArgs, **extra: Any) -> None:
    z = jnp.zeros(loss.number)
    state = optimizer.init(z)
    while True:
        value, slope = loss.with_gradient(z)  # pyright: ignore[reportArgumentType]
        updates, state = optimizer.update(
            slope, state, z, **{key: make(value, slope) for key, make in extra.items()}
        )
        z = optax.apply_updates(z, updates)


def _adam(loss: Loss) -> None:
    _descend(loss, optax.with_extra_args_support(optax.adam(_RATE)))


def _quasi_newton(loss: Loss) -> None:
    # Optax's line search evaluates out of sight; scipy's takes the same steps and asks through `loss`.
    def both(z: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, slope = loss.with_gradient(z)
        return float(value), np.asarray(slope)

    for start in _starts(loss):
        optimize.minimize(both, start, jac=True, method="L-BFGS-B", options={"maxiter": 500})


def _random(loss: Loss) -> None:
    generator = np.random.default_rng(loss.seed)
    while True:
        loss.many(generator.normal(size=(200, loss.number)))


def _local(method: str, **options: Any) -> Run:
    def run(loss: Loss) -> None:
        for start in _starts(loss):
            optimize.minimize(loss, start, method=method, options=options)

    return run


def _evolution(loss: Loss) -> None:
    bounds = [(-_BOUND, _BOUND)] * loss.number
    optimize.differential_evolution(loss, bounds, rng=loss.seed, maxiter=10_000, polish=False, tol=0)


def _starts(loss: Loss):
    """The centres of the priors, then draws of them: who ends early begins anew."""
    generator = np.random.default_rng(loss.seed)
    yield np.zeros(loss.number)
    while True:
        yield generator.normal(size=loss.number)


METHODS: dict[str, Run] = {
    "Adam (Optax)": _adam,
    "L-BFGS (scipy)": _quasi_newton,
    "random search": _random,
    "Nelder-Mead": _local("Nelder-Mead", adaptive=True, maxfev=BUDGET),
    "Powell": _local("Powell"),
    "differential evolution": _evolution,
}
