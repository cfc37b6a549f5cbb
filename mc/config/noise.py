"""What makes one chip slower than another: from step to step, or for good; alone, or with its neighbours.

The keys `jitter`, `spread` and `pauses` of `noise` are each rank's own and drawn in each step. `transient` adds the
same for a whole unit of a tier (or the whole job): all its ranks see one draw. `persistent` is drawn once per
realisation of the cluster and stays.
"""

from typing import Annotated

from pydantic import Field, model_validator

from mc.config.delay import RatioDelay, TimeDelay
from mc.config.quantities import Probability, Slowdown
from mc.document import StrictModel, located

Scope = Annotated[str, Field(min_length=1)]


class PausesConfig(StrictModel):
    """Rare pauses: in a step, each rank pauses with `probability` for `delay` seconds."""

    probability: Probability
    delay: TimeDelay


class KernelsConfig(StrictModel):
    """What makes a rank's kernels longer from one stretch to the next: what it computes between two waits for others.

    Attributes:
        spread: multiplies what a stretch takes.
        jitter: added to it, seconds.
    """

    spread: RatioDelay | None = None
    jitter: TimeDelay | None = None

    @model_validator(mode="after")
    def _something(self) -> "KernelsConfig":
        if self.spread is None and self.jitter is None:
            raise located("KernelsConfig", [((), "expected `spread` or `jitter`; got none of them")])
        return self


class SlowChipsConfig(StrictModel):
    """Persistently slow chips, drawn once per realisation of the cluster.

    A `fraction` of the chips computes `slowdown` times longer.
    """

    fraction: Probability
    slowdown: Slowdown


class PersistentConfig(StrictModel):
    """A persistent factor on compute times, drawn once per realisation for each unit of a scope.

    Attributes:
        scope: `rank`, the name of a tier (each of its units draws), or `all` (the whole cluster draws once).
        fraction: of the units that are slow, with `slowdown`.
        slowdown: factor of a slow unit.
        spread: instead of both, the law of every unit's factor.
    """

    scope: Scope
    fraction: Probability | None = None
    slowdown: Slowdown | None = None
    spread: RatioDelay | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> "PersistentConfig":
        given = [name for name in ("fraction", "slowdown", "spread") if getattr(self, name) is not None]
        if given not in (["fraction", "slowdown"], ["spread"]):
            got = ", ".join(f"`{name}`" for name in given) or "neither"
            text = f"expected either `fraction` and `slowdown`, or `spread`; got {got}"
            raise located("PersistentConfig", [((), text)])
        return self


class TransientConfig(StrictModel):
    """Noise that all ranks of a unit share, drawn in each step.

    Attributes:
        scope: the name of a tier (each of its units draws), or `all` (one draw for the whole job).
        spread: multiplies what the unit's ranks take.
        jitter: added to it, seconds.
        pauses: rare pauses of the whole unit.
    """

    scope: Scope
    spread: RatioDelay | None = None
    jitter: TimeDelay | None = None
    pauses: PausesConfig | None = None

    @model_validator(mode="after")
    def _something(self) -> "TransientConfig":
        if self.spread is None and self.jitter is None and self.pauses is None:
            raise located(
                "TransientConfig", [((), "expected `spread`, `jitter` or `pauses`; got none of them")]
            )
        return self


class NoiseConfig(StrictModel):
    """What makes one chip slower than another.

    Attributes:
        jitter: added to a rank's compute time, seconds.
        spread: multiplies a rank's compute time.
        pauses: rare pauses.
        kernels: of a transformer, what is drawn for each stretch between two waits of its ranks for each other.
        slow_chips: persistently slow chips; short for one `persistent` of the scope `rank`.
        persistent: factors that stay, by scope.
        transient: noise that the ranks of a unit share, by scope.
    """

    jitter: TimeDelay | None = None
    spread: RatioDelay | None = None
    pauses: PausesConfig | None = None
    kernels: KernelsConfig | None = None
    slow_chips: SlowChipsConfig | None = None
    persistent: Annotated[tuple[PersistentConfig, ...], Field(strict=False, min_length=1)] | None = None
    transient: Annotated[tuple[TransientConfig, ...], Field(strict=False, min_length=1)] | None = None
