"""Trees of switches: the law of their completion, without drawing a single message.

Below a switch lie subtrees that share nothing, so when it has all its inputs is the maximum of independent
times, each that of a subtree plus the jitter of one hop: T = max_c (T_c + X_c), level by level, with the same
law for all subtrees of a size. On the way down each hop adds its jitter and the last leaf counts, which is
the same recursion from the leaves up. Up and down are independent, so the whole is the sum of both. A tree
with 10⁶ leaves has a handful of levels, so it costs a handful of convolutions on a grid; a draw from the
result costs what any draw costs.

Software trees do not qualify: their inner ranks are leaves as well and pass on what they took in, through the
same port.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import equinox as eqx

from mc.delays import AbstractDelay, Latest, ParameterError, Slowest, Sum, on_grid


@dataclass(frozen=True)
class SwitchTier:
    """The reducing switches of one tier.

    Attributes:
        units: how many units of the tier below are joined.
        radix: how many inputs a switch takes.
        jitter: of one hop, seconds; None for none.
    """

    units: int
    radix: int
    jitter: AbstractDelay | None = None

    def __post_init__(self):
        """Whole numbers in their ranges."""
        if self.units < 1:
            raise ParameterError(f"units: expected a whole number of at least 1; got {self.units}")
        if self.radix < 2:
            raise ParameterError(f"radix: expected a whole number of at least 2; got {self.radix}")


def gather_law(
    tiers: Sequence[SwitchTier], ranks: int, *, start: AbstractDelay | None = None
) -> AbstractDelay | None:
    """What jitter adds until the topmost switch has everything: the law on a grid.

    By symmetry it is also what jitter adds until the last of the ranks has what the topmost switch sends
    down, if there is no `start`.

    Args:
        tiers: innermost first.
        ranks: consecutive ranks in the group; the last unit of a tier may be incomplete.
        start: when each rank arrives, seconds, independently; all at 0 without it.

    Returns:
        A law in seconds; None where nothing is random.

    Raises:
        ParameterError: more ranks than the tiers hold, or less than one.
    """
    holds = 1
    for tier in tiers:
        holds *= tier.units
    if not 1 <= ranks <= holds:
        raise ParameterError(f"ranks: expected 1 to {holds}, as many as the tiers join; got {ranks}")
    return _subtree(tuple(tiers), ranks, start, {})


def round_trip_law(
    tiers: Sequence[SwitchTier], ranks: int, *, start: AbstractDelay | None = None
) -> AbstractDelay | None:
    """What jitter adds until the last rank has the result of an all-reduce. Arguments as for `gather_law`."""
    up = gather_law(tiers, ranks, start=start)
    down = up if start is None else gather_law(tiers, ranks)
    if up is None or down is None:
        return up if down is None else down
    return _on_grid(Sum(up, down))


_Class = tuple[AbstractDelay | None, int]


def _subtree(
    tiers: tuple[SwitchTier, ...],
    ranks: int,
    start: AbstractDelay | None,
    known: dict[tuple[int, int], AbstractDelay | None],
) -> AbstractDelay | None:
    if not tiers or ranks == 1:
        return start
    place = len(tiers), ranks
    if place not in known:
        *inner, tier = tiers
        size = 1
        for each in inner:
            size *= each.units
        whole, rest = divmod(ranks, size)
        classes: list[_Class] = [(_subtree(tuple(inner), size, start, known), whole)] if whole else []
        if rest:
            classes.append((_subtree(tuple(inner), rest, start, known), 1))
        known[place] = _reduced(classes, tier)
    return known[place]


def _reduced(classes: list[_Class], tier: SwitchTier) -> AbstractDelay | None:
    """Level by level, until one switch is left; only the last subtree of a level may differ from the others."""
    while sum(count for _, count in classes) > 1:
        whole, rest = divmod(classes[0][1], tier.radix)
        odd = classes[1:]
        above: list[_Class] = [(_joined([(classes[0][0], tier.radix)], tier.jitter), whole)] if whole else []
        left: list[_Class] = ([(classes[0][0], rest)] if rest else []) + odd
        if left:
            above.append((_joined(left, tier.jitter), 1))
        classes = above
    return classes[0][0]


def _joined(classes: list[_Class], jitter: AbstractDelay | None) -> AbstractDelay | None:
    """The law of a switch's last input."""
    inputs: list[AbstractDelay] = []
    for law, count in classes:
        one = jitter if law is None else law if jitter is None else Sum(law, jitter)
        if one is not None:
            inputs.append(Slowest(one, count))
    if not inputs:
        return None
    return _on_grid(inputs[0] if len(inputs) == 1 else Latest(tuple(inputs)))


# One compilation for all levels: they differ in numbers alone.
_on_grid = eqx.filter_jit(on_grid)
