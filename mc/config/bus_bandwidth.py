"""Bandwidths as nccl-tests reports them.

The algorithm bandwidth is size/time. The bus bandwidth multiplies it by what an optimal point-to-point
algorithm must move per byte of buffer, so that it can be compared with a link whatever the number of ranks
(nccl-tests, doc/PERFORMANCE.md). For in-network algorithms it may exceed the link.
"""

# Whose size is the buffer of all ranks together.
OF_BUFFER = ("all-gather", "reduce-scatter", "all-to-all", "gather", "scatter")


def bus_factor(collective: str, ranks: int) -> float:
    """busbw/algbw.

    2(n−1)/n for all-reduce; (n−1)/n for all-gather, reduce-scatter, all-to-all, gather and scatter; 1 for the
    others.
    """
    share = (ranks - 1) / ranks
    if collective == "all-reduce":
        return 2 * share
    return share if collective in OF_BUFFER else 1.0
