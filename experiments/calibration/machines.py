"""Machines with 2, 4 or 8 accelerators in one box, and what their collectives take.

Measured by NVIDIA's aiconfigurator (github.com/ai-dynamo/aiconfigurator at 095f58a, Apache-2.0) with nccl-tests, threads of one
process, 60 to 100 iterations a size. Of each machine the newest release of NCCL is taken whose folder and field agree, and
`half`. Left out: Intel's B60, whose library is oneCCL.

Machines without NVLink are no flat node. In pairs a PCI switch connects them, pairs meet at a host bridge, and four and four
across two sockets, which is what bandwidths on 2, 4 and 8 of them show: they are three tiers, of one link per unit.
"""

import csv
import gzip
import io
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from experiments.nccl_logs.compare import link_of
from mc.calibration import Curve
from mc.calibration.groups import usable
from mc.config import ClusterConfig
from mc.fabric import build_cluster

DATA = Path(__file__).parent.parent / "data" / "single_node.csv.gz"
RAW = "aiconfigurator_single_node_collectives.csv"
_NOTE = (
    "# Times of collectives in one box, by nccl-tests: github.com/ai-dynamo/aiconfigurator at 095f58a (Apache-2.0); "
    "of each machine the newest release, half\n"
)
_COLLECTIVES = {
    "all_reduce": "all-reduce",
    "all_gather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "alltoall": "all-to-all",
}
# What NCCL has for each. It sends an all-to-all as messages between pairs.
_ALGORITHMS = {"all-reduce": ("ring", "tree", "in-network"), "all-to-all": ("pairwise",)}
_OTHERS = ("ring",)
FLAT = (("node", 8),)
TRAY = (("node", 4),)
HOST = (("pair", 2), ("bridge", 2), ("sockets", 2))


@dataclass(frozen=True)
class Machine:
    """One kind of box.

    Attributes:
        name: for people.
        system: what the source calls it.
        link: catalog id.
        tiers: name and fan-out of each, innermost first.
        reduces: whether its switches can.
    """

    name: str
    system: str
    link: str
    tiers: tuple[tuple[str, int], ...] = FLAT
    reduces: bool = True


MACHINES = (
    Machine("8x A100", "a100_sxm", "NVLink-3", reduces=False),
    Machine("8x H100", "h100_sxm", "NVLink-4"),
    Machine("8x H200", "h200_sxm", "NVLink-4"),
    Machine("8x B200", "b200_sxm", "NVLink-5"),
    Machine("8x B300", "b300_sxm", "NVLink-5"),
    Machine("4x GB200", "gb200", "NVLink-5", TRAY),
    Machine("4x GB300", "gb300", "NVLink-5", TRAY),
    Machine("8x L40S", "l40s", "PCIe-4", HOST, reduces=False),
    Machine("8x RTX PRO 6000", "rtx_pro_6000_server", "PCIe-5", HOST, reduces=False),
    # To show what the tiers of a host are worth.
    Machine("8x L40S, as if flat", "l40s", "PCIe-4", reduces=False),
)


def machine(name: str) -> Machine:
    """By its name."""
    return next(each for each in MACHINES if each.name == name)


def config_of(box: Machine) -> ClusterConfig:
    """Its tiers with the link's figures of the catalog; units further out have one link each."""
    tiers, below = [], 1
    for name, fan_out in box.tiers:
        tier = {"name": name, "link": link_of(box.link), "fan_out": fan_out, "links_per_rank": 1 / below}
        tiers.append(tier | ({"reduction_radix": fan_out} if box.reduces else {}))
        below *= fan_out
    return ClusterConfig.model_validate({"name": "system", "chip": {"peak": {}}, "tiers": tiers})


def curves_of(box: Machine) -> list[Curve]:
    """Times of each collective on each number of ranks."""
    cluster, found = build_cluster(config_of(box)), []
    for (collective, ranks), rows in _rows()[box.system].items():
        names = usable(cluster, collective, ranks, _ALGORITHMS.get(collective, _OTHERS))
        sizes, times = np.array(sorted(rows)).T
        found.append(Curve(collective, ranks, names, "auto", sizes, times, f"{collective}, {ranks}", (RAW,)))
    return found


def extract(raw: Path) -> None:
    """Writes the figures that the study carries, from the source's table."""
    text = io.StringIO()
    text.write(_NOTE)
    written = csv.writer(text, lineterminator="\n")
    written.writerow(["system", "collective", "ranks", "size_bytes", "time_us"])
    with raw.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(line for line in stream if not line.startswith("#")))
    for box in {each.system: each for each in MACHINES}.values():
        own = [
            row
            for row in rows
            if row["system"] == box.system
            and row["dtype"] == "half"
            and row["dir_version"] == row["row_version"]
        ]
        newest = max((row["dir_version"] for row in own), key=lambda text: [int(x) for x in text.split(".")])
        written.writerows(
            (box.system, _COLLECTIVES[row["op"]], row["ranks"], row["size_bytes"], row["time_us"])
            for row in own
            if row["dir_version"] == newest
        )
    DATA.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


@cache
def _rows() -> dict[str, dict[tuple[str, int], list[tuple[float, float]]]]:
    found: dict[str, dict[tuple[str, int], list[tuple[float, float]]]] = {}
    for row in _table(gzip.decompress(DATA.read_bytes()).decode().splitlines()):
        key = row["collective"], int(row["ranks"])
        pair = float(row["size_bytes"]), float(row["time_us"]) * 1e-6
        found.setdefault(row["system"], {}).setdefault(key, []).append(pair)
    return found


def _table(lines: Iterable[str]) -> Iterable[dict[str, str]]:
    return csv.DictReader(line for line in lines if not line.startswith("#"))
