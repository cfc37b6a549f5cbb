"""The names that a file may use for collectives, algorithms, number formats and methods.

Plain literals, so that checking a file needs no JAX; a test keeps them in step with the registries of the
engine.
"""

from typing import Literal, get_args

Collective = Literal[
    "all-reduce", "reduce", "broadcast", "all-gather", "reduce-scatter", "all-to-all", "send-recv", "barrier"
]
Algorithm = Literal[
    "auto",
    "ring",
    "recursive-doubling",
    "halving-doubling",
    "tree",
    "k-ary",
    "in-network",
    "pairwise",
    "bruck",
    "direct",
    "binomial",
    "hierarchical",
]
Format = Literal["fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8"]
Method = Literal["exact", "direct", "grid"]
Kind = Literal["cluster", "model", "plan", "experiment"]

COLLECTIVES: tuple[str, ...] = get_args(Collective)
ALGORITHMS: tuple[str, ...] = get_args(Algorithm)
FORMATS: tuple[str, ...] = get_args(Format)
KINDS: tuple[Kind, ...] = get_args(Kind)
