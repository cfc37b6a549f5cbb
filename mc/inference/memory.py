"""What a rank that serves holds: weights, and keys and values of all requests it works on.

A token takes, in each layer,

    max(1, g/tp)·(d + e) numbers with g heads of keys of width d and of values of width e,
    kv_rank + rope_dim   with latent attention, on each of the tp ranks,

for as many tokens as layers look back. Each request gets room for its prompt and its whole answer, so that none has to be
put off once it is begun; on average requests are half way through. Of several lengths (`mc.inference.lengths`) B requests hold
B·m + 3·s·√B, with the mean m and the deviation s of those in flight.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mc.config.names import FORMAT_BYTES
from mc.config.serving import ServingConfig
from mc.errors import InputError
from mc.inference.layout import Layout
from mc.inference.lengths import Lengths, lengths_of
from mc.transformer import Transformer, held
from mc.units import Dimension, format_quantity

# Deviations that B requests of several lengths may be above their mean: once in a thousand times they are.
_DEVIATIONS = 3.0


class ServingError(InputError):
    """Requests that cannot be served so."""


@dataclass(frozen=True)
class ServingMemory:
    """Bytes on a rank of the fullest stage.

    Attributes:
        weights: of the model.
        cache_per_request: keys and values of a request with its whole answer, in the mean of those in flight.
        deviation: of one from another.
        requests: that it works on.
        available: for both; None for a chip of unknown size.
    """

    weights: float
    cache_per_request: float
    deviation: float
    requests: float
    available: float | None

    @property
    def cache(self) -> float:
        """Keys and values of all its requests."""
        more = _DEVIATIONS * self.deviation * math.sqrt(self.requests)
        return self.requests * self.cache_per_request + more

    @property
    def most(self) -> int | None:
        """Requests that fit; None for a chip of unknown size."""
        if self.available is None:
            return None
        left, mean = max(self.available - self.weights, 0.0), self.cache_per_request
        # Of B·mean + more·√B = left the root √B.
        more = _DEVIATIONS * self.deviation
        if not more:
            return int(left / mean)
        return int(((math.sqrt(more**2 + 4 * mean * left) - more) / (2 * mean)) ** 2)


def cache_bytes(shape: Transformer, layout: Layout, number_format: str, tokens: Any, layers: int) -> Any:
    """Keys and values of sequences of so many tokens in so many layers, on a rank."""
    if shape.mla is None:
        numbers = max(1.0, shape.kv_heads / layout.tp) * (shape.key_dim + shape.value_dim)
    else:
        numbers = float(shape.mla.kv_rank + shape.mla.rope_dim)
    kept = 1.0 * tokens
    if shape.window is not None:
        kept = shape.full_share * tokens + (1 - shape.full_share) * np.minimum(tokens, shape.window)
    return FORMAT_BYTES[number_format] * numbers * kept * layers


def serving_memory(
    serving: ServingConfig, shape: Transformer, layout: Layout, size: float | None, requests: float = 0.0
) -> ServingMemory:
    """The memory of the fullest stage, with `requests` on each of the dp groups."""
    formats = serving.formats
    weight, stored = FORMAT_BYTES[formats.weights], FORMAT_BYTES[formats.activations]
    stages, lengths = layout.stages(shape), lengths_of(serving)
    found = []
    for index, layers in enumerate(stages):
        sizes: dict[str, int] = {"tp": layout.tp, "ep": layout.ep, "etp": layout.etp}
        inside = held(shape, layers, first=False, last=False, **sizes)
        whole = held(shape, layers, first=index == 0, last=index == layout.pp - 1, **sizes)
        copied = 1.0 if shape.experts is None else 1.0 + layout.copies / shape.experts.count
        weights = weight * (inside.dense + copied * inside.experts) + stored * (whole.dense - inside.dense)
        held_by = cache_bytes(shape, layout, formats.cache, lengths.prompts + lengths.outputs, len(layers))
        found.append(ServingMemory(weights, *_spread(lengths, held_by), requests, None))
    fullest = max(found, key=lambda each: each.weights + each.cache)
    return replace(fullest, available=None if size is None else size * (1 - serving.memory_reserve))


def _spread(lengths: Lengths, each: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation over the requests in flight."""
    if not lengths.are_mixed:
        return float(each[0]), 0.0
    mean = float(lengths.in_flight @ each)
    return mean, math.sqrt(float(lengths.in_flight @ (each - mean) ** 2))


def largest_batch(
    serving: ServingConfig, shape: Transformer, layout: Layout, size: float | None
) -> int | None:
    """The most requests that a replica can decode at once; None for a chip of unknown size.

    Raises:
        ServingError: not even one for each of its groups and stages.
    """
    memory = serving_memory(serving, shape, layout, size)
    if memory.most is None:
        return None
    found = memory.most // layout.pp * layout.pp * layout.dp
    if not found:
        raise ServingError(too_much(serving, memory, layout.pp))
    return found


def too_much(serving: ServingConfig, memory: ServingMemory, requests: float) -> str:
    """Why so many requests do not fit on a rank."""
    assert memory.available is not None
    weights, one, room = (
        format_quantity(float(f"{each:.3g}"), Dimension.SIZE)
        for each in (memory.weights, memory.cache_per_request, memory.available)
    )
    if memory.weights > memory.available:
        return f"serving: expected weights that fit into {room} of a chip; got {weights} (more tp, pp or ep, or narrower)"
    return (
        f"serving.batch: expected requests that fit into {room} of a chip beside {weights} of weights, "
        f"that is {memory.most} on each rank; got {requests:g}, each with {one} of keys and values for "
        f"{serving.prompt + serving.output} tokens{'' if serving.requests is None else ' or, in the mean, more'}"
    )
