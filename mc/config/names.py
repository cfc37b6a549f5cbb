"""The names that a file may use.

Plain literals, so that checking a file needs no JAX; a test keeps them in step with the registries of the
engine.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator

Collective = Literal[
    "all-reduce",
    "reduce",
    "broadcast",
    "all-gather",
    "reduce-scatter",
    "gather",
    "scatter",
    "all-to-all",
    "send-recv",
    "barrier",
]
Algorithm = Literal[
    "auto",
    "ring",
    "bidirectional-ring",
    "recursive-doubling",
    "recursive-halving",
    "halving-doubling",
    "tree",
    "k-ary",
    "in-network",
    "pairwise",
    "bruck",
    "direct",
    "binomial",
    "dissemination",
    "multi-ring",
    "one-shot",
    "hierarchical",
]
Format = Literal["fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8"]
Method = Literal["exact", "direct", "grid"]
# What an automatic choice of algorithm goes by: the time with links idle, or the mean or p99 under their noise.
Objective = Literal["floor", "mean", "p99"]
Kind = Literal["cluster", "model", "plan", "experiment"]
# A calibration refers to the others, and nothing to it.
FileKind = Literal["cluster", "model", "plan", "experiment", "calibration"]


def _refuse_booleans(value: Any) -> Any:
    # To Python, True is 1.
    if isinstance(value, bool):
        raise ValueError(f"expected 1; got {str(value).lower()}")
    return value


# Of the file format; files of another version are refused rather than misread.
SchemaVersion = Annotated[Literal[1], BeforeValidator(_refuse_booleans)]

COLLECTIVES: tuple[str, ...] = get_args(Collective)
ALGORITHMS: tuple[str, ...] = get_args(Algorithm)
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
FORMATS: tuple[str, ...] = get_args(Format)
# Bytes of one number; tf32 is stored as fp32.
FORMAT_BYTES: Mapping[str, float] = MappingProxyType(
    {"fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "fp4": 0.5, "int8": 1}
)
KINDS: tuple[Kind, ...] = get_args(Kind)
FILE_KINDS: tuple[FileKind, ...] = get_args(FileKind)
