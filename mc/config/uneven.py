"""What exceptions mean together: how large units are, which ranks have another chip, and what cannot be."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from mc.config.exceptions import ExceptionConfig, ranges
from mc.config.hardware import ChipConfig
from mc.config.layout import FanOut, counts, first_ranks
from mc.document import did_you_mean
from mc.errors import InputError

RANK = "rank"
# Per tier, its exceptions.
Exceptions = Sequence[Sequence[ExceptionConfig]]
Found = Iterator[tuple[tuple[str | int, ...], str]]


def fan_outs(nominal: Sequence[int], exceptions: Exceptions) -> tuple[FanOut, ...]:
    """Per tier, its fan-out, or those of all its units where they differ."""
    found: list[FanOut] = []
    units = 1
    for fan_out, own in zip(reversed(nominal), reversed(exceptions), strict=True):
        other = {unit: each.fan_out for each in own if each.fan_out is not None for unit in each.units}
        sizes = tuple(other.get(unit, fan_out) for unit in range(units)) if other else ()
        found.append(sizes if len(set(sizes)) > 1 else sizes[0] if sizes else fan_out)
        units = sum(sizes) if sizes else units * fan_out
    return tuple(reversed(found))


def place_of(exception: ExceptionConfig, tier: int, names: Sequence[str]) -> int | None:
    """Index of the tier whose units an exception is about, −1 for ranks; None if that cannot be."""
    if exception.of is None:
        return tier
    inner = [RANK, *names[: tier + 1]]
    return inner.index(exception.of) - 1 if exception.of in inner else None


def problems(
    names: Sequence[str], nominal: Sequence[int], exceptions: Exceptions, latencies: Sequence[float]
) -> Found:
    """Objections to exceptions, each with its path below the cluster."""
    numbers = counts(fan_outs(nominal, exceptions))
    for tier, own in enumerate(exceptions):
        taken: Counter[tuple[int, int]] = Counter()
        for index, each in enumerate(own):
            path: tuple[str | int, ...] = ("tiers", tier, "exceptions", index)
            place = place_of(each, tier, names)
            if place is None:
                if each.of in names:
                    outside = f"`{each.of}` lies outside of `{names[tier]}`"
                    yield (*path, "of"), f"expected this or an inner tier, or `rank`; {outside}"
                else:
                    hint = did_you_mean(str(each.of), [RANK, *names[: tier + 1]])
                    yield (*path, "of"), f"unknown tier `{each.of}`; {hint}"
                continue
            count, what = numbers[place + 1], f"`{RANK if place < 0 else names[place]}`"
            unknown = [unit for unit in each.units if unit >= count]
            if unknown:
                known = f"units 0 to {count - 1}" if count > 1 else "one unit, 0"
                yield (*path, "units"), f"unknown unit {unknown[0]}; {what} has {known}"
            taken.update((place, unit) for unit in each.units)
            again = [unit for unit in each.units if taken[place, unit] > 1]
            if again:
                yield (
                    (*path, "units"),
                    f"expected each unit of {what} once; {ranges(tuple(again))[0]} was given already",
                )
            if each.fan_out is not None and place != tier:
                yield (
                    (*path, "fan_out"),
                    f"expected none, since these are units of {what}; say it at that tier",
                )
            if each.link is not None and each.link.latency > 0 and latencies[tier] == 0:
                yield (
                    (*path, "link", "latency"),
                    "expected 0 s, since the tier's own latency is 0 and cannot be multiplied",
                )


def chips(
    nominal: ChipConfig,
    names: Sequence[str],
    fan_outs: Sequence[FanOut],
    exceptions: Exceptions,
    ranks: int,
) -> list[tuple[int, ChipConfig, float]]:
    """The kinds of chips among the first `ranks` ranks, as `runs` has them.

    Returns:
        (how many, the chip, how many times longer they compute than it says), in order of first appearance.
    """
    found: dict[tuple[int, float], list] = {}
    for count, chip, slowdown in runs(nominal, names, fan_outs, exceptions, ranks):
        entry = found.setdefault((id(chip), slowdown), [0, chip, slowdown])
        entry[0] += count
    return [(count, chip, slowdown) for count, chip, slowdown in found.values()]


def runs(
    nominal: ChipConfig,
    names: Sequence[str],
    fan_outs: Sequence[FanOut],
    exceptions: Exceptions,
    ranks: int,
) -> list[tuple[int, ChipConfig, float]]:
    """The chips of the first `ranks` ranks, in their order.

    Where several exceptions name a chip for one rank, the innermost counts; slowdowns multiply.

    Returns:
        (how many one after the other, the chip, how many times longer they compute than it says).
    """
    changes: list[tuple[int, int, ChipConfig | None, float]] = []
    # Outermost first, so that what lies further inside has the last word.
    for tier in reversed(range(len(names))):
        for each in exceptions[tier]:
            place = place_of(each, tier, names)
            if place is None or (each.chip is None and each.slowdown == 1):
                continue
            starts = first_ranks(fan_outs, place)
            changes += [(starts[unit], starts[unit + 1], each.chip, each.slowdown) for unit in each.units]
    cuts = sorted({0, ranks, *(min(cut, ranks) for change in changes for cut in change[:2])})
    # Each change opens and closes at a cut; those that are open hold, in their order.
    opens: dict[int, list[int]] = {}
    closes: dict[int, list[int]] = {}
    for number, (start, stop, _, _) in enumerate(changes):
        opens.setdefault(start, []).append(number)
        closes.setdefault(stop, []).append(number)
    held: set[int] = set()
    found: list[tuple[int, ChipConfig, float]] = []
    for start, stop in pairwise(cuts):
        held -= set(closes.get(start, ()))
        held |= set(opens.get(start, ()))
        chip, slowdown = nominal, 1.0
        for number in sorted(held):
            chip = changes[number][2] or chip
            slowdown *= changes[number][3]
        found.append((stop - start, chip, slowdown))
    return found


def rates(
    kinds: Sequence[tuple[int, ChipConfig, float]], nominal: ChipConfig, number_format: str | None
) -> list[tuple[int, float]]:
    """How many ranks compute how many times faster than the cluster's chip.

    Raises:
        InputError: a chip does not offer the format, or there are several chips and no format to compare.
    """
    found: dict[float, int] = {}
    for count, chip, slowdown in kinds:
        factor = 1.0
        if chip is not nominal and chip != nominal:
            if number_format is None:
                raise InputError(
                    "expected compute as `flop`, `format` and `efficiency`, since the cluster has several chips; "
                    "got `time`. For a time, say `slowdown` instead of `chip` in the exceptions"
                )
            factor = _rate(chip, number_format) / _rate(nominal, number_format)
        factor /= slowdown
        found[factor] = found.get(factor, 0) + count
    return [(count, factor) for factor, count in found.items()]


def _rate(chip: ChipConfig, number_format: str) -> float:
    offered = chip.peak.offered
    if number_format not in offered:
        raise InputError(
            f"{chip.name or 'the chip'} does not offer {number_format}; expected one of {', '.join(offered) or 'none'}"
        )
    return offered[number_format]
