"""Step times of jobs in which every run has slow chips: do 90 % intervals hold figures that were drawn from the priors?

Three runs of 60 steps, on 256, 512 and 1,024 ranks, of which some per cent are slow. What all wait for are slow chips, so the
data know the product of a chip's time and the slowdown, and each alone only weakly. NumPy alone draws the steps: the slowest of k
slow and n - k other ranks by inversion, with k from a binomial. Variants add `jitter` to the spread, or give an efficiency in place
of a time.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy import stats

from experiments.calibration.recovery import Coverage
from mc.calibration import Parameters, StepRun, fit_runs, step_parameters
from mc.config import ExperimentConfig

RANKS, STEPS = (256, 512, 1024), 60
_LATENCY, _FLOP, _PEAK = 1e-5, 5e13, 1e15
# Of a table of one rank's law, where it is a sum.
_DRAWS = 400_000
_JITTER = {"family": "lognormal", "median": "2 ms", "sigma": 0.5}


@dataclass(frozen=True)
class Variant:
    """An experiment to recover.

    Attributes:
        name: for the table.
        jitter: whether ranks have some beside their spread.
        efficiency: whether what a rank computes is given by one.
    """

    name: str
    jitter: bool = False
    efficiency: bool = False

    @property
    def config(self) -> ExperimentConfig:
        """Where the priors are centred: a chip computes for 100 ms."""
        link = {"bandwidth": "10 GB/s", "duplex": "each", "latency": f"{_LATENCY} s"}
        noise = {
            "spread": {"family": "lognormal", "median": 1, "sigma": 0.03},
            "slow_chips": {"fraction": 0.05, "slowdown": 1.15},
        }
        compute = (
            {"flop": f"{_FLOP / 1e12:g} TFLOP", "format": "bf16", "efficiency": 0.5}
            if self.efficiency
            else {"time": "100 ms"}
        )
        return ExperimentConfig.model_validate(
            {
                "name": self.name,
                "cluster": {
                    "name": "flat",
                    "chip": {"peak": {"bf16": f"{_PEAK / 1e12:g} TFLOP/s"}},
                    "tiers": [{"name": "net", "fan_out": RANKS[-1], "link": link}],
                    "noise": noise | ({"jitter": _JITTER} if self.jitter else {}),
                },
                "model": {
                    "name": "m",
                    "compute": compute,
                    "exchange": {"collective": "all-reduce", "size": "1 B"},
                },
                "plan": {"ranks": RANKS[0], "algorithm": "ring"},
            }
        )

    def drawn(self, values: dict[str, float], generator: np.random.Generator) -> list[StepRun]:
        """Runs under some figures, by their last keys."""
        time = _FLOP / _PEAK / values["efficiency"] if self.efficiency else values["time"]
        if self.jitter:
            table = time * np.exp(values["sigma"] * generator.normal(size=_DRAWS))
            table = np.sort(
                table + values["median"] * np.exp(values["jitter"] * generator.normal(size=_DRAWS))
            )
        else:
            table = None
        runs = []
        for ranks in RANKS:
            slow = generator.binomial(ranks, values["fraction"])
            parts = [
                factor * _slowest(count, time, values["sigma"], table, generator)
                for count, factor in ((ranks - slow, 1.0), (slow, values["slowdown"]))
            ]
            runs.append(StepRun(ranks, np.maximum(*parts) + 2 * (ranks - 1) * _LATENCY))
        return runs


VARIANTS = (
    Variant("slow chips"),
    Variant("slow chips and jitter", jitter=True),
    Variant("slow chips, by efficiency", efficiency=True),
)


def slow_chips(variant: Variant, replications: int, advance: Callable[[int], None]) -> list[Coverage]:
    """How many intervals hold each figure; `advance` is told of each data set."""
    config = variant.config
    parameters = step_parameters(config)
    names = _names(parameters)
    inside = []
    for number in range(replications):
        generator = np.random.default_rng((17, number))
        z = generator.normal(size=len(parameters))
        with jax.enable_x64(True):
            values = np.asarray(parameters.values(jnp.asarray(z)))
        runs = variant.drawn(dict(zip(names, values.tolist(), strict=True)), generator)
        low, _, high = fit_runs(config, runs, parameters, starts=2).interval().T
        inside.append((low < values) & (values < high))
        advance(1)
    shares = np.mean(inside, axis=0).tolist()
    return [
        Coverage(variant.name, name, replications, share) for name, share in zip(names, shares, strict=True)
    ]


def _names(parameters: Parameters) -> list[str]:
    """Last keys, but for the sigma of jitter."""
    return [
        "jitter" if each.name == "cluster.noise.jitter.sigma" else each.name.split(".")[-1]
        for each in parameters.items
    ]


def _slowest(
    count: int, time: float, sigma: float, table: NDArray[np.float64] | None, generator: np.random.Generator
) -> NDArray[np.float64]:
    """The slowest of so many healthy ranks in each step; 0 of none."""
    if not count:
        return np.zeros(STEPS)
    if table is not None:
        return np.array([generator.choice(table, count).max() for _ in range(STEPS)])
    log_level = np.log(generator.uniform(size=STEPS)) / count
    return time * np.exp(sigma * stats.norm.isf(-np.expm1(log_level)))
