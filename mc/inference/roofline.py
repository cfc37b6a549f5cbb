"""How long operations take when few tokens are computed at once, and what of that is which bytes.

An operation takes the longer of its products and its bytes, and a kernel's start:

    max(2k·(c·(m + 32)(n + 32) + A/s)·(1 + d·s/k)/rate + partial sums, bytes/(b·e_m)) + t.

That is the roofline of `mc.training.roofline` (edges of tiles, a last wave that does not fill the chip, short sums), but
for s: where few rows leave most of the chip idle, a kernel cuts the *sum* into s parts that work at once (split-k), and
adds up the parts' results: c·m·n numbers in fp32, written and read by each part through the chip's cache, which is assumed
to be twice as fast as its memory. The s that takes least time is used.

What an operation takes falls into parts that add up: reading weights, the cache, and activations, at the memory's
bandwidth; what products take longer than that; and kernels' starts.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields

from mc.config.serving import ServingFormatsConfig
from mc.inference.operations import Operation
from mc.training import Chip
from mc.training.efficiency import peak_of
from mc.training.roofline import HALF_TILE

# Parts of a sum that may be computed at once, and numbers that each of them adds up at least.
SPLITS = (1, 2, 4, 8, 16, 32, 64)
SHORTEST = 64.0
# Of the chip's cache, over its memory's bandwidth; bytes of a partial sum, written and read.
CACHE_SPEED, PARTIAL_BYTES = 2.0, 8.0


@dataclass
class Times:
    """Seconds of a rank's operations, one after the other.

    Attributes:
        weights: reading them.
        cache: reading and writing keys and values.
        activations: likewise.
        compute: what products take beyond.
        kernels: their starts.
    """

    weights: float = 0.0
    cache: float = 0.0
    activations: float = 0.0
    compute: float = 0.0
    kernels: float = 0.0

    @property
    def seconds(self) -> float:
        """In all."""
        return self.weights + self.cache + self.activations + self.compute + self.kernels

    def add(self, other: "Times", times: float = 1.0) -> None:
        """Adds another, so many times."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + times * getattr(other, each.name))


class Roofline:
    """The times of operations on one chip, with given formats."""

    def __init__(self, chip: Chip, formats: ServingFormatsConfig, attention: float):
        """Args: chip; formats; attention, the part of the peak that attention to a cache reaches.

        Raises:
            ChipError: the chip does not have a format.
        """
        self.chip, self.formats = chip, formats
        reached = chip.efficiency
        self.memory = chip.memory_bandwidth * reached.memory
        self.cached = peak_of(chip, formats.attention) * attention
        self.fused = peak_of(chip, formats.attention) * reached.attention
        self.accurate = self._rate(formats.activations)
        self.math = self._rate(formats.math)

    def _rate(self, number_format: str) -> float:
        return peak_of(self.chip, number_format) * self.chip.efficiency.matmul[number_format]

    def times(self, operation: Operation) -> Times:
        """How long an operation takes."""
        moved = operation.weights + operation.cache + operation.activations
        reading = moved / self.memory
        match operation.kind:
            case "memory":
                product = 0.0
            case "attention":
                product = operation.flops / (self.cached if operation.cache else self.fused)
            case "matmul":
                product = self._product(operation, reading)
        return Times(
            operation.weights / self.memory,
            operation.cache / self.memory,
            operation.activations / self.memory,
            max(product - reading, 0.0),
            self.chip.efficiency.kernel,
        )

    def total(self, operations: Iterable[Operation], load: float = 1.0) -> Times:
        """Of operations one after the other, experts' with so many times the mean rows."""
        found = Times()
        for each in operations:
            found.add(self.times(each.loaded(load) if each.routed and load != 1.0 else each))
        return found

    def _product(self, operation: Operation, reading: float) -> float:
        _, _, _, _, _, _, m, n, k, copies, number_format, _ = operation
        rate = self.math if number_format is None else self.accurate
        reached = self.chip.efficiency
        padded = copies * (m + HALF_TILE) * (n + HALF_TILE)
        least = float("inf")
        for parts in SPLITS:
            if parts > 1 and k / parts < SHORTEST:
                break
            whole = padded + reached.half_area / parts
            seconds = 2.0 * k * whole * (1.0 + reached.half_depth * parts / k) / rate
            if parts > 1:
                seconds += PARTIAL_BYTES * parts * copies * m * n / (CACHE_SPEED * self.memory)
            least = min(least, seconds)
            # Reading takes longer already: more parts would change nothing.
            if least <= reading:
                break
        return least
