"""1F1B: forwards and backwards alternate, so that activations are held for p micro-batches, not for all.

Stage s runs p − 1 − s forwards ahead of its first backward. Interleaved, a stage holds v chunks and takes micro-batches
in groups of g: g forwards of the first chunk, g of the next, …; the backwards likewise from the last chunk. It then runs
2(p − 1 − s) + (v − 1)·g forwards ahead: v times smaller steps fill the pipeline v times faster.

References:
    Narayanan et al.: PipeDream. SOSP 2019; Memory-Efficient Pipeline-Parallel DNN Training. ICML 2021.
    Narayanan et al.: Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM. SC 2021, 2.2.
"""

import numpy as np
from numpy.typing import NDArray

from mc.pipeline.order import Kind, Order, PipelineError, tabulated


def one_forward_one_backward(stages: int, micro_batches: int) -> Order:
    """The order of 1F1B."""
    each, zero = np.arange(micro_batches), np.zeros(micro_batches, np.int64)
    ahead = np.minimum(np.arange(stages)[::-1], micro_batches)
    return _alternating("1f1b", micro_batches, 1, ahead, (each, zero), (each, zero))


def interleaved(stages: int, micro_batches: int, chunks: int, group: int) -> Order:
    """The order of interleaved 1F1B.

    Args:
        stages: p.
        micro_batches: m; a multiple of `group`, or so that at least p are left for the last group.
        chunks: v.
        group: micro-batches that pass a chunk one after the other; at least p.
    """
    if group < stages:
        raise PipelineError(
            f"group: expected at least one micro-batch for each of the {stages} stages; got {group}"
        )
    left = micro_batches % group
    if 0 < left < stages:
        raise PipelineError(
            f"micro_batches: expected a multiple of {group} for interleaved stages in groups of {group}, or at "
            f"least {stages} left for the last group; got {micro_batches}, which leaves {left}"
        )
    first = np.arange(0, micro_batches, group)
    size = np.minimum(group, micro_batches - first)
    micro_batch = np.concatenate(
        [np.tile(start + np.arange(count), chunks) for start, count in zip(first, size, strict=True)]
    )
    chunk = np.concatenate([np.repeat(np.arange(chunks), count) for count in size])
    ahead = np.minimum(2 * np.arange(stages)[::-1] + (chunks - 1) * group, micro_batch.size)
    backwards = (micro_batch, chunks - 1 - chunk)
    return _alternating("interleaved", micro_batches, chunks, ahead, (micro_batch, chunk), backwards)


_Passes = tuple[NDArray[np.int64], NDArray[np.int64]]


def _alternating(
    schedule: str,
    micro_batches: int,
    chunks: int,
    ahead: NDArray[np.int64],
    forwards: _Passes,
    backwards: _Passes,
) -> Order:
    """On each stage so many forwards ahead, then one of each in turn, then the backwards that are left.

    `forwards` and `backwards` are micro-batches and chunks in the order in which they pass.
    """
    total = forwards[0].size
    place, ahead = np.arange(2 * total), ahead[:, None]
    turn = place - ahead
    is_backward = (turn >= 2 * (total - ahead)) | ((turn >= 0) & (turn % 2 == 1))
    # How many of its kind come before each: one for each two turns, but for those ahead and those left.
    number = np.where(is_backward, np.maximum(turn // 2, place - total), np.minimum(ahead + turn // 2, place))
    kind = np.where(is_backward, Kind.BACKWARD.value, Kind.FORWARD.value)
    columns = (
        np.where(is_backward, back[number], forth[number])
        for forth, back in zip(forwards, backwards, strict=True)
    )
    return tabulated(schedule, micro_batches, chunks, kind, *columns)
