r"""How to spend a budget on figures.

The least time T(x) that

    sum of c_i·x_i^a_i <= B,     low <= x_i <= high

allows, with x_i a figure over what it is now, c_i what it costs now, and a_i how its cost grows (below 0 for a latency, which
costs more the less it is). Where T is made of sums and maxima of terms that fall as powers of figures, ln T is convex in ln x
and so is the budget (a geometric program; S. Boyd et al., "A tutorial on geometric programming", Optim. Eng. 8, 2007): a local
optimum is the optimum.

The descent is Adam (Optax) on logarithms of what is spent, s_i = c_i·x_i^a_i. The gradient is projected onto the budget's tangent,
and each step back onto the budget: all s_i by one factor, but for those at a bound, which is the nearest point by relative
entropy. Derivatives are central differences of T, exact for powers.

At the optimum a unit more spent on any figure saves the same time, the *shadow price* of the budget,

    λ = −∂T/∂s_i = −T·e_i/(a_i·s_i),     e_i = ∂ ln T/∂ ln x_i.

T has kinks, where the two sides of e_i differ and a descent swings. There exchanges go on from its best point: a part of the budget
from one figure to another, the best of all pairs as long as one helps, else half as much. `gap` says what is left: what
an exchange of 0.1 % of the budget still saves, over T.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from mc.errors import InputError

Floats = NDArray[np.float64]
# Of rows of factors, one for each figure, the seconds of each row.
Times = Callable[[Floats], Floats]
Advance = Callable[[int], None]
STEPS = 100
_RATE, _WIDTH = 0.15, 5e-3
# Of the budget, what is exchanged to see whether that helps; and how often.
EXCHANGE, _EXCHANGES = 1e-3, 200
# Relative: a figure this close to a bound is at it.
_AT_BOUND = 1e-6


class BudgetError(InputError):
    """A budget that cannot be spent, or figures whose costs are not known."""


@dataclass(frozen=True)
class Priced:
    """A figure that costs something.

    Attributes:
        name: which.
        cost: what it costs now.
        exponent: of its cost, not 0.
    """

    name: str
    cost: float
    exponent: float = 1.0


@dataclass(frozen=True)
class Allocation:
    """What is spent on each figure.

    Attributes:
        figures: that may change.
        budget: for all of them.
        factor: of each, over what it is now.
        spent: on each.
        before: seconds, as figures are now.
        time: seconds at the optimum.
        saved: seconds that a unit more of spending on each saves, and that a unit less costs: equal but for kinks.
        bound: of each, `least`, `most` or nothing.
        gap: part of the time that the best exchange of 0.1 % of the budget between two figures still saves.
        path: the best time so far, after each step.
    """

    figures: tuple[Priced, ...]
    budget: float
    factor: Floats
    spent: Floats
    before: float
    time: float
    saved: tuple[tuple[float, float], ...]
    bound: tuple[str, ...]
    gap: float
    path: Floats

    @property
    def shadow_price(self) -> float:
        """Seconds that a unit more of the budget saves: between what more of a figure saves at most and less costs at least."""
        gains = [more for (more, _), at in zip(self.saved, self.bound, strict=True) if at != "most"]
        losses = [less for (_, less), at in zip(self.saved, self.bound, strict=True) if at != "least"]
        ends = [*([max(gains)] if gains else []), *([min(losses)] if losses else [])]
        return sum(ends) / len(ends) if gains else 0.0


def allocate(
    times: Times,
    figures: Sequence[Priced],
    budget: float,
    *,
    limit: float = 16.0,
    steps: int = STEPS,
    advance: Advance = lambda count: None,
) -> Allocation:
    """The best way to spend a budget.

    Args:
        times: seconds of many sets of figures at once.
        figures: that may change.
        budget: for all of them.
        limit: no figure changes by more than this factor.
        steps: of the descent.
        advance: told of each step.

    Raises:
        BudgetError: the budget does not suffice for the least of everything.
    """
    cost = np.array([each.cost for each in figures])
    exponent = np.array([each.exponent for each in figures])
    ends = cost * limit ** -np.abs(exponent), cost * limit ** np.abs(exponent)
    if ends[0].sum() > budget:
        raise BudgetError(
            f"budget: expected at least {ends[0].sum():.4g}, which figures {limit:g} times smaller cost; got {budget:.4g}"
        )

    # As many rows as ever, since what is compiled is for so many.
    rows = max(2 * len(figures) + 1, len(figures) * (len(figures) - 1))

    def timed(logs: Floats) -> Floats:
        every = np.ones((rows, len(figures)))
        every[: len(logs)] = np.exp((logs - np.log(cost)) / exponent)
        return times(every)[: len(logs)]

    before = float(timed(np.log(cost)[None])[0])

    def slopes(logs: Floats) -> tuple[float, Floats, Floats]:
        """The time, and the derivatives of its logarithm in those of spending, with less of it and with more."""
        moves = _WIDTH * np.eye(len(logs))
        found = np.log(timed(np.concatenate([logs[None], logs - moves, logs + moves])))
        less, more = found[1 : len(logs) + 1], found[len(logs) + 1 :]
        return float(np.exp(found[0])), (found[0] - less) / _WIDTH, (more - found[0]) / _WIDTH

    descent = optax.adam(optax.cosine_decay_schedule(_RATE, steps, alpha=0.01), b1=0.7, b2=0.9)
    logs = project(np.log(cost), budget, *ends)
    state = descent.init(jnp.asarray(logs))
    best, path = (np.inf, logs), []
    for _ in range(steps):
        time, less, more = slopes(logs)
        if time < best[0]:
            best = time, logs
        path.append(best[0])
        gradient = (less + more) / 2
        share = np.exp(logs) / np.exp(logs).sum()
        update, state = descent.update(jnp.asarray(gradient - share * gradient.sum()), state)
        logs = project(logs + np.asarray(update, np.float64), budget, *ends)
        advance(1)
    time, logs = _exchanged(timed, *best, budget, *ends)
    path.append(time)
    _, less, more = slopes(logs)
    spent = np.exp(logs)
    saved = [
        (-one * time / each, -other * time / each) for one, other, each in zip(more, less, spent, strict=True)
    ]
    bound = tuple(_bound(each, *both) for each, both in zip(spent, zip(*ends, strict=True), strict=True))
    return Allocation(
        tuple(figures),
        budget,
        np.exp((logs - np.log(cost)) / exponent),
        spent,
        before,
        time,
        tuple((float(one), float(other)) for one, other in saved),
        bound,
        max(0.0, 1 - _best_exchange(timed, logs, EXCHANGE * budget, *ends)[0] / time),
        np.array(path),
    )


def project(logs: Floats, budget: float, low: Floats, high: Floats) -> Floats:
    """The point of the budget that is nearest by relative entropy: all spending by one factor, cut at its bounds."""
    if high.sum() <= budget:
        return np.log(high)
    spent, ends = np.exp(logs), [0.0, 1.0]
    while np.clip(spent * ends[1], low, high).sum() < budget:
        ends[1] *= 2
    for _ in range(200):
        middle = sum(ends) / 2
        ends[int(np.clip(spent * middle, low, high).sum() >= budget)] = middle
    return np.log(np.clip(spent * ends[1], low, high))


def _bound(spent: float, low: float, high: float) -> str:
    if spent <= low * (1 + _AT_BOUND):
        return "least"
    return "most" if spent >= high * (1 - _AT_BOUND) else ""


def _exchanged(
    timed: Times, time: float, logs: Floats, budget: float, low: Floats, high: Floats
) -> tuple[float, Floats]:
    """The time and the point after all exchanges that help."""
    part = 32 * EXCHANGE
    for _ in range(_EXCHANGES):
        found, there = _best_exchange(timed, logs, part * budget, low, high)
        if found < time * (1 - 1e-7):
            time, logs = found, there
        elif part <= EXCHANGE / 4:
            break
        else:
            part /= 2
    return time, logs


def _best_exchange(
    timed: Times, logs: Floats, spent: float, low: Floats, high: Floats
) -> tuple[float, Floats]:
    """The least time after so much more for one figure and less for another, and the point."""
    found = []
    for giver, taker in itertools.permutations(range(len(logs)), 2):
        there = np.exp(logs)
        moved = min(spent, there[giver] - low[giver], high[taker] - there[taker])
        if moved > 0:
            there[giver] -= moved
            there[taker] += moved
            found.append(np.log(there))
    candidates = np.array(found or [logs])
    times = timed(candidates)
    place = int(np.argmin(times))
    return float(times[place]), candidates[place]
