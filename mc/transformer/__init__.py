"""The shape of a transformer: its parameters, FLOP, operations and activations on one rank.

Pure arithmetic on frozen dataclasses: a plan asks for thousands of shares of the same few shapes, so
whatever depends on hashable things only is kept. `build_transformer` makes a `Transformer` of its
configuration; `Split` says how a layer is cut and stored.
"""

from mc.transformer.activation_memory import activations as activations
from mc.transformer.activation_memory import embedding_activations as embedding_activations
from mc.transformer.activation_memory import head_activations as head_activations
from mc.transformer.ends import embedding_segment as embedding_segment
from mc.transformer.ends import head_segment as head_segment
from mc.transformer.feed_forward import EXPERT_NAMES as EXPERT_NAMES
from mc.transformer.flop_count import Flops as Flops
from mc.transformer.flop_count import flops as flops
from mc.transformer.operation import Operation as Operation
from mc.transformer.operation import Operations as Operations
from mc.transformer.operation import Segment as Segment
from mc.transformer.operation import Split as Split
from mc.transformer.operation import recomputed as recomputed
from mc.transformer.parameter_count import Held as Held
from mc.transformer.parameter_count import Parameters as Parameters
from mc.transformer.parameter_count import held as held
from mc.transformer.parameter_count import parameters as parameters
from mc.transformer.segments import segments as segments
from mc.transformer.shape import DENSE as DENSE
from mc.transformer.shape import MOE as MOE
from mc.transformer.shape import Experts as Experts
from mc.transformer.shape import Transformer as Transformer
from mc.transformer.shape import build_transformer as build_transformer
