"""Writes measurements as nccl-tests prints them, in each of its dialects: the oracle of the reader."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    """What one half of a row says: size, times of both placements in us, and the ranks."""

    size: int
    time: float
    in_place_time: float


@dataclass(frozen=True)
class Dialect:
    """How a release and its launcher print.

    Attributes:
        root: whether there is a column of the root.
        reduction: whether there is one of the reduction.
        wrong: what the column of errors holds; None where there is none.
        wide: whether times are 8 wide, as since 2.17.
        hash: whether comments have their mark.
        prefix: in front of every line.
        messages: whether NCCL's messages cut every row in two.
        per_iteration: whether there are columns of single calls.
        heading: whether the table has one.
    """

    root: bool = True
    reduction: bool = True
    wrong: str | None = "0"
    wide: bool = False
    hash: bool = True
    prefix: str = ""
    messages: bool = False
    per_iteration: bool = False
    heading: bool = True
    timestamp: bool = False
    ends: str = "\n"


DIALECTS = {
    "2019": Dialect(root=False, wrong="2e-07"),
    "broadcast of 2019": Dialect(reduction=False, wrong="0e+00"),
    "2022": Dialect(),
    "2025": Dialect(wide=True),
    "unchecked": Dialect(wrong="N/A"),
    "mpirun": Dialect(prefix="[1,0]<stdout>:"),
    "Open MPI 5": Dialect(prefix="[prterun-n1-77@1,0]<stdout>:"),
    "srun": Dialect(prefix=" 0: "),
    "Hydra": Dialect(prefix="[0] "),
    "Kubernetes": Dialect(prefix="2026-01-02T03:04:05.678901234Z "),
    "without marks": Dialect(hash=False),
    "rows only": Dialect(heading=False),
    "cut columns": Dialect(root=False, wrong=None),
    "cut by messages": Dialect(wide=True, messages=True),
    "per iteration": Dialect(wide=True, per_iteration=True),
    "timestamps": Dialect(wide=True, timestamp=True),
    "Windows": Dialect(ends="\r\n"),
}


def figure(value: float, width: int) -> str:
    """A float as nccl-tests fits it into its columns: fewer decimals, the larger it is."""
    power = len(str(int(value))) if value >= 1 else 0
    if power < width - 2:
        return f"{value:.2f}"
    if power < width - 1:
        return f"{value:.1f}"
    return f"{value:.0f}" if power < width + 1 else f"{value:.1e}"


def printed_time(value: float, dialect: Dialect) -> float:
    """The time that a reader can know: what is printed."""
    return float(figure(value, 8 if dialect.wide else 7))


def half(size: int, time: float, factor: float, dialect: Dialect) -> list[str]:
    algbw = size / time / 1e3
    words = [
        figure(time, 8 if dialect.wide else 7),
        figure(algbw, 6),
        figure(algbw * factor, 6),
    ]
    if dialect.wrong is not None:
        words.append(dialect.wrong)
    if dialect.per_iteration:
        words += [figure(time * part, 7) for part in (0.9, 1.5, 1.25)] + ["4.50"]
    return words


MESSAGE = "n1:10:11 [0] NCCL INFO "


def write(
    points: Iterable[Point],
    dialect: Dialect,
    *,
    program: str = "all_reduce_perf",
    hosts: Sequence[str] = ("n1", "n1", "n2", "n2"),
    factor: float = 1.5,
    share: int = 1,
) -> str:
    """The text of a run.

    Args:
        points: its rows.
        dialect: how to print them.
        program: which prints them.
        hosts: of each rank.
        factor: busbw/algbw.
        share: how many counts make up a size.
    """
    mark = "# " if dialect.hash else ""
    lines = []
    if dialect.heading:
        lines += [
            f"{mark}nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807",
            f"{mark}Collective test starting: {program}",
            f"{mark}nThread 1 nGpus 1 minBytes 8 maxBytes 128 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1",
            mark,
            f"{mark}Using devices",
            *(
                f"{mark} Rank {rank:2} Group  0 Pid 100{rank:02} on {host:>10} device  0 [0000:0{rank % 8}:00] NVIDIA H100"
                for rank, host in enumerate(hosts)
            ),
            f"{mark}{'':52}out-of-place                       in-place",
            mark + "      ".join(_names(dialect)),
            f"{mark}       (B)    (elements)           (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)",
        ]
    for point in points:
        head = [str(point.size), str(point.size // 4 // share), "float"]
        head += ["sum" if share == 1 else "none"] * dialect.reduction + ["-1"] * dialect.root
        first = half(point.size, point.time, factor, dialect)
        second = half(point.size, point.in_place_time, factor, dialect)
        if dialect.timestamp:
            second += ["2026-01-02 03:04:05"]
        left = "  ".join(f"{word:>8}" for word in head)
        if dialect.messages:
            lines += [f"{left}{MESSAGE}Channel 00", "  ".join(first) + f"{MESSAGE}Launch", "  ".join(second)]
        else:
            lines.append("  ".join((left, *first, *second)))
    if dialect.heading:
        lines += [f"{mark}Out of bounds values : 0 OK", f"{mark}Avg bus bandwidth    : 1.5", mark]
    return "".join(f"{dialect.prefix}{line}{dialect.ends}" for line in lines)


def _names(dialect: Dialect) -> list[str]:
    names = ["size", "count", "type"] + ["redop"] * dialect.reduction + ["root"] * dialect.root
    one = ["time", "algbw", "busbw"] + ["#wrong"] * (dialect.wrong is not None)
    if dialect.per_iteration:
        one += ["i_min", "i_max", "i_p99", "i_cv%"]
    return [*names, *one, *one] + ["timestamp"] * dialect.timestamp
