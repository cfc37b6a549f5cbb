"""What cannot be about a plan for a transformer: the arithmetic, in words that say what would do.

Plain integers; a plan that passes can be built (`mc.parallel`). Whether it fits into memory is another question.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from mc.config.axes import axes_of, cut
from mc.config.plan import SPREAD, PlanConfig, RoutingConfig

Path = tuple[str | int, ...]
Found = Iterator[tuple[Path, str]]
FOLDED = frozenset({"tp", "cp", "dp"})
REPLICAS = frozenset({"cp", "dp"})


class ExpertsShape(Protocol):
    """What the checks need to know of experts; `ExpertsConfig` has it."""

    @property
    def count(self) -> int: ...  # noqa: D102
    @property
    def ffn(self) -> int: ...  # noqa: D102
    @property
    def shared_ffn(self) -> int: ...  # noqa: D102


class Shape(Protocol):
    """What the checks need to know of a model; `TransformerConfig` has it, and what is built of it."""

    @property
    def layers(self) -> int: ...  # noqa: D102
    @property
    def heads(self) -> int: ...  # noqa: D102
    @property
    def kv_heads(self) -> int: ...  # noqa: D102
    @property
    def mla(self) -> object | None: ...  # noqa: D102
    @property
    def ffn(self) -> int | None: ...  # noqa: D102
    @property
    def experts(self) -> ExpertsShape | None: ...  # noqa: D102


_BALANCED = RoutingConfig()


@dataclass(frozen=True)
class _Sizes:
    """What the checks go by: the plan, the model, and the sizes that follow."""

    plan: PlanConfig
    model: Shape
    ranks: int
    dp: int

    @property
    def dimensions(self) -> list[tuple[str, int]]:
        sizes = {"tp": self.plan.tp, "cp": self.plan.cp, "dp": self.dp, "pp": self.plan.pp}
        return [(name, sizes[name]) for name in self.plan.order]

    @property
    def parts(self) -> int:
        return self.plan.pp * self.plan.chunks

    @property
    def micro_batches(self) -> int | None:
        total, at_once = self.plan.global_batch, self.dp * self.plan.micro_batch
        return None if total is None or total % at_once else total // at_once


def plan_problems(plan: PlanConfig, model: Shape, ranks: int, whole: str) -> Found:
    """Objections to a plan, each with its path below the plan.

    Args:
        plan: the plan.
        model: the shape of the transformer.
        ranks: how many take part.
        whole: who has so many: `the cluster` or `the plan`.
    """
    yield from _given(plan)
    known = plan.tp * plan.cp * plan.pp
    # With a wrong product, what else is wrong is judged by the number of replicas that was given, or is nearest.
    sizes = _Sizes(plan, model, ranks, plan.dp or max(1, ranks // known))
    yield from _product(sizes, whole)
    yield from _tensor(sizes)
    yield from _sequence(sizes)
    yield from _experts(sizes)
    yield from _batch(sizes)
    yield from _layers(sizes)
    yield from _schedule(sizes)
    yield from _sharding(sizes)


def resolved_dp(plan: PlanConfig, ranks: int) -> int:
    """How many replicas a plan without problems has."""
    return plan.dp or ranks // (plan.tp * plan.cp * plan.pp)


def layer_counts(plan: PlanConfig, layers: int) -> tuple[int, ...]:
    """How many layers each part of the pipeline has, in the order of the model; for a plan without problems."""
    parts = plan.pp * plan.chunks
    asked = plan.layers_per_stage
    if isinstance(asked, tuple):
        return asked
    if plan.balance_ends:
        each = (layers + 2) // parts
        return (each - 1, *(each,) * (parts - 2), each - 1)
    each, rest = divmod(layers, parts)
    # The remainder goes to the middle, since the ends have the embedding and the loss.
    first = (parts - rest) // 2
    return tuple(each + (first <= place < first + rest) for place in range(parts))


def _given(plan: PlanConfig) -> Found:
    if plan.global_batch is None:
        yield ("global_batch",), "expected sequences per step, since the model is a transformer; got none"
    if plan.sequence_length is None:
        yield ("sequence_length",), "expected tokens per sequence, since the model is a transformer; got none"
    if plan.algorithm != "auto":
        text = "expected `auto`, since the step of a transformer has several collectives"
        yield ("algorithm",), f"{text}; got `{plan.algorithm}`"


def _product(sizes: _Sizes, whole: str) -> Found:
    plan, ranks = sizes.plan, sizes.ranks
    known = plan.tp * plan.cp * plan.pp
    text = f"tp {plan.tp} x cp {plan.cp} x pp {plan.pp}"
    below = ranks // known * known
    if plan.dp is None:
        if ranks % known:
            others = [f"ranks = {below:,}"] if below else []
            others.append(f"ranks = {below + known:,}")
            yield (
                ("ranks",),
                f"{text} = {known:,} does not divide the {ranks:,} ranks that {whole} has; {_or(others)} would do",
            )
        return
    product = known * plan.dp
    if product == ranks:
        return
    others = [f"dp = {ranks // known:,}"] if ranks % known == 0 else []
    if product < ranks or not others:
        others.append(f"ranks = {product:,}")
    yield ("dp",), f"{text} x dp {plan.dp} = {product:,}, {whole} has {ranks:,}; {_or(others)} would do"


def _tensor(sizes: _Sizes) -> Found:
    plan, model = sizes.plan, sizes.model
    tp = plan.tp
    if model.heads % tp:
        yield (
            ("tp",),
            f"expected a divisor of the {model.heads} heads; got {tp}; {_divisors(model.heads, tp)}",
        )
    elif model.mla is None and model.kv_heads % tp and tp % model.kv_heads:
        text = f"expected a divisor or a multiple of the {model.kv_heads} heads of keys and values"
        fit = [
            each
            for each in _all_divisors(model.heads)
            if model.kv_heads % each == 0 or each % model.kv_heads == 0
        ]
        yield ("tp",), f"{text}; got {tp}; {_near(fit, tp)}"
    widths = {"ffn": model.ffn or 0}
    if model.experts is not None and model.experts.shared_ffn:
        widths["shared_ffn"] = model.experts.shared_ffn
    for name, width in widths.items():
        if width % tp:
            yield ("tp",), f"expected a divisor of {name}, {width:,}; got {tp}; {_divisors(width, tp)}"


def _sequence(sizes: _Sizes) -> Found:
    plan, length = sizes.plan, sizes.plan.sequence_length
    if length is None:
        return
    if plan.cp > 1 and length % (2 * plan.cp):
        text = "expected 2 x cp to divide the sequence, since each rank has one piece from either half"
        fit = [each // 2 for each in _all_divisors(length) if each % 2 == 0]
        yield (
            ("cp",),
            f"{text}; {length:,} / (2 x {plan.cp}) = {length / (2 * plan.cp):g}; {_near(fit, plan.cp)}",
        )
    elif plan.tp > 1 and plan.sequence_parallel and length % (plan.cp * plan.tp):
        text = "expected cp x tp to divide the sequence with sequence_parallel"
        share = f"{length:,} / (cp {plan.cp} x tp {plan.tp}) = {length / (plan.cp * plan.tp):g}"
        yield ("sequence_parallel",), f"{text}; {share}; `sequence_parallel: false` would do"


def _experts(sizes: _Sizes) -> Found:
    plan, experts = sizes.plan, sizes.model.experts
    if experts is None:
        for name in ("ep", "etp"):
            if getattr(plan, name) > 1:
                yield (name,), f"expected 1, since the model has no experts; got {getattr(plan, name)}"
        if plan.routing != _BALANCED:
            yield ("routing",), "expected none, since the model has no experts"
        return
    yield from _expert_ranks(sizes, experts)


def _expert_ranks(sizes: _Sizes, experts: ExpertsShape) -> Found:
    plan = sizes.plan
    if experts.count % plan.ep:
        text = f"expected a divisor of the {experts.count} experts"
        yield ("ep",), f"{text}; got {plan.ep}; {_divisors(experts.count, plan.ep)}"
    if experts.ffn % plan.etp:
        text = f"expected a divisor of an expert's ffn, {experts.ffn:,}"
        yield ("etp",), f"{text}; got {plan.etp}; {_divisors(experts.ffn, plan.etp)}"
    folded, mine = plan.tp * plan.cp * sizes.dp, plan.etp * plan.ep
    product = f"tp {plan.tp} x cp {plan.cp} x dp {sizes.dp} = {folded:,}"
    if folded % mine:
        text = f"expected etp {plan.etp} x ep {plan.ep} = {mine:,} to divide {product}"
        fit = [each for each in _all_divisors(experts.count) if folded % (plan.etp * each) == 0]
        yield ("ep",), f"{text}; ep = {_near(fit, plan.ep)}" if fit else text
        return
    axes = axes_of(sizes.dimensions, FOLDED)
    if (
        cut(axes, plan.etp, plan.ep) is None
        or cut(axes, 1, plan.etp) is None
        or cut(axes, mine, folded // mine) is None
    ):
        borders = " and ".join(str(size) for size, _ in axes)
        yield (
            ("ep",),
            f"expected etp {plan.etp} x ep {plan.ep} on the borders of {borders} ranks, between which the "
            f"stages lie under order {', '.join(plan.order)}; pp last in `order` would do",
        )


def _batch(sizes: _Sizes) -> Found:
    plan, total = sizes.plan, sizes.plan.global_batch
    at_once = sizes.dp * plan.micro_batch
    if total is None or total % at_once == 0:
        return
    below = total // at_once * at_once
    others = [f"{each:,}" for each in (below, below + at_once) if each]
    yield (
        ("global_batch",),
        f"expected whole micro-batches; {total:,} / (dp {sizes.dp} x micro_batch {plan.micro_batch}) = "
        f"{total / at_once:g}; {_or(others)} would do",
    )


def _layers(sizes: _Sizes) -> Found:
    plan, layers, parts = sizes.plan, sizes.model.layers, sizes.parts
    asked = plan.layers_per_stage
    text = f"pp {plan.pp}" if plan.chunks == 1 else f"pp {plan.pp} x chunks {plan.chunks} = {parts}"
    if asked is not None and plan.balance_ends:
        yield ("balance_ends",), "expected either `balance_ends` or `layers_per_stage`; got both"
    elif isinstance(asked, tuple):
        if len(asked) != parts:
            yield ("layers_per_stage",), f"expected {text} numbers; got {len(asked)}"
        elif sum(asked) != layers:
            yield ("layers_per_stage",), f"expected {layers} layers in all; got {sum(asked)}"
    elif plan.balance_ends:
        if parts < 3:
            yield ("balance_ends",), f"expected three parts of the pipeline or more with it; got {parts}"
        elif (layers + 2) % parts:
            uneven = f"{layers} layers + 2 = {layers + 2} over {text} parts is {(layers + 2) / parts:g}"
            yield ("balance_ends",), f"expected whole layers; {uneven}; `layers_per_stage: {SPREAD}` would do"
    elif parts > layers:
        yield ("pp",), f"expected at most one part per layer; {text} parts, the model has {layers} layers"
    elif asked is None and layers % parts:
        others = [f"`layers_per_stage: {SPREAD}`"]
        if (layers + 2) % parts == 0:
            others.append(f"`balance_ends: true` ({layers} + 2 = {parts} x {(layers + 2) // parts})")
        fit = [each for each in _all_divisors(layers) if each % plan.chunks == 0]
        if fit:
            others.append(f"pp = {_near([each // plan.chunks for each in fit], plan.pp, would=False)}")
        uneven = f"{layers} layers over {text} parts is {layers / parts:g}"
        yield ("pp",), f"expected whole layers; {uneven}; {_or(others)} would do"


def _schedule(sizes: _Sizes) -> Found:
    plan, pp, batches = sizes.plan, sizes.plan.pp, sizes.micro_batches
    count = None if batches is None else f"global_batch / (dp x micro_batch) = {batches} micro-batches"
    if plan.schedule == "interleaved":
        if plan.chunks == 1:
            yield ("chunks",), "expected 2 or more with `interleaved`; got 1"
        if pp == 1:
            yield ("pp",), "expected 2 stages or more with `interleaved`; got 1"
        elif batches is not None and batches % pp:
            yield ("schedule",), f"expected a multiple of pp {pp} with `interleaved`; got {count}"
    elif plan.chunks > 1:
        yield ("chunks",), f"expected 1 with `{plan.schedule}`, or `schedule: interleaved`; got {plan.chunks}"
    if plan.schedule == "dualpipe":
        if pp % 2:
            yield ("pp",), f"expected an even number with `dualpipe`, which runs from both ends; got {pp}"
        if batches is not None and (batches % 2 or batches < 2 * pp):
            text = f"expected an even number of at least 2 x pp = {2 * pp} with `dualpipe`"
            yield ("schedule",), f"{text}; got {count}"


def _sharding(sizes: _Sizes) -> Found:
    plan, asked = sizes.plan, sizes.plan.zero_group
    if asked is None:
        return
    replicas = plan.cp * sizes.dp
    if plan.zero == 0:
        yield ("zero_group",), f"expected `zero` 1, 2 or 3 with it, since nothing is sharded; got {asked}"
    elif replicas % asked:
        text = f"expected a divisor of cp {plan.cp} x dp {sizes.dp} = {replicas:,}"
        yield ("zero_group",), f"{text}; got {asked}; {_divisors(replicas, asked)}"
    elif cut(axes_of(sizes.dimensions, REPLICAS), 1, asked) is None:
        text = "expected a group on the borders of cp and dp, between which the stages lie"
        yield ("zero_group",), f"{text}; got {asked}"
    elif sizes.model.experts is not None:
        shard, mine = plan.tp * asked, plan.etp * plan.ep
        if shard % mine and mine % shard:
            text = f"expected tp {plan.tp} x zero_group {asked} = {shard} to be a multiple or a divisor"
            yield ("zero_group",), f"{text} of etp {plan.etp} x ep {plan.ep} = {mine}"


def _all_divisors(number: int) -> list[int]:
    small = [each for each in range(1, math.isqrt(number) + 1) if number % each == 0]
    return sorted({*small, *(number // each for each in small)})


def _divisors(number: int, wanted: int) -> str:
    return _near(_all_divisors(number), wanted)


def _near(fit: list[int], wanted: int, *, would: bool = True) -> str:
    """The nearest below and above, that would do."""
    below = [each for each in fit if each < wanted][-1:]
    above = [each for each in fit if each > wanted][:1]
    text = _or([f"{each:,}" for each in (*below, *above)])
    return f"{text} would do" if would else text


def _or(texts: list[str]) -> str:
    return " or ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else "".join(texts)
