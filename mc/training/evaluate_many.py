"""One plan under many chips and clusters at once: steps without noise of arrays of parameters.

The arithmetic of `evaluate` takes arrays as it takes floats, and a pipeline's cones (`mc.pipeline.critical`) take many sets
of durations as one product of matrices. Parameters are cut into batches of few thousand, so that what is worked on stays
in the processor's cache. Nothing is compiled, and nothing approximated: each entry is what `evaluate` gives for it.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from mc.parallel import Group, Plan, messages
from mc.training.arithmetic import Number
from mc.training.efficiency import Chip
from mc.training.evaluate import Breakdown, evaluate
from mc.training.prices import AbstractPrices, Price
from mc.transformer import Transformer

Many = Float[np.ndarray, "..."]
_AT_ONCE = 4096


@dataclass(frozen=True)
class Breakdowns:
    """Steps without noise, as in `Breakdown`; arrays of one shape.

    Attributes:
        step: seconds.
        parts: that add up to it, by the names of `PARTS`.
        exposed: that computing waits for messages, by dimension.
        bubble_fraction: part of the step in which the critical stage is idle.
    """

    step: Many
    parts: dict[str, Many]
    exposed: dict[str, Many]
    bubble_fraction: Many


def evaluate_many(
    plan: Plan,
    shape: Transformer,
    chip: Chip,
    prices: AbstractPrices,
    *,
    routed: Number = 1.0,
    attention: Number = 1.0,
) -> Breakdowns:
    """The steps of a plan with many sets of numbers.

    Args:
        plan: the plan.
        shape: the model.
        chip: its numbers are floats, or arrays of one shape: entry i of each belongs to set i.
        prices: of messages; likewise floats or arrays of that shape, as `ManyPrices` gives them.
        routed: as in `evaluate`; a float or an array of that shape.
        attention: likewise.

    Returns:
        Arrays of that shape; where everything is a float, of shape ().

    Raises:
        ChipError: the chip does not have a format of the plan.
    """
    known = _Known(prices)
    for each in messages(shape, plan):
        known.price(each.collective, each.group, each.bytes)
    told = jax.tree.map(np.asarray, (chip, routed, attention))
    batch = np.broadcast_shapes(*(np.shape(each) for each in (*jax.tree.leaves(told), *known.numbers())))
    size = math.prod(batch)
    found = []
    for start in range(0, size, _AT_ONCE):

        def cut(number: Number, start: int = start) -> Number:
            if np.ndim(number) == 0:
                return float(number)
            return np.broadcast_to(number, batch).reshape(-1)[start : start + _AT_ONCE].astype(np.float64)

        one, load, pairs = jax.tree.map(cut, told)
        count = min(_AT_ONCE, size - start)
        found.append((count, evaluate(plan, shape, one, _Cut(known, cut), routed=load, attention=pairs)))
    return _joined(found, batch)


class _Known:
    """Prices that are asked for once."""

    def __init__(self, source: AbstractPrices):
        self.source = source
        self._known: dict[Any, Price] = {}

    def price(self, collective: str, group: Group, size: Number) -> Price:
        key = (collective, group, size)
        if key not in self._known:
            self._known[key] = self.source.price(collective, group, size)
        return self._known[key]

    def tier(self, group: Group) -> int:
        return self.source.tier(group)

    def numbers(self) -> Iterable[Number]:
        return (number for price in self._known.values() for number in price)


@dataclass(frozen=True)
class _Cut:
    """A piece of known prices."""

    known: _Known
    cut: Callable[[Number], Number]

    def price(self, collective: str, group: Group, size: Number) -> Price:
        return Price(*map(self.cut, self.known.price(collective, group, size)))

    def tier(self, group: Group) -> int:
        return self.known.tier(group)


def _joined(found: list[tuple[int, Breakdown]], batch: tuple[int, ...]) -> Breakdowns:
    def whole(number: Callable[[Breakdown], Number]) -> Many:
        each = [np.broadcast_to(number(one), count) for count, one in found]
        return np.concatenate(each or [np.zeros(0)]).reshape(batch)

    parts = dict.fromkeys(name for _, one in found for name in one.parts)
    exposed = dict.fromkeys(name for _, one in found for name in one.exposed)
    return Breakdowns(
        step=whole(lambda one: one.step),
        parts={name: whole(lambda one, name=name: one.parts[name]) for name in parts},
        exposed={name: whole(lambda one, name=name: one.exposed.get(name, 0.0)) for name in exposed},
        bubble_fraction=whole(lambda one: one.bubble_fraction),
    )
