"""What a step in time is collected in, before it is a `Trace`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mc.results import Slice

COMPUTE, COMMUNICATION, WAIT, HOST = "compute", "communication", "wait", "host"


@dataclass
class Slices:
    """Slices so far.

    Attributes:
        tracks: what each track is, by its number.
        slices: what happens.
        critical: what of it the step waited for, from its start to its end.
        waited_for: in a few words, who.
    """

    tracks: Mapping[int, str]
    slices: list[Slice] = field(default_factory=list)
    critical: list[Slice] = field(default_factory=list)
    waited_for: str = ""

    def add(self, one: Slice) -> Slice:
        """A slice more, unless it takes no time."""
        if one.end > one.start:
            self.slices.append(one)
        return one
