"""All plans of a model on so many ranks.

A plan is a point of

    tp x cp x pp x dp = ranks,  ep,  micro-batch,  schedule with its chunks and layers,  recomputation,  ZeRO,  order.

What is tried of each: tp, cp, pp, ep and micro-batches every divisor that there is; chunks every number that divides the
layers evenly, or two more than them (`balance_ends`), and where neither does, `spread` without chunks; recomputation
`none`, `selective`, `full` and what the file has; ZeRO 0 to 3; every order of the dimensions that have more than one rank.
Formats, overlap, dispatcher, etp and the rest stay as the file has them; ZeRO shards among all replicas.

Plans are refused level by level, each with all below it, by the rules of `mc.config.plan_checks` (a test holds the two
together), so that millions are counted without being made.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from mc.config import ExperimentConfig
from mc.config.axes import axes_of, cut
from mc.config.plan import DIMENSIONS, PlanConfig
from mc.config.plan_sizes import FOLDED
from mc.config.recompute import Recompute
from mc.errors import InputError
from mc.transformer import Transformer, build_transformer

ZERO = (0, 1, 2, 3)
# With one part on each stage; `interleaved` has several.
_PLAIN = ("gpipe", "1f1b", "zb-h1", "dualpipe")


class SpaceError(InputError):
    """An experiment without plans to search."""


class Mapping(NamedTuple):
    """How many ranks each dimension has, and how many sequences pass a stage at once."""

    tp: int
    cp: int
    pp: int
    dp: int
    ep: int
    micro_batch: int


class Layout(NamedTuple):
    """A pipeline: its schedule, and how the layers are cut into parts."""

    pp: int
    schedule: str
    chunks: int
    balance_ends: bool
    spread: bool


class Candidate(NamedTuple):
    """A plan: everything that is chosen."""

    mapping: Mapping
    layout: Layout
    recompute: Recompute
    zero: int
    order: tuple[str, ...]


@dataclass
class Refused:
    """How many plans cannot be, by reason; and how many there are in all."""

    total: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Space:
    """The plans of a model on so many ranks.

    Attributes:
        base: the plan as written, which says what is not searched.
        shape: of the model.
        ranks: how many.
        node: ranks of a node.
    """

    base: PlanConfig
    shape: Transformer
    ranks: int
    node: int | None

    @property
    def batch(self) -> int:
        """Sequences of a step."""
        assert self.base.global_batch is not None
        return self.base.global_batch

    @property
    def length(self) -> int:
        """Tokens of a sequence."""
        assert self.base.sequence_length is not None
        return self.base.sequence_length

    @cached_property
    def recomputes(self) -> tuple[Recompute, ...]:
        """What may be computed again."""
        found: list[Recompute] = ["none", "selective", "full"]
        if self.base.recompute not in found:
            found.append(self.base.recompute)
        return tuple(found)

    @cached_property
    def experts(self) -> tuple[int, ...]:
        """Values of ep."""
        return divisors(self.shape.experts.count) if self.shape.experts is not None else (1,)

    def layouts(self, pp: int) -> tuple[Layout, ...]:
        """The pipelines of so many stages."""
        if pp == 1:
            return (Layout(1, "1f1b", 1, balance_ends=False, spread=False),)
        found = []
        for chunks in range(1, (self.shape.layers + 2) // pp + 1):
            parts = pp * chunks
            ways = [(False, False)] if self.shape.layers % parts == 0 else []
            if parts > 2 and (self.shape.layers + 2) % parts == 0:
                ways.append((True, False))
            if not ways and chunks == 1 and parts <= self.shape.layers:
                ways.append((False, True))
            names = _PLAIN if chunks == 1 else ("interleaved",)
            found += [Layout(pp, name, chunks, *way) for name in names for way in ways]
        return tuple(found)

    def mappings(self, refused: Refused) -> Iterator[tuple[Mapping, tuple[Layout, ...]]]:
        """Those that can be, each with the pipelines that can be with it; others are added to `refused`."""
        shape = self.shape
        batches = divisors(self.batch)
        for tp, cp, pp in self._products():
            dp = self.ranks // (tp * cp * pp)
            layouts = self.layouts(pp)
            each = (
                len(layouts) * len(self.recomputes) * len(ZERO) * math.factorial(_dimensions(tp, cp, pp, dp))
            )
            refused.total += each * len(self.experts) * len(batches)

            def refuse(reason: str, count: int, each: int = each) -> None:
                if count:
                    refused.reasons[reason] += count * each

            if not self._fits_tensor(tp):
                refuse("tp does not divide heads and widths", len(self.experts) * len(batches))
                continue
            if (cp > 1 and self.length % (2 * cp)) or (
                self._is_sequence_parallel(tp) and self.length % (cp * tp)
            ):
                refuse("cp x tp does not divide the sequence", len(self.experts) * len(batches))
                continue
            whole = [size for size in batches if self.batch % (dp * size) == 0]
            refuse("no whole micro-batches", len(self.experts) * (len(batches) - len(whole)))
            folded = tp * cp * dp
            for ep in self.experts:
                if folded % (ep * self.base.etp) or (shape.experts and shape.experts.ffn % self.base.etp):
                    refuse("ep does not divide the replicas' ranks", len(whole))
                    continue
                for size in whole:
                    fit = tuple(one for one in layouts if _fits_schedule(one, self.batch // (dp * size)))
                    refused.reasons["micro-batches do not suit the schedule"] += (
                        each // len(layouts) * (len(layouts) - len(fit))
                    )
                    if fit:
                        yield Mapping(tp, cp, pp, dp, ep, size), fit

    def orders(self, mapping: Mapping) -> tuple[tuple[str, ...], ...]:
        """The orders of the dimensions that have several ranks, the others behind them; tp innermost first."""
        sizes = mapping._asdict()
        active = [name for name in DIMENSIONS if sizes[name] > 1]
        rest = tuple(name for name in DIMENSIONS if sizes[name] == 1)
        found = [(*each, *rest) for each in itertools.permutations(active)]
        return tuple(order for order in found if self._fits_order(mapping, order))

    def config(self, one: Candidate) -> PlanConfig:
        """The plan file that says so."""
        mapping, layout = one.mapping, one.layout
        update: dict[str, Any] = {
            "ranks": self.ranks,
            "tp": mapping.tp,
            "cp": mapping.cp,
            "pp": mapping.pp,
            "dp": mapping.dp,
            "ep": mapping.ep,
            "micro_batch": mapping.micro_batch,
            "sequence_parallel": self._is_sequence_parallel(mapping.tp),
            "schedule": layout.schedule,
            "chunks": layout.chunks,
            "balance_ends": layout.balance_ends,
            "layers_per_stage": "spread" if layout.spread else None,
            "recompute": one.recompute,
            "recompute_layers": None,
            "zero": one.zero,
            "zero_group": None,
            "order": one.order,
        }
        return self.base.model_copy(update=update)

    def _products(self) -> Iterator[tuple[int, int, int]]:
        for tp in divisors(self.ranks):
            if tp > self.shape.heads:
                continue
            for cp in divisors(self.ranks // tp):
                if cp > self.length:
                    continue
                for pp in divisors(self.ranks // (tp * cp)):
                    if self.layouts(pp):
                        yield tp, cp, pp

    def _is_sequence_parallel(self, tp: int) -> bool:
        base = self.base
        if tp == 1:
            return False
        return base.sequence_parallel or base.tp == 1 or "sequence_parallel" not in base.model_fields_set

    def _fits_tensor(self, tp: int) -> bool:
        shape = self.shape
        heads = shape.heads % tp == 0 and (
            shape.mla is not None or shape.kv_heads % tp == 0 or tp % shape.kv_heads == 0
        )
        shared = shape.experts.shared_ffn if shape.experts is not None else 0
        return heads and (shape.ffn or 0) % tp == 0 and shared % tp == 0

    def _fits_order(self, mapping: Mapping, order: tuple[str, ...]) -> bool:
        if self.shape.experts is None:
            return True
        mine = self.base.etp * mapping.ep
        sizes = mapping._asdict()
        axes = axes_of([(name, sizes[name]) for name in order], FOLDED)
        rest = mapping.tp * mapping.cp * mapping.dp // mine
        parts = ((1, self.base.etp), (self.base.etp, mapping.ep), (mine, rest))
        return all(cut(axes, skip, take) is not None for skip, take in parts)


def space_of(config: ExperimentConfig) -> Space:
    """The plans of an experiment.

    Raises:
        SpaceError: its model is no transformer, or the plan says too little.
    """
    if config.model.transformer is None:
        raise SpaceError(
            "expected a model with a `transformer`, whose plans differ; got `compute` and `exchange`"
        )
    for name in ("global_batch", "sequence_length"):
        if getattr(config.plan, name) is None:
            raise SpaceError(f"plan.{name}: expected a number, which every plan has in common; got none")
    shape = build_transformer(config.model.transformer)
    return Space(config.plan, shape, config.ranks, config.cluster.tiers[0].fan_out)


def divisors(number: int) -> tuple[int, ...]:
    """All of them, rising."""
    small = [each for each in range(1, math.isqrt(number) + 1) if number % each == 0]
    return tuple(sorted({*small, *(number // each for each in small)}))


def _dimensions(*sizes: int) -> int:
    return sum(size > 1 for size in sizes)


def _fits_schedule(layout: Layout, batches: int) -> bool:
    if layout.schedule == "interleaved":
        return batches % layout.pp == 0
    if layout.schedule == "dualpipe":
        return layout.pp % 2 == 0 and batches % 2 == 0 and batches >= 2 * layout.pp
    return True
