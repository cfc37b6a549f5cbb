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
        mtbf_per_link: mean time between failures of one link that the job cannot do without; None where they are in
            `mtbf_per_chip`.
        links_per_chip: how many such links there are for each chip.
    """

    mtbf_per_chip: float
    restart: float
    checkpoint_write: float
    checkpoint_interval: float | None = None
    spares: int = 0
    replacement: float = 0.0
    mtbf_per_link: float | None = None
    links_per_chip: float = 1.0

    def __post_init__(self):
        """Positive where they must be, and not negative anywhere."""
        for name in ("mtbf_per_chip", "checkpoint_interval", "mtbf_per_link"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise GoodputError(f"{name}: expected a time > 0; got {value}")
        for name in ("restart", "checkpoint_write", "spares", "replacement", "links_per_chip"):
            value = getattr(self, name)
            if not value >= 0:
                raise GoodputError(f"{name}: expected 0 or more; got {value}")

    def mean_between(self, chips: int) -> float:
        """Seconds between two interruptions of a job on so many chips, by them or by their links."""
        rate = 1 / self.mtbf_per_chip
        if self.mtbf_per_link is not None:
            rate += self.links_per_chip / self.mtbf_per_link
        return 1 / (chips * rate)


def build_failures(config: FailuresConfig, hot_spares: int = 0) -> Failures:
    """From what the file says, and so many chips that stand by beside its spares."""
    interval = config.checkpoint_interval
    return Failures(
        config.mtbf_per_chip,
        config.restart,
        config.checkpoint_write,
        None if interval == AUTO else float(interval),
        config.spares + hot_spares,
        config.replacement,
        config.mtbf_per_link,
        config.links_per_chip,
    )
