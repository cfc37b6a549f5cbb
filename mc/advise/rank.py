"""Plans by their tail: the best without noise, drawn with it, or all that a search by p99 cannot do without.

All plans are drawn from the same key, so that what ranks and links have in common does not tell them apart (common random
numbers; Law, *Simulation Modeling and Analysis*, 5th ed., 11.2).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax

from mc.advise.evaluated import Evaluated
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


class Tails:
    """Draws plans one by one, and keeps what came out.

    Attributes:
        drawn: the plans so far.
    """

    def __init__(self, config: ExperimentConfig, samples: int, advance: Advance = lambda count: None):
        """Takes the experiment, whose noise and seed count, steps to draw of each plan, and who is told how many are drawn."""
        self._key = jax.random.key(config.run.seed, impl="threefry2x32")
        run = config.run.model_copy(update={"samples": samples})
        self._config, self._advance = config.model_copy(update={"run": run}), advance
        self.drawn: list[Drawn] = []

    def __call__(self, one: Evaluated) -> float:
        """The p99 of a plan, seconds.

        Raises:
            InputError: it cannot be drawn.
        """
        config = self._config.model_copy(update={"plan": one.plan.config})
        times = sum(draw_training(config, self._key, self._advance).parts.values())
        confidence = config.run.confidence
        self.drawn.append(
            Drawn(one, mean_estimate(times, confidence)[0], quantile_estimate(times, 0.99, confidence)[0])
        )
        return self.drawn[-1].p99.value

    def ranked(self) -> tuple[Drawn, ...]:
        """All that were drawn, the least p99 first; of a plan the best order."""
        by_plan: dict[str, Drawn] = {}
        for each in sorted(self.drawn, key=lambda each: each.p99.value):
            by_plan.setdefault(each.found.without_order, each)
        return tuple(by_plan.values())


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
    tails = Tails(config, samples, advance)
    for each in plans:
        tails(each)
    return tails.ranked()
