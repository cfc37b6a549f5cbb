"""What the columns of somebody's table are, by their names, and in which units.

A name is cut into words; words say what is measured, a last word or what stands in brackets says the unit.
Units are taken as written and never assumed: a time without one has to be given one, and `gbps` in small
letters, which people write for GB/s as well as for Gb/s, is either confirmed by the times of the same rows or
asked for.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

TIME_UNITS = {
    "s": 1.0,
    "sec": 1.0,
    "secs": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "ms": 1e-3,
    "msec": 1e-3,
    "milliseconds": 1e-3,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "usec": 1e-6,
    "microseconds": 1e-6,
    "ns": 1e-9,
    "nsec": 1e-9,
    "nanoseconds": 1e-9,
}
# By case: B is a byte, b a bit.
BANDWIDTH_UNITS = {
    "GB/s": 1e9,
    "GBps": 1e9,
    "GBs": 1e9,
    "MB/s": 1e6,
    "MBps": 1e6,
    "GiB/s": 2.0**30,
    "B/s": 1.0,
    "Bps": 1.0,
    "Gb/s": 1e9 / 8,
    "Gbit/s": 1e9 / 8,
    "Gbps": 1e9 / 8,
}
_AMBIGUOUS = ("gbps", "gb/s", "gbs")


@dataclass(frozen=True)
class Role:
    """What a column is.

    Attributes:
        name: the role.
        scale: one of its units in SI; None where the name has no unit or one that may be two.
        in_place: of a column that says so.
        index: the process of a column of one process's times.
    """

    name: str
    scale: float | None = None
    in_place: bool | None = None
    index: int | None = None


_WHOLE = {
    "bytes": (
        "size_bytes",
        "bytes",
        "message_bytes",
        "msg_bytes",
        "size_b",
        "nbytes",
        "message_size_bytes",
        "size",
    ),
    "ranks": (
        "ranks",
        "nranks",
        "n_ranks",
        "num_ranks",
        "gpus",
        "n_gpus",
        "num_gpus",
        "ngpus",
        "gpu_count",
        "world_size",
        "chips",
        "devices",
        "num_devices",
        "n_devices",
        "processes",
        "nprocs",
        "nproc",
        "cluster_size",
        "tpus",
        "accelerators",
    ),
    "nodes": ("nodes", "nnodes", "n_nodes", "num_nodes", "node_num", "hosts"),
    "per_node": ("gpus_per_node", "ranks_per_node", "chips_per_node", "ppn"),
    "collective": ("op", "collective", "coll", "operation", "test", "op_name", "schedule", "collective_type"),
    "datatype": ("dtype", "datatype", "type"),
    "device": ("device", "gpu", "hardware", "accelerator"),
    "algorithm": ("algorithm", "algo"),
    "protocol": ("protocol", "proto"),
    "place": ("place", "in_place", "inplace"),
    "iteration": ("iteration", "iter", "step", "trial", "it", "global_step", "train_step"),
    "process": ("process", "rank", "proc", "global_rank"),
    "iterations": ("iterations", "iters", "repetitions", "samples"),
    "metric": ("metric",),
    "value": ("value",),
}
# How a job was spread over its ranks, by the keys of a plan: means something where steps are timed.
PLAN = {
    "tp": ("tp", "tp_size", "tensor_parallel", "tensor_parallel_size"),
    "cp": ("cp", "cp_size", "context_parallel", "context_parallel_size"),
    "pp": ("pp", "pp_size", "pipeline_parallel", "pipeline_parallel_size"),
    "dp": ("dp", "dp_size", "data_parallel", "data_parallel_size"),
    "ep": ("ep", "ep_size", "expert_parallel", "expert_parallel_size"),
    "etp": ("etp", "expert_tensor_parallel_size"),
    "chunks": ("vp", "vpp", "chunks", "virtual_pipeline_size"),
    "micro_batch": ("mbs", "micro_batch", "micro_batch_size"),
    "global_batch": ("gbs", "global_batch", "global_batch_size"),
    "sequence_length": ("seq_len", "seq_length", "sequence_length"),
}
_PLAN = {name: role for role, names in PLAN.items() for name in names}
_ROLES = {name: role for role, names in _WHOLE.items() for name in names}
_STATISTICS = {
    "min": "time_min_s", "max": "time_max_s", "median": "time_p50_s", "p50": "time_p50_s", "p99": "time_p99_s",
    "p999": "time_p999_s", "p99.9": "time_p999_s", "std": "time_std_s", "stdev": "time_std_s",
}  # fmt: skip
_PER_PROCESS = re.compile(r"(?:rank|proc|process|worker|gpu|node)_?(?P<index>\d{1,6})")
# What a column of times may be called, the plainest last: (words that it must have, priority).
_TIMES = (
    ("step time", 5), ("iteration time", 5), ("iter time", 5), ("time per step", 5), ("time per iteration", 5),
    ("per iter", 5), ("per step", 5), ("step", 4), ("iteration", 4), ("span", 3), ("latency", 3), ("duration", 3),
    ("elapsed", 3), ("time", 3), ("t", 2), ("", 1),
)  # fmt: skip


def split_name(name: str) -> tuple[str, str | None]:
    """The words of a name, small and joined by blanks, and its unit as written."""
    name = name.strip().lstrip("#-").strip()
    unit = None
    bracket = re.search(r"[(\[]([^)\]]*)[)\]]\s*$", name)
    if bracket is not None:
        unit, name = bracket[1].strip().split(" ")[0], name[: bracket.start()]
    words = [word for word in re.split(r"[\s_-]+", name.strip()) if word]
    if unit is None and words:
        ends = [word for word in words if word not in ("oop", "ip")] or words
        for word in dict.fromkeys((ends[-1], ends[0])):
            if _is_unit(word):
                unit = word
                if not (word in ("sec", "seconds") and "per" in words):
                    words.remove(word)
                break
    return " ".join(words).lower(), unit


def _is_unit(word: str) -> bool:
    return word in TIME_UNITS or word in BANDWIDTH_UNITS or word.lower() in (*_AMBIGUOUS, "pct", "percent")


def role_of(name: str) -> Role | None:
    """What a column is, other than the time that is measured; None if its name says nothing."""
    words, unit = split_name(name)
    plain = words.replace(" ", "_")
    per_process = _PER_PROCESS.fullmatch(plain)
    if per_process is not None:
        return Role("per-process", TIME_UNITS.get(unit or ""), index=int(per_process["index"]))
    whole = re.sub(r"[\s-]+", "_", name.strip().lstrip("#-").strip().lower())
    if whole in _PLAN:
        return Role(_PLAN[whole])
    if unit is None or unit not in TIME_UNITS:
        if whole in _ROLES:
            return Role(_ROLES[whole])
        if plain in _ROLES and unit is None:
            return Role(_ROLES[plain])
    pieces = words.split()
    for kind in ("busbw", "algbw"):
        if kind in pieces:
            others = [piece for piece in pieces if piece not in (kind, "oop", "ip")]
            return None if others else Role(kind, BANDWIDTH_UNITS.get(unit or ""), _place(pieces))
    if "mfu" in pieces or words in ("model flops utilization", "model flop utilization"):
        return Role("mfu", 0.01 if (unit or "").lower() in ("pct", "percent", "%") else None)
    if "wrong" in pieces:
        return Role("wrong", in_place=_place(pieces))
    return None


def _place(pieces: Sequence[str]) -> bool | None:
    return True if "ip" in pieces else False if "oop" in pieces else None


def time_of(name: str) -> tuple[int, Role] | None:
    """How likely a column is the time that is measured, and its role; None if it is no time."""
    words, unit = split_name(name)
    pieces = [piece for piece in words.split() if piece not in ("oop", "ip")]
    place = _place(words.split())
    scale = TIME_UNITS.get(unit or "")
    statistic = next((piece for piece in pieces if piece in _STATISTICS), None)
    rest = [piece for piece in pieces if piece != statistic]
    if statistic is not None and rest in (["t"], ["time"], ["latency"], []):
        return (0, Role(_STATISTICS[statistic], scale, place)) if scale is not None else None
    plain = [piece for piece in pieces if piece not in ("mean", "avg", "average")]
    if len(plain) < len(pieces) and plain in ([], ["t"], ["time"], ["latency"]):
        return (3, Role("time", scale, place)) if scale is not None else None
    joined = " ".join(pieces)
    if any(word in joined for word in ("date", "stamp", "start", "end", "train ", "to train")):
        return None
    for phrase, priority in _TIMES:
        exact = f" {joined} " == f" {phrase} " if priority <= 2 else f" {phrase} " in f" {joined} "
        if exact and (scale is not None or priority >= 3):
            if scale is None and joined in ("step", "iteration"):
                return None
            return priority, Role("time", scale, place)
    return None
