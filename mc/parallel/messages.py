"""Every message of a step, one entry for each kind: what, among whom, how large, how often.

With b sequences of s tokens in a micro-batch, T = bs/c of them on a rank, hidden width h, t tensor parallel ranks, m
micro-batches; sizes are those of nccl-tests (the whole buffer), times the bytes of their format:

- **tp** (M. Shoeybi et al., arXiv 1909.08053): an all-reduce of T·h behind attention and behind the network, and
  one more for each on the way back: four per layer and micro-batch. With sequence parallelism (V. Korthikanti et al.,
  arXiv 2205.05198) each is a reduce-scatter, and an all-gather in front of the next product; on the way back the
  input, which is kept in pieces, is gathered once more, while its gradient is computed. Gradients of inputs are
  reduced while those of weights are computed, as Megatron-LM does.
  The vocabulary is divided: one reduction behind the embedding, one in front of the head on the way back, and
  three numbers per token in fp32 for the loss.
- **cp**: keys and values of T tokens (of the heads on the rank; of latent attention its latent vector) to the next
  rank of a ring, c − 1 times (H. Liu et al., arXiv 2310.01889), on the way back with their gradients; or gathered at
  once (Llama 3, arXiv 2407.21783), and gathered again on the way back.
- **pp**: T·h to the next stage, and its gradient back. Each tensor parallel rank sends 1/t of it; without
  sequence parallelism the receivers then gather it (scatter and gather, D. Narayanan et al., SC21).
- **ep**: a copy of each token for each of its k experts and back, T/t·k·h. Deduplicated (DeepSeek-V3, arXiv 2412.19437,
  section 3.2.2; its library DeepEP; HybridEP), a token goes once to each node that has one of its experts, to the rank in the
  same place there, and from there, at the same time as others arrive, once to each rank: to so many as tokens choose
  (`mc.parallel.routing_choice`). With etp > 1 the ranks that share an expert first pool their tokens.
- **dp**, **edp**: gradients and parameters of what is replicated, ψ numbers. Plain: all-reduce (2ψ through each rank).
  ZeRO 1: reduce-scatter and all-gather (2ψ). ZeRO 2 keeps gradients in pieces, so each micro-batch has its own
  reduce-scatter. ZeRO 3 gathers each layer for each micro-batch, forward and backward, and reduces its gradients (3ψ
  with one micro-batch; S. Rajbhandari et al., arXiv 1910.02054). In groups (HSDP) all of that is inside of one, and
  what a rank holds is then reduced across.

What is computed again sends its forward messages again: full recomputation all of them, `mlp` and `experts` those of the
network, `attention` keys and values, `mla_up` with sequence parallelism the gather of latents.
"""

from functools import lru_cache

from mc.parallel.expert_messages import expert_messages
from mc.parallel.layer_messages import (
    context_messages,
    pipeline_messages,
    tensor_messages,
    vocabulary_messages,
)
from mc.parallel.message import Message
from mc.parallel.passes import passes_of
from mc.parallel.plan import Plan
from mc.parallel.replica_messages import replica_messages, step_messages
from mc.transformer import Transformer


@lru_cache(maxsize=8192)
def messages(shape: Transformer, plan: Plan) -> tuple[Message, ...]:
    """The messages of a plan; none among groups of one rank, and none that are empty."""
    passes = passes_of(shape, plan)
    found = [
        *tensor_messages(shape, plan, passes),
        *vocabulary_messages(shape, plan, passes),
        *context_messages(shape, plan, passes),
        *pipeline_messages(shape, plan, passes),
        *expert_messages(shape, plan, passes),
        *replica_messages(shape, plan, passes),
        *step_messages(shape, plan),
    ]
    return tuple(each for each in found if each.group.axes and each.count and each.bytes)
