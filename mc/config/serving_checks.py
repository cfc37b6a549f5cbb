"""What cannot be about a serving block: the arithmetic, in words that say what would do."""

from collections.abc import Iterator
from typing import Any

from mc.config.plan_sizes import Path, Shape
from mc.config.requests import mean_length
from mc.config.serving import LayoutConfig, ServingConfig

Found = Iterator[tuple[Path, str]]


def serving_problems(serving: ServingConfig, model: Any, chips: int, tiers: tuple[str, ...]) -> Found:
    """Objections to a serving block, each with its path below it.

    Args:
        serving: the block.
        model: the shape of the transformer.
        chips: of the cluster.
        tiers: their names.
    """
    yield from _lengths(serving)
    yield from _layout(serving, model, (), serving.redundant_experts)
    if serving.redundant_experts and model.experts is None:
        text = f"expected 0, since the model has no experts; got {serving.redundant_experts}"
        yield ("redundant_experts",), text
    alone = serving.prefill
    wanted = serving.ranks
    if alone is not None:
        yield from _layout(alone, model, ("prefill",), serving.redundant_experts)
        wanted += alone.ranks * (alone.replicas or 1)
        if alone.tier is not None and alone.tier not in tiers:
            yield (
                ("prefill", "tier"),
                f"expected a tier of the cluster ({', '.join(tiers)}); got `{alone.tier}`",
            )
    if wanted > chips:
        parts = f"tp x dp x pp = {serving.ranks}"
        if alone is not None:
            parts += f", and {alone.replicas or 1} x {alone.ranks} for prefill"
        yield (), f"expected at most the {chips} chips of the cluster; got {wanted} ranks ({parts})"
    yield from _batch(serving)


def _layout(layout: LayoutConfig, model: Shape, at: Path, copies: int) -> Found:
    tp, dp, pp, ep = layout.tp, layout.dp, layout.pp, layout.ep
    if model.heads % tp:
        yield (*at, "tp"), f"expected a divisor of the {model.heads} heads; got {tp}"
    if model.ffn and model.ffn % tp:
        yield (*at, "tp"), f"expected a divisor of the network's width {model.ffn}; got {tp}"
    if model.mla is None and max(model.kv_heads, tp) % min(model.kv_heads, tp):
        yield (*at, "tp"), f"expected a divisor or a multiple of the {model.kv_heads} heads of keys; got {tp}"
    if pp > model.layers:
        yield (*at, "pp"), f"expected at most the {model.layers} layers; got {pp}"
    experts = model.experts
    if experts is None:
        if dp > 1:
            yield (*at, "dp"), f"expected 1, since replicas without experts share nothing; got {dp}"
        if ep is not None and ep > 1:
            yield (*at, "ep"), f"expected 1, since the model has no experts; got {ep}"
        return
    count = experts.count + copies
    those = f"{experts.count} experts" + (f" and {copies} copies" if copies else "")
    if ep is None:
        if count % (tp * dp):
            text = f"expected a divisor of the {those}, or an `ep`; got tp x dp = {tp * dp}"
            yield (*at, "tp" if dp == 1 else "dp"), text
        return
    if (tp * dp) % ep or count % ep:
        text = f"expected a divisor of tp x dp = {tp * dp} and of the {those}; got {ep}"
        yield (*at, "ep"), text
    elif experts.ffn % (tp * dp // ep):
        over = tp * dp // ep
        yield (*at, "ep"), f"expected tp x dp / ep to divide the experts' width {experts.ffn}; got {over}"
    elif dp > 1 and ep == 1:
        yield (*at, "ep"), f"expected more than 1, since {dp} groups share the experts; got 1"


def _lengths(serving: ServingConfig) -> Found:
    """Lengths that are not said, or said twice."""
    for name in ("prompt", "output"):
        given = getattr(serving, name)
        if serving.requests is not None:
            mean = mean_length(serving.requests, name)
            if given != mean:
                yield (
                    (name,),
                    f"expected to be left out (`{name}: null` where it is inherited), or {mean}, the mean of `requests`; got {given}",
                )
        elif not given:
            yield (name,), "expected a number of tokens, or `requests` of several lengths; got neither"


def _batch(serving: ServingConfig) -> Found:
    """A batch that groups cannot share."""
    at_once = serving.dp * serving.pp
    if isinstance(serving.batch, int) and serving.batch % at_once:
        text = (
            f"expected a multiple of dp x pp = {at_once}, so that all ranks have as many; got {serving.batch}"
        )
        yield ("batch",), text
