"""Collectives where each pair of units has its own link, as the eight GPUs of an MI300X node have.

Of F units each has F−1 links, so one link carries w/(F−1) of a rank's bandwidth w. A group of m ≤ F uses the
m−1 links among its members. What talks to one partner at a time uses one link and takes F−1 times as long per
byte; what talks to everybody at once uses all:

- `direct`: reduce-scatter and all-gather in one round, B/m on each link; an all-reduce is both, in two rounds
  ("two-shot"); broadcast is a scatter and an all-gather, reduce a reduce-scatter and a gather;
- `one-shot` all-reduce: each rank sends its buffer to all and adds up what arrives: one round, B on each link;
- `ring`: as many rings at once as there are that share no link (`FullyConnected.rings`), each with its part
  of the buffer.
"""

from mc.collectives.bidirectional_ring import BIDIRECTIONAL_RING
from mc.collectives.fixed import FixedAlgorithm
from mc.fabric import FullyConnected

ONE_SHOT, DIRECT = "one-shot", "direct"


def mesh_algorithms(collective: str, units: int, fan_out: int) -> dict[str, FixedAlgorithm]:
    """The algorithms that need a link to each of the others.

    Args:
        collective: what is to be carried out.
        units: m, how many take part, at least 2.
        fan_out: F, how many are joined in all.
    """
    m, per_link = units, (fan_out - 1) / units
    share = (m - 1) / m

    def fixed(
        name: str, *, rounds: int, sent: float, carried: float, combined: float = 0.0
    ) -> dict[str, FixedAlgorithm]:
        return {name: FixedAlgorithm(name, collective, m, rounds, sent, carried, combined)}

    match collective:
        case "all-reduce":
            both = fixed(DIRECT, rounds=2, sent=2 * share, carried=2 * per_link, combined=share)
            return both | fixed(ONE_SHOT, rounds=1, sent=m - 1, carried=fan_out - 1, combined=m - 1)
        case "reduce-scatter":
            return fixed(DIRECT, rounds=1, sent=share, carried=per_link, combined=share)
        case "all-gather" | "all-to-all":
            return fixed(DIRECT, rounds=1, sent=share, carried=per_link)
        case "broadcast":
            return fixed(DIRECT, rounds=2, sent=share, carried=2 * per_link)
        case "reduce":
            gathered = share / m
            return fixed(DIRECT, rounds=2, sent=share + gathered, carried=2 * per_link, combined=share)
        case "gather" | "scatter":
            return fixed(DIRECT, rounds=1, sent=share / m, carried=per_link)
    return {}


def mesh_dilution(name: str, units: int, fan_out: int) -> float:
    """How many times longer bytes take than if a rank could use all of its links at once.

    Args:
        name: of an algorithm that also runs on switches.
        units: m, how many take part, at least 2.
        fan_out: F, how many are joined in all.
    """
    if name == "ring":
        return (fan_out - 1) / FullyConnected().rings(units)
    if name == BIDIRECTIONAL_RING:
        return (fan_out - 1) / min(2, FullyConnected().rings(units))
    return fan_out - 1
