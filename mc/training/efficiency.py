"""A chip in numbers: its peaks, its memory, and what is reached of both.

The numbers may be floats, arrays of as many variants, or traced: nothing here looks at them.
"""

from dataclasses import dataclass

import jax

from mc.config.efficiency import EfficiencyConfig
from mc.config.hardware import ChipConfig
from mc.config.names import FORMATS
from mc.errors import InputError
from mc.training.arithmetic import Number


class ChipError(InputError):
    """A chip that lacks what a training step needs to be told."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Efficiency:
    """What is reached of a chip's peaks, and fixed costs; as in `EfficiencyConfig`.

    Attributes:
        matmul: by number format.
    """

    matmul: dict[str, Number]
    half_area: Number
    half_depth: Number
    attention: Number
    memory: Number
    kernel: Number
    launch: Number
    collective_launch: Number
    pass_launch: Number
    wait: Number
    step: Number
    overlap: Number


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Chip:
    """An accelerator, as a training step sees it.

    Attributes:
        peak: dense FLOP/s, by number format; those it does not have are missing.
        memory_bandwidth: bytes/s.
        efficiency: what is reached of them.
    """

    peak: dict[str, Number]
    memory_bandwidth: Number
    efficiency: Efficiency


def build_efficiency(config: EfficiencyConfig) -> Efficiency:
    """The numbers of a configuration, with a part of the peak for every format."""
    values = {name: getattr(config, name) for name in type(config).model_fields if name != "matmul"}
    return Efficiency(matmul={name: config.matmul.of(name) for name in FORMATS}, **values)


def build_chip(config: ChipConfig) -> Chip:
    """The numbers of a chip.

    Raises:
        ChipError: it has no memory bandwidth.
    """
    if config.memory_bandwidth is None:
        name = f"chip `{config.name}`" if config.name else "the chip"
        raise ChipError(f"{name}: expected a `memory_bandwidth`, since a transformer moves bytes; got none")
    return Chip(
        peak=config.peak.offered,
        memory_bandwidth=config.memory_bandwidth,
        efficiency=build_efficiency(config.efficiency or EfficiencyConfig()),
    )


def peak_of(chip: Chip, number_format: str) -> Number:
    """FLOP/s of a format.

    Raises:
        ChipError: the chip does not have it.
    """
    try:
        return chip.peak[number_format]
    except KeyError:
        known = ", ".join(f"`{each}`" for each in chip.peak) or "none"
        raise ChipError(f"expected a format that the chip has ({known}); got `{number_format}`") from None
