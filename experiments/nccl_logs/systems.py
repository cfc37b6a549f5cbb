"""What each log was measured on: links, cards, and what NCCL was told to use.

The names of the logs say chip, nodes and chips per node (`h100_2x8`); their headers say the rest. What they
leave open is assumed, here and nowhere else:

- one ring of cards per node carries the bandwidth that all its cards have together;
- boards of four A100s or four GH200s have direct NVLinks, no switch that could reduce; HGX boards of H100,
  H200 and B200 have (NVLink SHARP, which NCCL uses from 2.17 on);
- NCCL has one set of constants for InfiniBand, RoCE, Slingshot, EFA and TCPXO, so they differ in bandwidth
  alone here, and a run over sockets is predicted as if it had the card to itself;
- A100 PCIe hosts: one port of InfiniBand HDR, since nothing slower could carry the 14.9 GB/s that one log reaches;
- a GB200 rack counts as trays of four, whose NVLinks go through the rack's switches.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class System:
    """Hardware and settings behind a log.

    Attributes:
        name: for the tables of results; logs of one system share it.
        nodes: how many.
        per_node: chips in each.
        inside: catalog id of the link between the chips of a node.
        between: catalog id of a node's cards; nothing for a single node.
        cards: per node.
        reduces: whether the node's switches can reduce.
        algorithm: what NCCL was told to use, or `auto`.
        protocol: likewise.
        racks: how many racks of NVLink; 1 where a node is the whole NVLink domain.
        near: whether cards and chips share a PCI switch; NCCL does not use LL128 through a host bridge.
    """

    name: str
    nodes: int
    per_node: int
    inside: str
    between: str = ""
    cards: int = 0
    reduces: bool = False
    algorithm: str = "auto"
    protocol: str = "auto"
    racks: int = 1
    near: bool = True


# Logs that cannot be compared, and why.
LEFT_OUT = {
    "allreduce_h100_coreweave_sharp_8x8plus_truncated": "64 chips by its name, 96 by its bandwidths",
    "allreduce_h100pcie_1x2_nvlbridge_issue194": "bridged PCIe cards: three of their NVLink bridges or fewer",
}

# (pattern of the log's name, name of the system, link inside, link between, cards per node, reduces)
_KINDS: tuple[tuple[str, str, str, str, int, bool], ...] = (
    (r"v100pcie_", "4x V100 PCIe", "PCIe-3", "", 0, False),
    (r"v100_.*abci", "ABCI V100, 2x EDR", "NVLink-2", "InfiniBand-EDR", 2, False),
    (r"a100_.*abci", "ABCI A100, 4x HDR", "NVLink-3", "InfiniBand-HDR", 4, False),
    (r"a100_.*polaris.*set1", "Polaris A100, sockets", "NVLink-3", "Slingshot-11", 2, False),
    (r"a100_.*polaris", "Polaris A100, 2x Slingshot", "NVLink-3", "Slingshot-11", 2, False),
    (r"a100_.*oci_roce", "OCI A100, 16x 100G RoCE", "NVLink-3", "100 Gb/s", 16, False),
    (r"a100_1x4_nvlink", "4x A100", "NVLink-3", "", 0, False),
    (r"a100pcie_", "A100 PCIe, 1x HDR", "PCIe-4", "InfiniBand-HDR", 1, False),
    (r"gh200.*tcp_fallback", "Alps GH200, sockets", "NVLink-4", "Slingshot-11", 4, False),
    (r"gh200_", "Alps GH200, 4x Slingshot", "NVLink-4", "Slingshot-11", 4, False),
    (r"h100_.*(efa|p5)", "AWS p5 H100, 32x EFA", "NVLink-4", "EFA-v2", 32, True),
    (r"p5_awsbatch", "AWS p5 H100, 32x EFA", "NVLink-4", "EFA-v2", 32, True),
    (r"h100_.*tcpxo", "GCP A3 Mega H100, 8x TCPXO", "NVLink-4", "200 Gb/s", 8, True),
    (r"h100_.*nebius", "Nebius H100, 8x NDR", "NVLink-4", "InfiniBand-NDR", 8, True),
    (r"h100_.*issue290", "H100, 8x NDR", "NVLink-4", "InfiniBand-NDR", 8, True),
    (r"h100_1x", "4 of 8x H100", "NVLink-4", "", 0, True),
    (r"h200_", "8x H200", "NVLink-4", "", 0, True),
    (r"gb200_", "OCI GB200 NVL72, 4x 400G RoCE", "NVLink-5", "Ethernet-400G", 4, True),
    (r"gb300_", "4x GB300", "NVLink-5", "", 0, True),
    (r"b200_", "GCP A4 B200, 8x 400G RoCE", "NVLink-5", "Ethernet-400G", 8, True),
    (r"mi325x_", "MI325X, 8x 400G RoCE", "xGMI-MI300X", "Ethernet-400G", 8, False),
)
# Polaris and Alps have chips and cards at the processor; NCCL's own messages say so of the A100 PCIe hosts.
_FAR = r"polaris|gh200|a100pcie"
_SHAPE = re.compile(r"_(\d+)x(\d+)_")
_SECTION_RANKS = re.compile(r"GPUS=(\d+)")
_SECTION_NODES = re.compile(r"(\d+)-node")
_ALGORITHMS = {"ring": "ring", "tree": "tree", "nvls": "in-network", "nvlstree": "in-network"}


def system_of(log: str, section: str, headers: dict[str, str]) -> System | None:
    """The system that a part of a log was measured on; None if it is not known."""
    kind = next((each for each in _KINDS if re.search(each[0], log)), None)
    if kind is None or log in LEFT_OUT:
        return None
    _, name, inside, between, cards, reduces = kind
    shape = _SHAPE.search(f"{log}_")
    if shape is not None:
        nodes, per_node = int(shape[1]), int(shape[2])
    elif "cscs" in log:
        nodes, per_node = 2, 4
    elif "p5_awsbatch" in log or "mi325x" in log:
        nodes, per_node = 1, 8
    else:
        nodes, per_node = int(headers["nodes"]), 0
    if (several := _SECTION_NODES.search(section)) is not None:
        nodes = int(several[1])
    if (chips := _SECTION_RANKS.search(section)) is not None:
        per_node = int(chips[1])
    algorithm, protocol = _told(f"{log} {headers.get('algo_or_env', '')}", section)
    if nodes == 1:
        between, cards = "", 0
    return System(
        name,
        nodes,
        per_node,
        inside,
        between,
        cards,
        reduces,
        algorithm,
        protocol,
        2 if "2racks" in log else 1,
        near=not re.search(_FAR, log),
    )


def _told(text: str, section: str) -> tuple[str, str]:
    """What NCCL_ALGO and NCCL_PROTO were set to."""
    named = re.search(r"ALGO=(\w+)", section) or re.search(r"NCCL_ALGO=(\w+)(?![\w|])", text)
    algorithm = _ALGORITHMS.get(named[1].lower(), "auto") if named else "auto"
    proto = re.search(r"PROTO=(\w+)", section)
    return algorithm, proto[1] if proto else "auto"
