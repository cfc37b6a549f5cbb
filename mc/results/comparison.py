"""Two runs side by side: what was asked for otherwise, and what came of it. Plain data.

Two runs are *paired* if the same random numbers were drawn for both: of one seed, method and generator, in as many steps of as many
realisations. Then differences are those of pairs (`mc.estimate.paired`).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ruamel.yaml import YAML

from mc.estimate import QUANTILES, Estimate
from mc.estimate.paired import mean_difference, quantile_difference
from mc.results.record import RunResult


@dataclass(frozen=True)
class Change:
    """A value that two configurations do not share.

    Attributes:
        path: its keys, as `cluster.tiers.0.link.bandwidth`.
        before: its text in the first; None where it is not there.
        after: in the second.
    """

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Difference:
    """A time in both runs; seconds.

    Attributes:
        before: in the first.
        after: in the second.
        difference: the second less the first, with its interval.
    """

    before: float
    after: float
    difference: Estimate


@dataclass(frozen=True)
class Comparison:
    """What two runs differ in.

    Attributes:
        names: of both.
        hashes: of their configurations.
        changes: of the configuration.
        times: mean and quantiles, by name.
        parts: of the waterfall, by name.
        is_paired: whether the same random numbers were drawn for both.
        confidence: of the intervals.
    """

    names: tuple[str, str]
    hashes: tuple[str, str]
    changes: tuple[Change, ...]
    times: Mapping[str, Difference]
    parts: Mapping[str, Difference]
    is_paired: bool
    confidence: float


def compare(first: RunResult, second: RunResult) -> Comparison:
    """Compares two runs; intervals have the confidence of the first."""
    confidence = first.estimates.confidence
    is_paired = _paired(first, second)

    def mean(before: NDArray[np.floating], after: NDArray[np.floating]) -> Difference:
        found = mean_difference(_doubled(before), _doubled(after), confidence, paired=is_paired)
        return Difference(float(np.mean(_doubled(before))), float(np.mean(_doubled(after))), found)

    times = {"mean": mean(first.samples, second.samples)}
    for name, probability in QUANTILES.items():
        before, after = (getattr(each.estimates, name).value for each in (first, second))
        found = quantile_difference(
            _doubled(first.samples), _doubled(second.samples), probability, confidence, paired=is_paired
        )
        times[name] = Difference(before, after, found)
    parts = {
        name: mean(_part(first, name), _part(second, name))
        for name in dict.fromkeys((*first.parts, *second.parts))
    }
    return Comparison(
        names=(first.name, second.name),
        hashes=(first.config_hash, second.config_hash),
        changes=tuple(changes(first.resolved_yaml, second.resolved_yaml)),
        times=times,
        parts=parts,
        is_paired=is_paired,
        confidence=confidence,
    )


def changes(before: str, after: str) -> Iterator[Change]:
    """Values that differ between two resolved configurations, in the order of their keys."""
    first, second = (dict(_leaves(YAML(typ="safe").load(text), "")) for text in (before, after))
    for path in dict.fromkeys((*first, *second)):
        one, other = first.get(path), second.get(path)
        if one != other:
            yield Change(path, one, other)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if path.split(".")[-2:] == ["posterior", "parameters"]:
        # Of a figure that is not known exactly, its standard deviation where it has no borders.
        for each in value:
            yield (
                f"{path.removesuffix('.parameters')}.{each['paths'][0]}",
                f"{math.hypot(*each['factor']):.3g}",
            )
        return
    keyed = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    )
    if not keyed:
        yield path, str(value)
        return
    for key, child in keyed:
        yield from _leaves(child, f"{path}.{key}" if path else str(key))


def _paired(first: RunResult, second: RunResult) -> bool:
    same = (
        (each.seed, each.method, each.samples.shape, each.machine.x64, each.machine.key_implementation)
        for each in (first, second)
    )
    return len(set(same)) == 1


def _part(result: RunResult, name: str) -> NDArray[np.floating]:
    """A part in each step; 0 where a run does not have it."""
    return np.broadcast_to(result.parts.get(name, np.zeros(())), result.samples.shape)


def _doubled(values: NDArray[np.floating]) -> NDArray[np.float64]:
    return np.asarray(values, np.float64)
