"""How long a rank's operations take, and its host.

Each operation takes the longer of its FLOP and its bytes, and a fixed time beside:

    matmul:     max(flops/(peak·e) · (1 + A/area)(1 + 32/m)(1 + 32/n)(1 + d/k), bytes/(b·e_m)) + t
    attention:  max(flops/(peak·e_a), bytes/(b·e_m)) + t
    memory:     bytes/(b·e_m) + t

with the parts e, e_a and e_m of the peaks that are reached, and the time t that a kernel's start takes. What a product
of m by n, k summed over, does not reach has three reasons: its last wave of tiles does not fill the chip, which costs as
much as A more numbers (of all matrices together, where one kernel works out many, as those of attention's heads); tiles
at the edges of each matrix are partly empty, half of one of 64 in the mean; and a short sum does not hide its start.

A host that feeds the chip needs its own time for each kernel, each collective and each pass. It runs ahead of the
chip, so a pass takes the longer of both.

The roofline is that of Williams, Waterman and Patterson (CACM 52(4), 2009).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from mc.config.plan import FormatsConfig
from mc.training.arithmetic import Number, maximum
from mc.training.efficiency import Chip, peak_of
from mc.transformer import EXPERT_NAMES, Operation
from mc.transformer.operation import CORE

# Numbers that the last tile of a row or of a column lacks in the mean.
HALF_TILE = 32.0
# Products that are computed in the format of activations whatever that of the others is: what they feed decides.
ACCURATE = frozenset({"logits", "router", "mtp projection"})
ACCURATE_FORMAT = "bf16"


@dataclass
class Tally:
    """What a rank does in a while; things that follow one another add up.

    Attributes:
        compute: seconds of the chip.
        ideal: seconds that its products would take at the peak.
        kernels: how many are launched.
        attention: seconds of `compute` that attention's own products take.
        routed: seconds of `compute` that go with the tokens that a rank's experts get.
    """

    compute: Number = 0.0
    ideal: Number = 0.0
    kernels: Number = 0.0
    attention: Number = 0.0
    routed: Number = 0.0

    def add(self, other: "Tally", times: Number = 1.0) -> None:
        """Adds another, so many times."""
        self.compute = self.compute + times * other.compute
        self.ideal = self.ideal + times * other.ideal
        self.kernels = self.kernels + times * other.kernels
        self.attention = self.attention + times * other.attention
        self.routed = self.routed + times * other.routed


class Roofline:
    """The times of operations on one chip, with given formats."""

    def __init__(self, chip: Chip, formats: FormatsConfig):
        """Takes what operations need from a chip.

        Raises:
            ChipError: the chip does not have a format.
        """
        reached = chip.efficiency
        self.chip = chip
        self.kernel = reached.kernel
        self.area, self.depth = reached.half_area, reached.half_depth
        self.memory = chip.memory_bandwidth * reached.memory
        self.math = self._rates(formats.math)
        self.core = self._rates(formats.attention)
        self.accurate = self._rates(
            ACCURATE_FORMAT if formats.math in ("fp8", "fp4", "int8") else formats.math
        )
        self.attention = self.core[0] * reached.attention

    def _rates(self, number_format: str) -> tuple[Number, Number]:
        peak = peak_of(self.chip, number_format)
        return peak, peak * self.chip.efficiency.matmul[number_format]

    def seconds(self, operation: Operation, load: Number = 1.0) -> tuple[Number, Number]:
        """How long an operation takes, and how long its products would at the peak.

        Args:
            operation: what is computed.
            load: times so many rows.
        """
        name, kind, flops, size, m, n, k, _ = operation
        moved = load * size / self.memory
        if kind == "memory":
            return moved + self.kernel, 0.0
        flops = load * flops
        if kind == "attention":
            return maximum(flops / self.attention, moved) + self.kernel, flops / self.core[0]
        peak, rate = self.core if name in CORE else self.accurate if name in ACCURATE else self.math
        waves = 1.0 + self.area * 2.0 * k / flops
        edges = (1.0 + HALF_TILE / m) * (1.0 + HALF_TILE / n) * (1.0 + self.depth / k)
        return maximum(flops * waves * edges / rate, moved) + self.kernel, flops / peak

    def tally(self, operations: Iterable[Operation]) -> Tally:
        """What operations take one after the other."""
        found = Tally()
        for each in operations:
            seconds, ideal = self.seconds(each)
            found.compute = found.compute + seconds
            found.ideal = found.ideal + ideal
            found.kernels += 1.0
            if each.name in CORE:
                found.attention = found.attention + seconds
            elif each.name in EXPERT_NAMES:
                found.routed = found.routed + seconds
        return found
