"""The interconnect: links, tiers of links, and which tiers a group of ranks spans.

Structure (names, fan-outs, radices) is static; numbers (latencies, bandwidths) are 0-d float arrays, so one
compiled program serves every value of them and can be differentiated in each.
"""

from mc.fabric.build import build_cluster as build_cluster
from mc.fabric.cluster import Cluster as Cluster
from mc.fabric.cluster import FabricError as FabricError
from mc.fabric.cluster import Tier as Tier
from mc.fabric.cluster import smallest_bandwidth as smallest_bandwidth
from mc.fabric.link import Link as Link
from mc.fabric.span import Extent as Extent
from mc.fabric.span import is_even as is_even
from mc.fabric.span import span as span
