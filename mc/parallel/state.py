"""What each rank of the pipeline holds of a model: layers of each kind, and parameters."""

from functools import lru_cache
from typing import NamedTuple

from mc.parallel.plan import Part, Parts, Plan
from mc.transformer import DENSE, MOE, Held, Transformer, held


class Content(NamedTuple):
    """What a part of the model is made of; parts with the same content do the same.

    Attributes:
        dense: layers without experts.
        moe: layers with experts; blocks that predict further tokens count.
        is_first: whether it has the embedding.
        is_last: whether it has the head.
        dense_again: those of the layers without experts in which something is computed again, and
        moe_again: with experts.
    """

    dense: int
    moe: int
    is_first: bool
    is_last: bool
    dense_again: int
    moe_again: int

    @property
    def layers(self) -> tuple[tuple[str, int, int], ...]:
        """Of each kind, how many layers, and in how many of them something is computed again; none left out."""
        kinds = ((DENSE, self.dense, self.dense_again), (MOE, self.moe, self.moe_again))
        return tuple(each for each in kinds if each[1])


def contents(shape: Transformer, plan: Plan) -> tuple[tuple[Content, ...], ...]:
    """The content of each part, per stage and chunk."""
    return _contents(shape, plan.parts, plan.layers_again)


def held_parts(shape: Transformer, plan: Plan) -> tuple[tuple[Held, ...], ...]:
    """Parameters of each part on one rank, per stage and chunk, before anything is sharded among replicas."""
    return _held_parts(shape, plan.parts, plan.tp, plan.ep, plan.etp)


def distinct_stages(shape: Transformer, plan: Plan) -> tuple[int, ...]:
    """The first of the stages that have the same contents, for each of these."""
    return _distinct(shape, plan.parts, plan.layers_again)


def recomputed_share(shape: Transformer, plan: Plan) -> float:
    """The part of the layers in which something is computed again."""
    everything = [part for stage in contents(shape, plan) for part in stage]
    again = sum(part.dense_again + part.moe_again for part in everything)
    return again / sum(part.dense + part.moe for part in everything)


@lru_cache(maxsize=1024)
def _contents(shape: Transformer, parts: Parts, again: int) -> tuple[tuple[Content, ...], ...]:
    return tuple(tuple(_content(shape, part, again) for part in stage) for stage in parts)


def _content(shape: Transformer, part: Part, again: int) -> Content:
    kinds = [shape.layer_kinds[layer] for layer in part.layers]
    if part.is_last:
        kinds += shape.mtp_kinds
    first = kinds[:again]
    numbers = (kinds.count(DENSE), kinds.count(MOE), part.is_first, part.is_last)
    return Content(*numbers, first.count(DENSE), first.count(MOE))


@lru_cache(maxsize=1024)
def _distinct(shape: Transformer, parts: Parts, again: int) -> tuple[int, ...]:
    found: dict[tuple[Content, ...], int] = {}
    for stage, content in enumerate(_contents(shape, parts, again)):
        found.setdefault(content, stage)
    return tuple(found.values())


@lru_cache(maxsize=4096)
def _held_parts(shape: Transformer, parts: Parts, tp: int, ep: int, etp: int) -> tuple[tuple[Held, ...], ...]:
    known: dict[Content, Held] = {}
    contents = _contents(shape, parts, 0)
    for stage, content in zip(parts, contents, strict=True):
        for part, each in zip(stage, content, strict=True):
            if each not in known:
                known[each] = held(
                    shape, part.layers, first=part.is_first, last=part.is_last, tp=tp, ep=ep, etp=etp
                )
    return tuple(tuple(known[each] for each in content) for content in contents)
