"""A step in time: who did what from when to when. Plain data.

What happens is a *slice* on a lane of a track; slices of a lane follow each other or nest. The critical path is a chain of slices
without gaps, from the start of the step to its end, so its seconds add up to those of the step.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Slice:
    """What happens on a lane of a track; seconds from the start of the step.

    Attributes:
        name: what it is, such as `F3` for the forward of micro-batch 3.
        track: number of the track, a stage or a rank.
        lane: of the track.
        start: when it begins.
        end: when it is over.
        category: `compute`, `communication`, `wait` or `host`.
        about: what else is known.
    """

    name: str
    track: int
    lane: str
    start: float
    end: float
    category: str
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Trace:
    """One sampled step.

    Attributes:
        name: of the experiment.
        quantile: that the step is near to, as `p99`.
        quantile_s: of all sampled steps.
        sampled_s: the step, as the run has it.
        step_s: the step, as its slices have it: the end of the critical path.
        realisation: number of the cluster that was drawn.
        sample: number of the step in it.
        seed: of the run.
        config_hash: of the configuration.
        tracks: what each track is, by its number.
        slices: what happens.
        critical: the critical path, from the start to the end of the step.
        waited_for: in a few words, who everybody waited for.
    """

    name: str
    quantile: str
    quantile_s: float
    sampled_s: float
    step_s: float
    realisation: int
    sample: int
    seed: int
    config_hash: str
    tracks: Mapping[int, str]
    slices: tuple[Slice, ...]
    critical: tuple[Slice, ...]
    waited_for: str
