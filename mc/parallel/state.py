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
    """

    dense: int
    moe: int
    is_first: bool
    is_last: bool


def contents(shape: Transformer, plan: Plan) -> tuple[tuple[Content, ...], ...]:
    """The content of each part, per stage and chunk."""
    return _contents(shape, plan.parts)


def held_parts(shape: Transformer, plan: Plan) -> tuple[tuple[Held, ...], ...]:
    """Parameters of each part on one rank, per stage and chunk, before anything is sharded among replicas."""
    return _held_parts(shape, plan.parts, plan.tp, plan.ep, plan.etp)


def distinct_stages(shape: Transformer, plan: Plan) -> tuple[int, ...]:
    """The first of the stages that have the same contents, for each of these."""
    return _distinct(shape, plan.parts)


@lru_cache(maxsize=1024)
def _contents(shape: Transformer, parts: Parts) -> tuple[tuple[Content, ...], ...]:
    return tuple(tuple(_content(shape, part) for part in stage) for stage in parts)


def _content(shape: Transformer, part: Part) -> Content:
    kinds = [shape.layer_kinds[layer] for layer in part.layers]
    if part.is_last:
        kinds += shape.mtp_kinds
    return Content(kinds.count(DENSE), kinds.count(MOE), part.is_first, part.is_last)


@lru_cache(maxsize=1024)
def _distinct(shape: Transformer, parts: Parts) -> tuple[int, ...]:
    found: dict[tuple[Content, ...], int] = {}
    for stage, content in enumerate(_contents(shape, parts)):
        found.setdefault(content, stage)
    return tuple(found.values())


@lru_cache(maxsize=4096)
def _held_parts(shape: Transformer, parts: Parts, tp: int, ep: int, etp: int) -> tuple[tuple[Held, ...], ...]:
    known: dict[Content, Held] = {}
    for stage, content in zip(parts, _contents(shape, parts), strict=True):
        for part, each in zip(stage, content, strict=True):
            if each not in known:
                known[each] = held(
                    shape, part.layers, first=part.is_first, last=part.is_last, tp=tp, ep=ep, etp=etp
                )
    return tuple(tuple(known[each] for each in content) for content in _contents(shape, parts))
