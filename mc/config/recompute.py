"""What the backward pass computes again: parts of a layer, by the names that a plan uses.

| part | what runs again | `recompute_modules` of Megatron Core |
|---|---|---|
| `attention` | the products of queries, keys and values, and the softmax | `core_attn` |
| `norms` | norms in front of products, those of latents included | `layernorm` (without latents) |
| `mla_up` | latent attention's projections up, and rotary positions | `mla_up_proj` |
| `activations` | activation functions of dense networks, experts and shared experts | `moe_act` (of experts) |
| `mlp` | the whole dense network | `mlp` |
| `experts` | the whole layer of experts: router, dispatch, experts, combine, shared experts | `moe` |

`selective` is `attention` alone (V. Korthikanti et al., arXiv 2205.05198); `full` is every layer, of which only the
input is kept.
"""

from functools import lru_cache
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator

RecomputePart = Literal["attention", "norms", "mla_up", "activations", "mlp", "experts"]
Granularity = Literal["none", "selective", "full"]
RECOMPUTE_PARTS: tuple[RecomputePart, ...] = get_args(RecomputePart)
GRANULARITIES: tuple[Granularity, ...] = get_args(Granularity)
LAYER = "layer"


def _read(value: Any) -> Any:
    if value in GRANULARITIES:
        return value
    text = f"expected `none`, `selective`, `full`, or a list of parts ({', '.join(RECOMPUTE_PARTS)})"
    if not isinstance(value, list | tuple):
        raise ValueError(f"{text}; got {str(value)[:40]!r}")
    for each in value:
        if each not in RECOMPUTE_PARTS:
            raise ValueError(f"{text}; got {str(each)[:40]!r} in it")
    if len(set(value)) < len(value):
        raise ValueError(f"expected each part once; got {', '.join(value)}")
    # In one order, so that plans that mean the same are the same.
    return tuple(each for each in RECOMPUTE_PARTS if each in value) or "none"


Recompute = Annotated[Granularity | tuple[RecomputePart, ...], BeforeValidator(_read)]


@lru_cache(maxsize=256)
def parts_of(recompute: Recompute) -> frozenset[str]:
    """The parts that run again; of `full` the one part `layer`, which has all others."""
    if isinstance(recompute, tuple):
        return frozenset(recompute)
    return frozenset({"none": (), "selective": ("attention",), "full": (LAYER,)}[recompute])


def recompute_text(recompute: Recompute) -> str:
    """As a plan has it: a word, or a list."""
    return recompute if isinstance(recompute, str) else f"[{', '.join(recompute)}]"
