"""Shapes and plans that the tests share."""

from functools import cache

from mc.config import PlanConfig, load_model
from mc.parallel import Plan, make_plan
from mc.transformer import Transformer, build_transformer


@cache
def shipped(name: str) -> Transformer:
    """The shape of a model that comes with tailstep."""
    config = load_model(name).transformer
    assert config is not None
    return build_transformer(config)


def plan(shape: Transformer, ranks: int, **keys) -> Plan:
    """A plan as its file has it; one sequence per replica and micro-batch unless keys say otherwise."""
    return make_plan(PlanConfig.model_validate({"sequence_length": 2048, **keys}), shape, ranks)


GPT = Transformer(
    layers=24, hidden=1024, heads=16, kv_heads=16, head_dim=64, ffn=4096, vocab=51200, gated=False,
    tied_embeddings=True, biases=True, norm="layer", max_positions=2048, rotary=False, dropout=True,
)  # fmt: skip
