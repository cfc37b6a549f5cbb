"""What a user says about a file that the file does not say itself; it goes before whatever is inferred."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Hints:
    """What is known from outside.

    Attributes:
        collective: by the names of the configuration.
        ranks: that took part.
        nodes: they were on.
        algorithm: that the library was told to use.
        protocol: likewise.
        device: the accelerator.
        step_column: of a table or series of step times.
        step_unit: of that column: `s`, `ms`, `us` or `ns`.
        ranks_column: of a table of cluster sizes.
        bandwidth_unit: `GB/s` or `Gb/s`, where the name of a column does not say which.
        keep_conflicts: whether rows that contradict themselves are kept, flagged in `conflict`.
    """

    collective: str | None = None
    ranks: int | None = None
    nodes: int | None = None
    algorithm: str | None = None
    protocol: str | None = None
    device: str | None = None
    step_column: str | None = None
    step_unit: str | None = None
    ranks_column: str | None = None
    bandwidth_unit: str | None = None
    keep_conflicts: bool = False
