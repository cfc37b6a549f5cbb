"""The many spellings of collectives, datatypes, algorithms and protocols, and the one used here."""

import re

# What programs and libraries call them, without case, `_`, `-` and blanks, to the names of the configuration.
_COLLECTIVES = {
    "allreduce": "all-reduce",
    "reduce": "reduce",
    "broadcast": "broadcast",
    "bcast": "broadcast",
    "allgather": "all-gather",
    "allgatherv": "all-gather",
    "reducescatter": "reduce-scatter",
    "reducescatterblock": "reduce-scatter",
    "gather": "gather",
    "gatherv": "gather",
    "scatter": "scatter",
    "scatterv": "scatter",
    "alltoall": "all-to-all",
    "alltoallv": "all-to-all",
    "sendrecv": "send-recv",
    "sendreceive": "send-recv",
    "send": "send-recv",
    "recv": "send-recv",
    "p2p": "send-recv",
    "barrier": "barrier",
}
DATATYPE_BYTES = {
    "int8": 1,
    "uint8": 1,
    "char": 1,
    "int32": 4,
    "int": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "half": 2,
    "float16": 2,
    "fp16": 2,
    "bfloat16": 2,
    "bf16": 2,
    "float": 4,
    "float32": 4,
    "double": 8,
    "float64": 8,
    "f8e4m3": 1,
    "f8e5m2": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
}
REDUCTIONS = frozenset(("sum", "prod", "min", "max", "avg", "mulsum", "none", "all"))
# The plugin of NCCL's tuner and NCCL's messages spell them differently; these are NCCL's own tables.
_ALGORITHMS = ("Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT")
_PROTOCOLS = ("LL", "LL128", "Simple")
# Which algorithm of the engine stands for which of NCCL's.
ENGINE_ALGORITHMS = {
    "Ring": "ring",
    "Tree": "tree",
    "CollNetDirect": "in-network",
    "CollNetChain": "in-network",
    "NVLS": "in-network",
    "NVLSTree": "in-network",
}


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).lower()


def collective_of(name: str) -> str | None:
    """The collective that `all_reduce_perf`, `AllReduce`, `osu_bcast`, `MPI_Alltoall`, ... is about."""
    plain = re.sub(r"^(osu|nccl|rccl|mpi|c10d)|(perf|c10d)$", "", _plain(name))
    # Non-blocking collectives of MPI.
    return _COLLECTIVES.get(plain) or (_COLLECTIVES.get(plain[1:]) if plain.startswith("i") else None)


def collective_in(text: str) -> str | None:
    """The collective that a file's name begins with or contains between separators: `all_reduce_output.dat`."""
    plain = re.sub(r"[\W_]+", "_", text.lower())
    for pattern, found in _IN_NAMES:
        if pattern.search(plain):
            return found
    return None


_IN_NAMES = tuple(
    (re.compile(rf"(?:^|_)(?:osu_)?{spelling}(?:_|$)"), collective)
    for spelling, collective in (
        ("all_?reduce", "all-reduce"),
        ("reduce_?scatter", "reduce-scatter"),
        ("all_?gather", "all-gather"),
        ("all_?to_?all", "all-to-all"),
        ("broadcast|bcast", "broadcast"),
        ("send_?recv", "send-recv"),
        ("reduce", "reduce"),
        ("gather", "gather"),
        ("scatter", "scatter"),
        ("barrier", "barrier"),
    )
)


def algorithm_of(name: str) -> str | None:
    """NCCL's name of an algorithm, however it is spelt; None for `auto`, `unknown` and lists."""
    if name.isdigit():
        return _ALGORITHMS[int(name)] if int(name) < len(_ALGORITHMS) else None
    plain = _plain(name)
    return next((known for known in _ALGORITHMS if known.lower() == plain), None)


def protocol_of(name: str) -> str | None:
    """NCCL's name of a protocol, however it is spelt."""
    if name.isdigit() and int(name) < len(_PROTOCOLS):
        return _PROTOCOLS[int(name)]
    plain = _plain(name)
    return next((known for known in _PROTOCOLS if known.lower() == plain), None)


def nccl_version(code: int) -> str:
    """2.28.7 from 22807; up to 2.8 the code has one digit less."""
    if code < 10000:
        return f"{code // 1000}.{code % 1000 // 100}.{code % 100}"
    return f"{code // 10000}.{code % 10000 // 100}.{code % 100}"
