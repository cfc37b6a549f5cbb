"""What interrupts a job, and what an interruption costs."""

from dataclasses import dataclass

from mc.config import FailuresConfig
from mc.config.failures import AUTO
from mc.errors import InputError


class GoodputError(InputError):
    """Numbers that no job can have."""


@dataclass(frozen=True)
class Failures:
    """Interruptions of a job; times in seconds.

    Attributes:
        mtbf_per_chip: mean time between failures of one chip with all that goes with it.
        restart: from an interruption until the job computes again, once it has its chips.
        checkpoint_write: how long writing a checkpoint stops the job.
        checkpoint_interval: of computing between two checkpoints; None for the best.
        spares: chips that stand by; or whatever is replaced at once, such as nodes.
        replacement: how long a failed one is away, on average.
    """

    mtbf_per_chip: float
    restart: float
    checkpoint_write: float
    checkpoint_interval: float | None = None
    spares: int = 0
    replacement: float = 0.0

    def __post_init__(self):
        """Positive where they must be, and not negative anywhere."""
        for name in ("mtbf_per_chip", "checkpoint_interval"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise GoodputError(f"{name}: expected a time > 0; got {value}")
        for name in ("restart", "checkpoint_write", "spares", "replacement"):
            value = getattr(self, name)
            if not value >= 0:
                raise GoodputError(f"{name}: expected 0 or more; got {value}")


def build_failures(config: FailuresConfig) -> Failures:
    """From what the file says."""
    interval = config.checkpoint_interval
    return Failures(
        config.mtbf_per_chip,
        config.restart,
        config.checkpoint_write,
        None if interval == AUTO else float(interval),
        config.spares,
        config.replacement,
    )
