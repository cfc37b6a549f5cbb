"""The interconnect: links, tiers of links, and which tiers a group of ranks spans.

Structure (names, fan-outs, radices) is static; numbers (latencies, bandwidths) are 0-d float arrays, so one
compiled program serves every value of them and can be differentiated in each.
"""

from mc.fabric.build import build_cluster as build_cluster
from mc.fabric.build_links import build_incast as build_incast
from mc.fabric.build_links import build_links as build_links
from mc.fabric.cluster import Cluster as Cluster
from mc.fabric.cluster import FabricError as FabricError
from mc.fabric.cluster import Tier as Tier
from mc.fabric.cluster import smallest_bandwidth as smallest_bandwidth
from mc.fabric.crossed import crossed as crossed
from mc.fabric.incast import Incast as Incast
from mc.fabric.incast import simultaneous_senders as simultaneous_senders
from mc.fabric.link import Link as Link
from mc.fabric.link_noise import LinkNoise as LinkNoise
from mc.fabric.link_noise import build_link_noise as build_link_noise
from mc.fabric.link_noise import shared_links as shared_links
from mc.fabric.link_noise import sharing as sharing
from mc.fabric.link_noise import units_of as units_of
from mc.fabric.link_states import LinkStates as LinkStates
from mc.fabric.link_states import SharedLinks as SharedLinks
from mc.fabric.link_states import draw_link_factors as draw_link_factors
from mc.fabric.link_states import spread_over_paths as spread_over_paths
from mc.fabric.markov import LinkStateError as LinkStateError
from mc.fabric.markov import MarkovChain as MarkovChain
from mc.fabric.placement import crossing as crossing
from mc.fabric.placement import hops as hops
from mc.fabric.placement import unit_of as unit_of
from mc.fabric.protocol import Correction as Correction
from mc.fabric.protocol import Plateau as Plateau
from mc.fabric.protocol import Protocol as Protocol
from mc.fabric.protocol import Terms as Terms
from mc.fabric.protocol import build_protocol as build_protocol
from mc.fabric.protocol_links import check_protocol as check_protocol
from mc.fabric.protocol_links import protocols as protocols
from mc.fabric.shape import FullyConnected as FullyConnected
from mc.fabric.shape import Level as Level
from mc.fabric.shape import Shape as Shape
from mc.fabric.shape import ShapeError as ShapeError
from mc.fabric.shape import Switched as Switched
from mc.fabric.shape import Torus as Torus
from mc.fabric.shape import Tree as Tree
from mc.fabric.span import Combination as Combination
from mc.fabric.span import Extent as Extent
from mc.fabric.span import Kind as Kind
from mc.fabric.span import Ranks as Ranks
from mc.fabric.span import is_even as is_even
from mc.fabric.span import span as span
from mc.fabric.span import tier_of as tier_of
from mc.fabric.variation import Variation as Variation
