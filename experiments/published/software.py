"""What the programs did that were measured, as keys of a plan. Nothing here is fitted.

- `megatron-2021`: Megatron-LM of SC21: attention with its matrix in memory, full recomputation, no sequence parallelism,
  gradients accumulated and reduced in fp32 after the last micro-batch, and everything waited for (the reduction of inputs'
  gradients beside the products of weights' came with version 2.6).
- `zero3-2021`: DeepSpeed of early 2021, ZeRO-3 without model parallelism, gradients in fp16, full recomputation.
- `megatron-2022`: of Korthikanti et al.; recomputation and sequence parallelism by row.
- `megatron-deepspeed`: of vTrain: fused softmax but unfused attention, full recomputation, gradients in fp16 (its
  repository's model and configurations).
- `bloom`: Megatron-DeepSpeed with ZeRO-1, bf16 with gradients in fp32.
- `megatron-2023`: the baseline of MegaScale: fused attention, sequence parallelism, selective recomputation, the
  distributed optimizer, nothing overlapped. The version is not printed: assumed.
- `megascale`: everything overlapped. Its parallel transformer block, which halves the tensor parallel messages, and its window of
  attention, whose width is not printed, are no parts of the shape: left out.
- `llama3`: fused attention, gradients and optimizer sharded but not parameters (section 3.3.2), keys and values
  gathered, pipeline messages overlapped, tensor parallel ones not (as in PyTorch: assumed).
- `nemo-2024`, `nemo-2025`: NeMo on Megatron Core and Transformer Engine: distributed optimizer with bf16 gradients on
  the wire, everything overlapped (`ub_tp_comm_overlap`, `overlap_p2p_comm`, `overlap_grad_sync`, `overlap_param_sync`).
- `maxtext`, `paxml`: JAX with sharded parameters; MaxText keeps the projections to queries, keys and values
  (`save_qkv_proj`) and recomputes the rest, which counts as all here, as does what Paxml keeps for its 175B
  (`SAVE_QKV_OUT_PROJ`); its 5B keeps all products.
- `bridge`: NeMo on Megatron Bridge, as `nemo-2025`; `bridge-moe` the same for experts.
"""

from collections.abc import Mapping
from typing import Any

_LATE = {"gradients": False, "parameters": False, "pipeline": False, "tensor": False}
_ALL = {"gradients": True, "parameters": True, "pipeline": True, "tensor": True}
_FP16 = {"main_gradients": "bf16"}
_WIRE = {"gradients": "bf16"}
_OLD: dict[str, Any] = {
    "attention": "unfused",
    "recompute": "full",
    "sequence_parallel": False,
    "overlap": _LATE,
}
_OLDEST = _OLD | {"overlap": _LATE | {"backward": False}}
_NEW: dict[str, Any] = {"attention": "fused", "zero": 1, "overlap": _ALL, "formats": _WIRE}
_JAX = {"gradients": True, "parameters": True}

SOFTWARE: Mapping[str, Mapping[str, Any]] = {
    "megatron-2021": _OLDEST,
    "megatron-2022": _OLD,
    "zero3-2021": _OLD | {"zero": 3, "overlap": _LATE | _JAX, "formats": _FP16},
    "megatron-deepspeed": _OLDEST | {"formats": _FP16},
    "bloom": _OLDEST | {"zero": 1},
    "megatron-2023": {"attention": "fused", "zero": 1, "recompute": "selective", "overlap": _LATE},
    "megascale": {"attention": "fused", "zero": 1, "recompute": "selective", "overlap": _ALL},
    "llama3": {
        "attention": "fused",
        "zero": 2,
        "context": "all-gather",
        "overlap": _LATE | {"gradients": True, "parameters": True, "pipeline": True, "backward": False},
    },
    "nemo-2024": _NEW,
    "nemo-2025": _NEW,
    "maxtext": {"attention": "fused", "zero": 3, "recompute": "full", "overlap": _JAX, "formats": _WIRE},
    "paxml": {"attention": "fused", "zero": 3, "overlap": _JAX, "formats": _WIRE},
    "bridge": _NEW,
    "bridge-moe": _NEW,
}
