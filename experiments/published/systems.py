"""What the runs ran on. Whatever a paper leaves open is assumed here and nowhere else.

- `selene`: DGX A100 with a 200 Gb/s HDR card per GPU (Narayanan et al. 2021, section 5).
- `vtrain`: A100s, eight per node, 800 Gb/s per node (`inter_node_bandwidth` of its configurations).
- `jean-zay`: A100 80 GB, eight per node, four 100 Gb/s Omni-Path cards per node (BLOOM's chronicles); with the constants of
  NCCL's networks.
- `megascale`: "Ampere" GPUs, eight per node, eight 200 Gb/s cards (MegaScale, section 3.6); taken for A100s.
- `meta-24k`: H100s with 400 Gb/s RoCE each (Llama 3, section 3.3.1). The oversubscription of 7 above its pods of 3,072
  GPUs is left out: only gradients cross it, and pods do not divide the numbers of GPUs.
- `dgx-h100`, `dgx-b200`, `dgx-b300`: eight GPUs and eight cards of 400, 400 and 800 Gb/s.
- `gb200-nvl72`, `gb300-nvl72`: racks, of which a job of more than one takes 64 GPUs each (the recipes' segments of 16
  trays); a card of 400 or 800 Gb/s per GPU.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from mc.config import ClusterConfig


@dataclass(frozen=True)
class System:
    """Chips of a kind and their links, for any number of them.

    Attributes:
        chip: catalog id.
        inside: catalog id of the link between the chips of a node or rack.
        per_node: chips that it joins.
        between: catalog id of the network's cards.
        cards: of that kind, per chip.
    """

    chip: str
    inside: str
    per_node: int
    between: str
    cards: float = 1.0


SYSTEMS = {
    "selene": System("A100", "NVLink-3", 8, "InfiniBand-HDR"),
    "vtrain": System("A100", "NVLink-3", 8, "InfiniBand-HDR", 0.5),
    "jean-zay": System("A100", "NVLink-3", 8, "InfiniBand-HDR", 0.25),
    "megascale": System("A100", "NVLink-3", 8, "InfiniBand-HDR"),
    "meta-24k": System("H100", "NVLink-4", 8, "Ethernet-400G"),
    "dgx-h100": System("H100", "NVLink-4", 8, "InfiniBand-NDR"),
    "dgx-b200": System("B200", "NVLink-5", 8, "InfiniBand-NDR"),
    "dgx-b300": System("B300", "NVLink-5", 8, "InfiniBand-XDR"),
    "gb200-nvl72": System("GB200", "NVLink-5", 64, "InfiniBand-NDR"),
    "gb300-nvl72": System("GB300", "NVLink-5", 64, "InfiniBand-XDR"),
}


@cache
def cluster(name: str, gpus: int) -> ClusterConfig:
    """The cluster of a system with so many chips."""
    system = SYSTEMS[name]
    node = min(system.per_node, gpus)
    tiers: list[dict[str, Any]] = [{"name": "node", "link": system.inside, "fan_out": node}]
    if gpus > node:
        network = {"link": system.between, "links_per_rank": system.cards, "fan_out": gpus // node}
        tiers.append({"name": "network", **network})
    return ClusterConfig.model_validate({"name": name, "chip": system.chip, "tiers": tiers})
