"""What cannot be about a plan for a transformer: the arithmetic, in words that say what would do.

Plain integers; a plan that passes can be built (`mc.parallel`). Whether it fits into memory is another question.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from mc.config.axes import axes_of, cut
from mc.config.plan import SPREAD, PlanConfig, RoutingConfig
from mc.config.recompute import parts_of

Path = tuple[str | int, ...]
Found = Iterator[tuple[Path, str]]
FOLDED = frozenset({"tp", "cp", "dp"})
REPLICAS = frozenset({"cp", "dp"})


class ExpertsShape(Protocol):
    """What the checks need to know of experts; `ExpertsConfig` has it."""

    @property
    def count(self) -> int:
        """How many."""
        ...

    @property
    def ffn(self) -> int:
        """Width."""
        ...

    @property
    def shared_ffn(self) -> int:
        """Width of those that every token visits."""
        ...


class Shape(Protocol):
    """What the checks need to know of a model; `TransformerConfig` has it, and what is built of it."""

    @property
    def layers(self) -> int:
        """How many."""
        ...

    @property
    def heads(self) -> int:
        """Of queries."""
        ...

    @property
    def kv_heads(self) -> int:
        """Of keys and values."""
        ...

    @property
    def mla(self) -> object | None:
        """Latent attention, if it has that."""
        ...

    @property
    def ffn(self) -> int | None:
        """Width."""
        ...

    @property
    def experts(self) -> ExpertsShape | None:
        """If it has some."""
        ...


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

    def at(self, *names: str) -> Path:
        """The first of some keys that the plan has, since one that is left out has no place in a file."""
        given = [name for name in names if name in self.plan.model_fields_set]
        return (given[0] if given else names[0],)

    def fits(self, name: str, values: Iterable[int]) -> list[int]:
        """Those of some values of tp, cp or pp that divide the ranks beside the other two."""
        others = math.prod(getattr(self.plan, each) for each in ("tp", "cp", "pp") if each != name)
        return [each for each in values if self.ranks % (others * each) == 0]


def plan_problems(plan: PlanConfig, model: Shape, ranks: int, whole: str) -> Found:
    """Objections to a plan, each with its path below the plan.

    Args:
        plan: the plan.
        model: the shape of the transformer.
        ranks: how many take part.
        whole: who has so many: `the cluster` or `the plan`.
    """
    sizes = _Sizes(plan, model, ranks, plan.dp or max(1, ranks // (plan.tp * plan.cp * plan.pp)))
    yield from _given(plan)
    mismatch = [*_product(sizes, whole)]
    wrong = [*_tensor(sizes)]
    yield from (*mismatch, *wrong)
    yield from _sequence(sizes, sequence_parallel=plan.sequence_parallel and not wrong)
    yield from _experts(sizes, folded=not mismatch)
    yield from _layers(sizes)
    # Without the number of replicas nobody knows how many micro-batches there are.
    at_once = sizes.dp * plan.micro_batch
    total = plan.global_batch
    if total is not None and not mismatch:
        yield from _batch(sizes, total)
    known = total is not None and not mismatch and total % at_once == 0
    yield from _schedule(sizes, total // at_once if known and total is not None else None)
    yield from _recompute(sizes)
    if not mismatch:
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
    if plan.dp is None:
        if ranks % known == 0:
            return
        below = ranks // known * known
        others = [f"{each:,}" for each in (below, below + known if whole == "the plan" else 0) if each]
        advice = f"; ranks = {_or(others)} would do" if others else ""
        culprits = [name for name in ("pp", "cp", "tp") if ranks % getattr(plan, name)]
        yield (
            sizes.at("ranks", *culprits, "pp", "tp", "cp"),
            f"{text} = {known:,} does not divide the {ranks:,} ranks of {whole}{advice}",
        )
        return
    product = known * plan.dp
    if product == ranks:
        return
    others = [f"dp = {ranks // known:,}"] if ranks % known == 0 else []
    if product < ranks or whole == "the plan":
        others.append(f"ranks = {product:,}")
    advice = f"; {_or(others)} would do" if others else ""
    yield ("dp",), f"{text} x dp {plan.dp} = {product:,}, {whole} has {ranks:,}{advice}"


def _tensor(sizes: _Sizes) -> Found:
    plan, model = sizes.plan, sizes.model
    tp, heads, kv_heads = plan.tp, model.heads, model.kv_heads
    widths = {"ffn": model.ffn or 0}
    if model.experts is not None:
        widths["shared_ffn"] = model.experts.shared_ffn
    reasons = [] if heads % tp == 0 else [f"of the {heads} heads"]
    shares_heads = model.mla is not None or kv_heads % tp == 0 or tp % kv_heads == 0
    if not shares_heads:
        reasons.append(f"of the {kv_heads} heads of keys and values (or a multiple)")
    reasons += [f"of {name}, {width:,}" for name, width in widths.items() if width % tp]
    if not reasons:
        return
    fit = [
        each
        for each in _all_divisors(heads)
        if (model.mla is not None or kv_heads % each == 0 or each % kv_heads == 0)
        and not any(width % each for width in widths.values())
    ]
    yield ("tp",), f"expected a divisor {' and '.join(reasons)}; got {tp}{_near(sizes.fits('tp', fit), tp)}"


def _sequence(sizes: _Sizes, *, sequence_parallel: bool) -> Found:
    plan, length = sizes.plan, sizes.plan.sequence_length
    if length is None:
        return
    if plan.cp > 1 and length % (2 * plan.cp):
        text = "expected 2 x cp to divide the sequence, of which each rank has a piece from either half"
        fit = sizes.fits("cp", [each // 2 for each in _all_divisors(length) if each % 2 == 0])
        quotient = f"{length:,} / (2 x {plan.cp}) = {length / (2 * plan.cp):g}"
        yield ("cp",), f"{text}; {quotient}{_near(fit, plan.cp)}"
    elif sequence_parallel and plan.tp > 1 and length % (plan.cp * plan.tp):
        text = "expected cp x tp to divide the sequence with `sequence_parallel`"
        quotient = f"{length:,} / (cp {plan.cp} x tp {plan.tp}) = {length / (plan.cp * plan.tp):g}"
        path = sizes.at("sequence_parallel", "tp")
        yield path, f"{text}; {quotient}; `sequence_parallel: false` would do"


def _experts(sizes: _Sizes, *, folded: bool) -> Found:
    plan, experts = sizes.plan, sizes.model.experts
    if experts is not None:
        yield from _expert_ranks(sizes, experts, folded=folded)
        return
    for name in ("ep", "etp"):
        if getattr(plan, name) > 1:
            yield (name,), f"expected 1, since the model has no experts; got {getattr(plan, name)}"
    if plan.routing != _BALANCED:
        yield ("routing",), "expected none, since the model has no experts"
    if plan.dispatcher is not None:
        yield ("dispatcher",), f"expected none, since the model has no experts; got `{plan.dispatcher}`"


def _expert_ranks(sizes: _Sizes, experts: ExpertsShape, *, folded: bool) -> Found:
    plan = sizes.plan
    ranks, mine = plan.tp * plan.cp * sizes.dp, plan.etp * plan.ep
    # Whoever does not know the ranks takes any number of them.
    fits_ranks = not folded or ranks % mine == 0
    reasons = [] if experts.count % plan.ep == 0 else [f"a divisor of the {experts.count} experts"]
    if experts.ffn % plan.etp:
        fit = [each for each in _all_divisors(experts.ffn) if not folded or ranks % (each * plan.ep) == 0]
        text = f"expected a divisor of an expert's ffn, {experts.ffn:,}"
        yield ("etp",), f"{text}; got {plan.etp}{_near(fit, plan.etp)}"
    if not fits_ranks:
        text = (
            f"etp {plan.etp} x ep {plan.ep} = {mine:,} to divide tp {plan.tp} x cp {plan.cp} x dp {sizes.dp}"
        )
        reasons.append(f"{text} = {ranks:,}")
    if reasons:
        fit = [each for each in _all_divisors(experts.count) if not folded or ranks % (each * plan.etp) == 0]
        path = sizes.at("ep", "etp")
        yield path, f"expected {' and '.join(reasons)}; got ep {plan.ep}{_near(fit, plan.ep)}"
    elif folded:
        axes = axes_of(sizes.dimensions, FOLDED)
        parts = ((1, plan.etp), (plan.etp, plan.ep), (mine, ranks // mine))
        if any(cut(axes, skip, take) is None for skip, take in parts):
            borders = " and ".join(str(size) for size, _ in axes)
            yield (
                sizes.at("ep", "etp"),
                f"expected etp {plan.etp} x ep {plan.ep} on the borders of {borders} ranks, between which the "
                f"stages lie under order {', '.join(plan.order)}; pp last in `order` would do",
            )


def _batch(sizes: _Sizes, total: int) -> Found:
    plan = sizes.plan
    at_once = sizes.dp * plan.micro_batch
    if total % at_once == 0:
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
    divided = f"pp {plan.pp}" if plan.chunks == 1 else f"(pp {plan.pp} x chunks {plan.chunks})"
    if asked is not None and plan.balance_ends:
        yield ("balance_ends",), "expected either `balance_ends` or `layers_per_stage`; got both"
    elif isinstance(asked, tuple):
        if len(asked) != parts:
            yield ("layers_per_stage",), f"expected a number for each of {text} parts; got {len(asked)}"
        elif sum(asked) != layers:
            yield ("layers_per_stage",), f"expected {layers} layers in all; got {sum(asked)}"
    elif plan.balance_ends:
        if parts < 3:
            yield ("balance_ends",), f"expected three parts of the pipeline or more with it; got {parts}"
        elif (layers + 2) % parts:
            uneven = f"({layers} layers + 2) / {divided} = {(layers + 2) / parts:g}"
            yield (
                ("balance_ends",),
                f"expected whole layers; {uneven}; `layers_per_stage: {SPREAD}` instead would do",
            )
    elif parts > layers:
        path = sizes.at("pp", "chunks")
        yield path, f"expected at most one part for each of the {layers} layers; got {text}"
    elif asked is None and layers % parts:
        others = [f"`layers_per_stage: {SPREAD}`"]
        if (layers + 2) % parts == 0 and parts > 2:
            others.append(f"`balance_ends: true` ({layers} + 2 = {parts} x {(layers + 2) // parts})")
        fit = [each // plan.chunks for each in _all_divisors(layers) if each % plan.chunks == 0]
        if near := _nearest(sizes.fits("pp", fit), plan.pp):
            others.append(f"pp = {near}")
        uneven = f"{layers} layers / {divided} = {layers / parts:g}"
        yield sizes.at("pp", "chunks"), f"expected whole layers; {uneven}; {_or(others)} would do"


def _schedule(sizes: _Sizes, batches: int | None) -> Found:
    plan, pp = sizes.plan, sizes.plan.pp
    count = f"global_batch / (dp x micro_batch) = {batches} micro-batches"
    if plan.schedule == "interleaved":
        if plan.chunks == 1:
            yield sizes.at("chunks", "schedule"), "expected `chunks` of 2 or more with `interleaved`; got 1"
        elif pp == 1:
            yield sizes.at("pp", "schedule", "chunks"), "expected 2 stages or more with `interleaved`; got 1"
        elif batches is not None and batches % pp:
            path = sizes.at("schedule", "chunks")
            yield path, f"expected a multiple of pp {pp} with `interleaved`; got {count}"
    elif plan.chunks > 1:
        yield ("chunks",), f"expected 1 with `{plan.schedule}`, or `schedule: interleaved`; got {plan.chunks}"
    if plan.schedule == "dualpipe":
        if pp % 2:
            text = "expected an even number of stages with `dualpipe`, which runs from both ends"
            yield sizes.at("pp", "schedule"), f"{text}; got {pp}"
        elif batches is not None and (batches % 2 or batches < 2 * pp):
            text = f"expected an even number of at least 2 x pp = {2 * pp} with `dualpipe`"
            yield ("schedule",), f"{text}; got {count}"


def _recompute(sizes: _Sizes) -> Found:
    plan, model = sizes.plan, sizes.model
    parts = parts_of(plan.recompute)
    missing = {
        "mla_up": None if model.mla is not None else "the model has no latent attention",
        "mlp": None if model.ffn else "the model has no dense networks",
        "experts": None if model.experts is not None else "the model has no experts",
    }
    for part, reason in missing.items():
        if part in parts and reason is not None:
            yield ("recompute",), f"expected no `{part}`, since {reason}"
    if plan.recompute_layers is not None and not parts:
        text = "expected `recompute` beside it, since nothing is computed again"
        yield ("recompute_layers",), f"{text}; got {plan.recompute_layers}"


def _sharding(sizes: _Sizes) -> Found:
    plan, asked = sizes.plan, sizes.plan.zero_group
    if asked is None:
        return
    replicas = plan.cp * sizes.dp
    if plan.zero == 0:
        yield ("zero_group",), f"expected `zero` 1, 2 or 3 with it, since nothing is sharded; got {asked}"
    elif replicas % asked:
        text = f"expected a divisor of cp {plan.cp} x dp {sizes.dp} = {replicas:,}"
        yield ("zero_group",), f"{text}; got {asked}{_near(_all_divisors(replicas), asked)}"
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


def _near(fit: list[int], wanted: int) -> str:
    """The nearest below and above, that would do."""
    near = _nearest(fit, wanted)
    return f"; {near} would do" if near else ""


def _nearest(fit: list[int], wanted: int) -> str:
    below = [each for each in fit if each < wanted][-1:]
    above = [each for each in fit if each > wanted][:1]
    return _or([f"{each:,}" for each in (*below, *above)])


def _or(texts: list[str]) -> str:
    return " or ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else "".join(texts)
