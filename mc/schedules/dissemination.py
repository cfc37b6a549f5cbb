"""The dissemination barrier: messages without data to ranks 1, 2, 4, … further on.

(D. Hensgen, R. Finkel, U. Manber, Int. J. Parallel Programming 17 (1988).) On real numbers the "data" are who
has been heard from, and a combination that may count a rank twice, such as the maximum, shows who has.
"""

import numpy as np

from mc.schedules.options import Options
from mc.schedules.rows import assemble, rows
from mc.schedules.schedule import Schedule


def dissemination_barrier(options: Options) -> Schedule:
    """⌈log₂ n⌉ rounds."""
    n = options.ranks
    rank = np.arange(n)
    return assemble(
        [
            rows(round=j, source=rank, target=(rank + (1 << j)) % n, combine=True)
            for j in range((n - 1).bit_length())
        ],
        collective="barrier",
        algorithm="dissemination",
        ranks=n,
        chunks=1,
        piece_shares=np.zeros(1),
    )
