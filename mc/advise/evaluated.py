"""What a plan comes to once it is evaluated, what plans are compared by, and what a search of them found."""

import math
from dataclasses import dataclass

from mc.parallel import Plan


@dataclass(frozen=True)
class Evaluated:
    """A plan that was evaluated.

    Attributes:
        plan: the plan.
        step: seconds without noise.
        computing: seconds of it that a chip computes, the mean over the stages.
        memory: bytes on the fullest rank.
        mfu: model FLOP over the peak of all chips.
        exposed: seconds that computing waits for messages, by dimension.
        bubble_fraction: part of the step in which the stage that works longest is idle.
        fits: whether a chip has the memory.
    """

    plan: Plan
    step: float
    computing: float
    memory: float
    mfu: float
    exposed: dict[str, float]
    bubble_fraction: float
    fits: bool

    @property
    def without_order(self) -> str:
        """What all orders of a plan have in common."""
        return self.plan.config.model_copy(update={"order": ()}).model_dump_json()


@dataclass(frozen=True)
class Objective:
    """What plans are compared by: waiting·T + computing·C, of a step of T seconds in which a chip computes for C.

    As it is, the step. With watts of a chip that waits, and those that computing adds, joules.

    Attributes:
        waiting: for each second.
        computing: for each second that a chip computes.
        least: seconds that a chip of every plan computes.
    """

    waiting: float = 1.0
    computing: float = 0.0
    least: float = 0.0

    def of(self, one: Evaluated) -> float:
        """Of a plan."""
        return self.waiting * one.step + self.computing * one.computing

    def at_least(self, step: float) -> float:
        """Of every plan that takes so long or longer."""
        return self.waiting * step + self.computing * self.least


STEP_TIME = Objective()


@dataclass(frozen=True)
class SearchResult:
    """What a search found, and what it did not look at.

    Attributes:
        name: of the experiment.
        ranks: that all plans have.
        written: the plan of the file; None if it cannot be.
        best: the k best, the best first.
        front: of those that were evaluated and what the file says, all that no other beats both in time and in memory,
            fastest first.
        total: combinations of the numbers that are tried.
        refused: how many of them are no plans or do not fit into memory, by reason.
        pruned: how many cannot be among the best, by the bound that said so. Whether they fit was not asked.
        evaluated: how many were evaluated.
        available: bytes of a chip's memory that a plan may take; None if nobody stated it.
        drawn: how many of those that were evaluated were drawn, all that may be among the best.
        shortened: how many of these took less with noise than without, which the search rules out.
    """

    name: str
    ranks: int
    written: Evaluated | None
    best: tuple[Evaluated, ...]
    front: tuple[Evaluated, ...]
    total: int
    refused: dict[str, int]
    pruned: dict[str, int]
    evaluated: int
    available: float | None
    drawn: int = 0
    shortened: int = 0


def front_of(found: list[Evaluated]) -> tuple[Evaluated, ...]:
    """Those that no other beats both in time and in memory, fastest first."""
    least, front = math.inf, []
    for each in sorted(found, key=lambda one: (one.step, one.memory)):
        if each.memory < least:
            least = each.memory
            front.append(each)
    return tuple(front)
