"""What it takes to send tokens to experts and back, by kernels that need no other rank's processors (low-latency kernels).

Each token is sent to each of its experts, from the GPU itself and at once: over the network to those of other nodes, over
the innermost tier to those of its own, both at the same time, so the longer one counts, and a start on top:

    t = start + max(bytes·(N − 1)/N / (b_between·r_between), bytes/N·(n − 1)/n / (b_inside·r_inside))

with N nodes of n ranks that have experts, each with 1/N of the bytes of a rank that sends to all evenly. The parts r of
the bandwidths that are reached and the start are those of `ServingKernelsConfig`; one set of them gives DeepEP's published
latencies and bandwidths with 8 to 256 ranks (`experiments.deepep`). FP8 tokens come with a scale of four bytes for each 128
numbers, and with 16 bytes of who they are.
"""

from typing import NamedTuple

from mc.config.axes import split_at
from mc.config.names import FORMAT_BYTES
from mc.config.serving import ServingKernelsConfig
from mc.parallel import Group
from mc.training import AbstractPrices, Price

METADATA_BYTES = 16.0
SCALE_BYTES, SCALED = 4.0, 128.0
_NARROW = ("fp8", "fp4", "int8")
# A buffer that is large enough for its latency not to matter, bytes.
_LARGE = 1e9


class TokenLinks(NamedTuple):
    """The way of tokens among the ranks that have experts.

    Attributes:
        nodes: in which they lie.
        inside: seconds per byte that a rank sends to those of its node.
        between: seconds per byte that it sends to all.
    """

    nodes: int
    inside: float
    between: float

    def price(self, size: float, kernels: ServingKernelsConfig) -> Price:
        """What sending so many bytes takes."""
        across = size * self.between / kernels.between
        within = size / self.nodes * self.inside / kernels.inside
        return Price(kernels.start, max(across, within))


def token_links(prices: AbstractPrices, group: Group, node: int) -> TokenLinks:
    """The links of a group, from prices without protocols; nodes are of so many ranks."""
    found = split_at(group.axes, node)
    inside, between = found if found is not None else ((), group.axes)

    def seconds(axes) -> float:
        if not axes:
            return 0.0
        return float(prices.price("all-to-all", Group("tokens", axes), _LARGE).bandwidth) / _LARGE

    return TokenLinks(Group("nodes", between).size, seconds(inside), seconds(between))


def token_bytes(hidden: int, number_format: str) -> float:
    """Of one copy of a token, as it is sent."""
    scales = SCALE_BYTES / SCALED if number_format in _NARROW else 0.0
    return hidden * (FORMAT_BYTES[number_format] + scales)
