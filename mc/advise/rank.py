"""Plans by their tail: the best without noise, drawn with it.

All plans are drawn from the same key, so that what ranks and links have in common does not tell them apart (common random
numbers; Law, *Simulation Modeling and Analysis*, 5th ed., 11.2).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax

from mc.advise.search import Evaluated
from mc.config import ExperimentConfig
from mc.estimate import Estimate, mean_estimate, quantile_estimate
from mc.experiment.run_training import draw_training

Advance = Callable[[int], None]


@dataclass(frozen=True)
class Drawn:
    """A plan with noise.

    Attributes:
        found: the plan.
        mean: seconds of a step.
        p99: seconds.
    """

    found: Evaluated
    mean: Estimate
    p99: Estimate


def by_tail(
    config: ExperimentConfig,
    plans: Sequence[Evaluated],
    samples: int,
    advance: Advance = lambda count: None,
) -> tuple[Drawn, ...]:
    """Plans by their p99, the least first.

    Args:
        config: the experiment, whose noise and seed count.
        plans: that are compared.
        samples: steps to draw of each.
        advance: told how many more steps are drawn.

    Raises:
        InputError: a plan cannot be drawn.
    """
    key = jax.random.key(config.run.seed, impl="threefry2x32")
    run = config.run.model_copy(update={"samples": samples})
    found = []
    for each in plans:
        one = config.model_copy(update={"plan": each.plan.config, "run": run})
        drawn = draw_training(one, key, advance)
        times = sum(drawn.parts.values())
        found.append(
            Drawn(
                each,
                mean_estimate(times, config.run.confidence)[0],
                quantile_estimate(times, 0.99, config.run.confidence)[0],
            )
        )
    return tuple(sorted(found, key=lambda each: each.p99.value))
