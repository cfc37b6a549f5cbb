"""What cannot be about a plan for a transformer: the arithmetic, in words that say what would do.

Plain integers; a plan that passes can be built (`mc.parallel`). Whether it fits into memory is another question.
"""

from mc.config.axes import axes_of, cut
from mc.config.plan import SPREAD, PlanConfig, RoutingConfig
from mc.config.plan_sizes import (
    FOLDED,
    REPLICAS,
    ExpertsShape,
    Found,
    Shape,
    Sizes,
    all_divisors,
    either,
    near,
    nearest,
)
from mc.config.recompute import parts_of

_BALANCED = RoutingConfig()


def plan_problems(plan: PlanConfig, model: Shape, ranks: int, whole: str) -> Found:
    """Objections to a plan, each with its path below the plan.

    Args:
        plan: the plan.
        model: the shape of the transformer.
        ranks: how many take part.
        whole: who has so many: `the cluster` or `the plan`.
    """
    sizes = Sizes(plan, model, ranks, plan.dp or max(1, ranks // (plan.tp * plan.cp * plan.pp)))
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


def _given(plan: PlanConfig) -> Found:
    if plan.global_batch is None:
        yield ("global_batch",), "expected sequences per step, since the model is a transformer; got none"
    if plan.sequence_length is None:
        yield ("sequence_length",), "expected tokens per sequence, since the model is a transformer; got none"
    if plan.algorithm != "auto":
        text = "expected `auto`, since the step of a transformer has several collectives"
        yield ("algorithm",), f"{text}; got `{plan.algorithm}`"


def _product(sizes: Sizes, whole: str) -> Found:
    plan, ranks = sizes.plan, sizes.ranks
    known = plan.tp * plan.cp * plan.pp
    text = f"tp {plan.tp} x cp {plan.cp} x pp {plan.pp}"
    if plan.dp is None:
        if ranks % known == 0:
            return
        below = ranks // known * known
        others = [f"{each:,}" for each in (below, below + known if whole == "the plan" else 0) if each]
        advice = f"; ranks = {either(others)} would do" if others else ""
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
    advice = f"; {either(others)} would do" if others else ""
    yield ("dp",), f"{text} x dp {plan.dp} = {product:,}, {whole} has {ranks:,}{advice}"


def _tensor(sizes: Sizes) -> Found:
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
        for each in all_divisors(heads)
        if (model.mla is not None or kv_heads % each == 0 or each % kv_heads == 0)
        and not any(width % each for width in widths.values())
    ]
    yield ("tp",), f"expected a divisor {' and '.join(reasons)}; got {tp}{near(sizes.fits('tp', fit), tp)}"


def _sequence(sizes: Sizes, *, sequence_parallel: bool) -> Found:
    plan, length = sizes.plan, sizes.plan.sequence_length
    if length is None:
        return
    if plan.cp > 1 and length % (2 * plan.cp):
        text = "expected 2 x cp to divide the sequence, of which each rank has a piece from either half"
        fit = sizes.fits("cp", [each // 2 for each in all_divisors(length) if each % 2 == 0])
        quotient = f"{length:,} / (2 x {plan.cp}) = {length / (2 * plan.cp):g}"
        yield ("cp",), f"{text}; {quotient}{near(fit, plan.cp)}"
    elif sequence_parallel and plan.tp > 1 and length % (plan.cp * plan.tp):
        text = "expected cp x tp to divide the sequence with `sequence_parallel`"
        quotient = f"{length:,} / (cp {plan.cp} x tp {plan.tp}) = {length / (plan.cp * plan.tp):g}"
        path = sizes.at("sequence_parallel", "tp")
        yield path, f"{text}; {quotient}; `sequence_parallel: false` would do"


def _experts(sizes: Sizes, *, folded: bool) -> Found:
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


def _expert_ranks(sizes: Sizes, experts: ExpertsShape, *, folded: bool) -> Found:
    plan = sizes.plan
    ranks, mine = plan.tp * plan.cp * sizes.dp, plan.etp * plan.ep
    # Whoever does not know the ranks takes any number of them.
    fits_ranks = not folded or ranks % mine == 0
    reasons = [] if experts.count % plan.ep == 0 else [f"a divisor of the {experts.count} experts"]
    if experts.ffn % plan.etp:
        fit = [each for each in all_divisors(experts.ffn) if not folded or ranks % (each * plan.ep) == 0]
        text = f"expected a divisor of an expert's ffn, {experts.ffn:,}"
        yield ("etp",), f"{text}; got {plan.etp}{near(fit, plan.etp)}"
    if not fits_ranks:
        text = (
            f"etp {plan.etp} x ep {plan.ep} = {mine:,} to divide tp {plan.tp} x cp {plan.cp} x dp {sizes.dp}"
        )
        reasons.append(f"{text} = {ranks:,}")
    if reasons:
        fit = [each for each in all_divisors(experts.count) if not folded or ranks % (each * plan.etp) == 0]
        path = sizes.at("ep", "etp")
        yield path, f"expected {' and '.join(reasons)}; got ep {plan.ep}{near(fit, plan.ep)}"
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


def _batch(sizes: Sizes, total: int) -> Found:
    plan = sizes.plan
    at_once = sizes.dp * plan.micro_batch
    if total % at_once == 0:
        return
    below = total // at_once * at_once
    others = [f"{each:,}" for each in (below, below + at_once) if each]
    yield (
        ("global_batch",),
        f"expected whole micro-batches; {total:,} / (dp {sizes.dp} x micro_batch {plan.micro_batch}) = "
        f"{total / at_once:g}; {either(others)} would do",
    )


def _layers(sizes: Sizes) -> Found:
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
        fit = [each // plan.chunks for each in all_divisors(layers) if each % plan.chunks == 0]
        if others_of_pp := nearest(sizes.fits("pp", fit), plan.pp):
            others.append(f"pp = {others_of_pp}")
        uneven = f"{layers} layers / {divided} = {layers / parts:g}"
        yield sizes.at("pp", "chunks"), f"expected whole layers; {uneven}; {either(others)} would do"


def _schedule(sizes: Sizes, batches: int | None) -> Found:
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


def _recompute(sizes: Sizes) -> Found:
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


def _sharding(sizes: Sizes) -> Found:
    plan, asked = sizes.plan, sizes.plan.zero_group
    if asked is None:
        return
    replicas = plan.cp * sizes.dp
    if plan.zero == 0:
        yield ("zero_group",), f"expected `zero` 1, 2 or 3 with it, since nothing is sharded; got {asked}"
    elif replicas % asked:
        text = f"expected a divisor of cp {plan.cp} x dp {sizes.dp} = {replicas:,}"
        yield ("zero_group",), f"{text}; got {asked}{near(all_divisors(replicas), asked)}"
    elif cut(axes_of(sizes.dimensions, REPLICAS), 1, asked) is None:
        text = "expected a group on the borders of cp and dp, between which the stages lie"
        yield ("zero_group",), f"{text}; got {asked}"
    elif sizes.model.experts is not None:
        shard, mine = plan.tp * asked, plan.etp * plan.ep
        if shard % mine and mine % shard:
            text = f"expected tp {plan.tp} x zero_group {asked} = {shard} to be a multiple or a divisor"
            yield ("zero_group",), f"{text} of etp {plan.etp} x ep {plan.ep} = {mine}"
