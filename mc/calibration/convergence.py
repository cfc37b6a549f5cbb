"""How descents ended: one account for all fits, each with what is flat and what is alike in units of its own loss."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Outcome = Literal["flat", "corner", "unfinished"]


@dataclass(frozen=True)
class Convergence:
    """How descents from several starts ended.

    Of a log posterior, which priors of standard deviation 1 are part of, 0.1 is next to nothing; fits of another loss say what is.

    Attributes:
        losses: of every start, the least first.
        gradient: the largest entry of the loss's gradient at the best.
        steps: of the best in all.
        ended: whether the best stopped by itself, before its steps ran out.
        flat: the gradient up to which the loss counts as flat.
        alike: by how much losses may differ that count as the same.
    """

    losses: NDArray[np.float64]
    gradient: float
    steps: int
    ended: bool
    flat: float = 0.1
    alike: float = 0.1

    @property
    def outcome(self) -> Outcome:
        """How the best ended.

        `flat` where the gradient vanishes; in a `corner` where it does not, but no step leads down, as where two protocols
        take equally long; `unfinished` where steps ran out.
        """
        if self.gradient <= self.flat:
            return "flat"
        return "corner" if self.ended else "unfinished"

    @property
    def agreeing(self) -> int:
        """How many starts ended at the least loss."""
        return int(np.sum(self.losses <= self.losses[0] + self.alike))
