"""The share of a job's time that makes it go forward.

Chips fail independently after exponential times, so n of them interrupt the job at the rate Λ = n/mtbf, M = 1/Λ apart;
links, where they are counted apart, add n·l/mtbf_link. It
computes for τ, writes a checkpoint for δ, and so on; an interruption throws it back to the last checkpoint, and it computes
again after R. Failures may come at any time: while it computes, writes, or restarts. Then τ + δ without a failure take

    E[T] = M·e^{R/M}·(e^{(τ+δ)/M} − 1)

on average (Daly 2006, his complete form, exact). With x = τ/M, d = δ/M, r = R/M and l = x + d, the time goes to

    computing that counts   e^{−r}·x/(eˡ − 1)
    writing checkpoints     e^{−r}·d/(eˡ − 1)
    computing again         e^{−r}·(1 − l/(eˡ − 1))      (what an interruption threw away, written or not)
    restarting              1 − e^{−r}                    (those that were interrupted too)

and, with B the share of `mc.goodput.spares`, all four times 1 − B, and B to waiting for chips. Nothing fails then, so the rest is
as without waiting. The first start, and what is left when the job ends, are left out: the job is long.

Exact for exponential failures; real ones come in clusters, and a new machine fails more often.

References:
    J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future Generation
    Computer Systems 22 (2006).
"""

import math
from dataclasses import dataclass

from mc.goodput.checkpoints import best_interval, best_steps
from mc.goodput.failures import Failures, GoodputError
from mc.goodput.spares import waiting_share

_DAY = 86400.0


@dataclass(frozen=True)
class Goodput:
    """Where the time of a long job goes: five shares that add up to 1, and what they follow from.

    Attributes:
        effective_ratio: computing that counts.
        checkpointing: writing checkpoints.
        recomputing: what interruptions threw away.
        restarting: from an interruption, once there are chips, until the job computes again.
        waiting: for chips, when there are no spares.
        interruptions_per_day: of all days, those of waiting too.
        checkpoint_interval_s: seconds of computing between two checkpoints.
    """

    effective_ratio: float
    checkpointing: float
    recomputing: float
    restarting: float
    waiting: float
    interruptions_per_day: float
    checkpoint_interval_s: float


def goodput(chips: int, failures: Failures, step_time: float | None = None) -> Goodput:
    """Where the time goes.

    Args:
        chips: that the job cannot do without.
        failures: how often they fail, and what it costs.
        step_time: seconds; checkpoints are written after whole steps. None if they may be written at any time.

    Raises:
        GoodputError: no chips, or a step that takes no time.
    """
    if chips < 1:
        raise GoodputError(f"chips: expected 1 or more; got {chips}")
    if step_time is not None and not step_time > 0:
        raise GoodputError(f"step_time: expected a time > 0; got {step_time}")
    between = failures.mean_between(chips)
    interval = _interval(failures, between, step_time)
    x, d, r = (each / between for each in (interval, failures.checkpoint_write, failures.restart))
    work, loss = _of_running(x + d)
    counted = x / (x + d) if x + d > 0 else 1.0
    waiting = waiting_share(failures.spares, failures.replacement / between)
    running = (1 - waiting) * math.exp(-r)
    return Goodput(
        effective_ratio=running * work * counted,
        checkpointing=running * work * (1 - counted),
        recomputing=running * loss,
        restarting=(1 - waiting) * -math.expm1(-r),
        waiting=waiting,
        interruptions_per_day=(1 - waiting) * _DAY / between,
        checkpoint_interval_s=interval,
    )


def _interval(failures: Failures, between: float, step_time: float | None) -> float:
    asked = failures.checkpoint_interval
    if step_time is None:
        return best_interval(failures.checkpoint_write, between) if asked is None else asked
    best = best_steps(failures.checkpoint_write, between, step_time)
    steps = best if asked is None else max(round(asked / step_time), 1)
    return steps * step_time


def _of_running(length: float) -> tuple[float, float]:
    """Shares of a stretch of mean times between failures that are kept, and thrown away."""
    if length == 0:
        return 1.0, 0.0
    kept = length * math.exp(-length) / -math.expm1(-length)
    # 1 − l/(eˡ − 1) = l/2 − l²/12 + …; the difference keeps its digits from here on.
    return kept, 1 - kept if length > 1e-4 else length / 2 - length**2 / 12
