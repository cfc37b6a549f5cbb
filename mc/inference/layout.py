"""Who has which part of a model that serves: groups of ranks, and layers of stages.

Ranks are numbered tp, dp, pp, innermost first. The tp x dp ranks of a stage share the experts of its layers: etp of
them, side by side, share each expert's matrices, and ep such groups have as many experts each.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from mc.config.axes import joined
from mc.config.serving import LayoutConfig
from mc.parallel import Group
from mc.transformer import MOE, Transformer


@dataclass(frozen=True)
class Layout:
    """The ranks of a replica.

    Attributes:
        tp: ranks that share heads and matrices.
        dp: groups of them with requests of their own.
        pp: stages.
        ep: groups of ranks that share a layer's experts.
        copies: of experts, beside them.
    """

    tp: int = 1
    dp: int = 1
    pp: int = 1
    ep: int = 1
    copies: int = 0

    @property
    def stage_ranks(self) -> int:
        """How many ranks a stage has."""
        return self.tp * self.dp

    @property
    def ranks(self) -> int:
        """How many in all."""
        return self.stage_ranks * self.pp

    def local_experts(self, shape: Transformer) -> float:
        """Experts of a layer on a rank, copies included."""
        return 0.0 if shape.experts is None else (shape.experts.count + self.copies) / self.ep

    @property
    def etp(self) -> int:
        """How many share each expert."""
        return self.stage_ranks // self.ep

    @cached_property
    def tensor(self) -> Group:
        """That share heads."""
        return Group("tp", joined([(self.tp, 1)]))

    @cached_property
    def experts(self) -> Group:
        """With different experts."""
        return Group("ep", joined([(self.ep, self.etp)]))

    @cached_property
    def expert_tensor(self) -> Group:
        """That share each expert."""
        return Group("etp", joined([(self.etp, 1)]))

    @cached_property
    def pipeline(self) -> Group:
        """Of neighbouring stages: two ranks."""
        return Group("pp", joined([(min(self.pp, 2), self.stage_ranks)]))

    def stages(self, shape: Transformer) -> tuple[tuple[int, ...], ...]:
        """The layers of each stage, as evenly as can be; what is left over goes to the first ones."""
        least, more = divmod(shape.layers, self.pp)
        ends = [stage * least + min(stage, more) for stage in range(self.pp + 1)]
        return tuple(tuple(range(*pair)) for pair in pairwise(ends))

    def __str__(self) -> str:
        """`tp 8`, or `dp 32 x ep 32`."""
        sizes = [(name, getattr(self, name)) for name in ("tp", "dp", "pp", "ep")]
        return " x ".join(f"{name} {size}" for name, size in sizes if size > 1) or "one rank"


def build_layout(config: LayoutConfig, shape: Transformer, copies: int = 0) -> Layout:
    """The layout of a configuration; experts are shared by all ranks of a stage unless it says otherwise."""
    every = config.stage_ranks if MOE in shape.layer_kinds else 1
    return Layout(config.tp, config.dp, config.pp, every if config.ep is None else config.ep, copies)
