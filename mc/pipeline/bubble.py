"""The bubble in closed form: how long each stage of a pipeline of equal stages is idle, without noise and transfers.

With F, I and W the seconds of a micro-batch's forward and of its gradients of inputs and weights through *all* chunks of
a stage, B = I + W, p stages, m micro-batches and v chunks:

    GPipe, 1F1B    (p − 1)(F + B)                      Huang et al. 2019; Narayanan et al. 2021
    interleaved    (p − 1)(F + B)/v                    Narayanan et al. 2021, 2.2.2
    ZB-H1          (p − 1)·max(F, I, F + I − W)        Qi et al. 2024 for W <= F, I: (p − 1)(F + I − W)
    DualPipe       (p/2 − 1)(F&B + B − 3W)             DeepSeek-AI 2024, table 2

Those of the first two are exact, that of ZB-H1 for m >= p. The general form of ZB-H1 was found here: what bounds a
stage is its predecessor's forward, its own gradients, or both less what fills in. DualPipe's is exact where
F = I >= W and a joint operation (F&B) takes F + B; elsewhere stages differ, and the recursion (`makespan`) says by how much.
"""

from typing import Any

from mc.pipeline.order import PipelineError
from mc.pipeline.registry import order_of


def bubble(
    schedule: str,
    stages: int,
    micro_batches: int,
    chunks: int | None = None,
    *,
    forward: Any = 1.0,
    backward_input: Any = 1.0,
    backward_weight: Any = 1.0,
    joint: Any = None,
    group: int | None = None,
) -> Any:
    """Idle seconds of each stage.

    Args:
        schedule: as for `order_of`, with the numbers that follow; refused alike.
        stages: p.
        micro_batches: m.
        chunks: v.
        forward: seconds of one micro-batch through all chunks of a stage (in DualPipe, through the one that it uses).
        backward_input: its gradients of the inputs.
        backward_weight: its gradients of the weights.
        joint: a forward and a whole backward, overlapped; what both take without it.
        group: as for `order_of`.
    """
    order = order_of(schedule, stages, micro_batches, chunks, group=group)
    backward = backward_input + backward_weight
    match schedule:
        case "zb-h1":
            if micro_batches < stages:
                raise PipelineError(
                    f"micro_batches: expected at least {stages} for the closed form of zb-h1; got {micro_batches}"
                )
            least = max(forward, backward_input, forward + backward_input - backward_weight)
            return (stages - 1) * least
        case "dualpipe":
            both = forward + backward if joint is None else joint
            return (stages // 2 - 1) * (both + backward - 3 * backward_weight)
        case _:
            return (stages - 1) * (forward + backward) / order.chunks


def bubble_fraction(
    schedule: str, stages: int, micro_batches: int, chunks: int | None = None, **times: Any
) -> Any:
    """Idle seconds of each stage as a part of the step; for GPipe and 1F1B (p − 1)/(m + p − 1).

    Takes what `bubble` takes. Where operations are joint, what they save counts neither as work nor as bubble.
    """
    idle = bubble(schedule, stages, micro_batches, chunks, **times)
    work = micro_batches * sum(
        times.get(name, 1.0) for name in ("forward", "backward_input", "backward_weight")
    )
    return idle / (work + idle)
