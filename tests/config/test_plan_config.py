"""Plans for transformers: defaults, and those that cannot be, with the place, the arithmetic and what would do."""

import itertools

import pytest

from mc.config import PlanConfig, config_hash, load_experiment, load_plan, resolved
from mc.config.plan_checks import plan_problems
from mc.config.transformer import TransformerConfig
from mc.document import ConfigError
from tests.config.conftest import FILES

DENSE = """\
name: dense
transformer: {layers: 24, hidden: 1536, heads: 12, kv_heads: 4, ffn: 6144, vocab: 32000}
"""
EXPERTS = """\
name: experts
transformer:
  {layers: 24, hidden: 1024, heads: 16, ffn: 4096, vocab: 32000,
   experts: {count: 16, top_k: 2, ffn: 512, shared: 1, shared_ffn: 1000}}
"""
# The little cluster has 8 x 32 x 4 = 1024 ranks.
BATCH = "global_batch: 1024\nsequence_length: 4096\n"


@pytest.fixture
def objections(write):
    """What an experiment with a transformer and this plan is refused for."""

    def ask(plan: str, model: str = DENSE) -> list[str]:
        write("model.yaml", model)
        write("plan.yaml", plan)
        try:
            load_experiment("experiment.yaml")
        except ConfigError as error:
            return str(error).splitlines()
        return []

    return ask


GOOD = [
    "tp: 4\n" + BATCH,
    "tp: 4\ncp: 2\npp: 4\ndp: 32\nzero: 1\nzero_group: 16\n" + BATCH,
    "pp: 16\nlayers_per_stage: spread\n" + BATCH,
    "pp: 4\nlayers_per_stage: [5, 7, 7, 5]\n" + BATCH,
    "pp: 2\nchunks: 4\nglobal_batch: 1024\nsequence_length: 4096\n",
    "pp: 8\nschedule: dualpipe\nglobal_batch: 2048\nsequence_length: 4096\n",
    "order: [pp, dp, cp, tp]\ntp: 2\npp: 2\n" + BATCH,
    # 12 heads on 4 ranks with 4 heads of keys and values: one each; on 12 ranks three share one.
    "ranks: 12\ntp: 12\nsequence_parallel: false\n" + BATCH,
]


@pytest.mark.parametrize("plan", GOOD)
def test_plans_that_can_be(objections, plan):
    assert objections(plan) == []


REFUSED = [
    ("tp: 8\n", "1:5: plan.tp: expected a divisor of the 12 heads; got 8; 4 would do"),
    (
        "ranks: 12\ntp: 3\n",
        "2:5: plan.tp: expected a divisor of the 4 heads of keys and values (or a multiple); got 3; 2 or 4 would do",
    ),
    (
        "tp: 8\npp: 16\ndp: 100\nlayers_per_stage: spread\n",
        "3:5: plan.dp: tp 8 x cp 1 x pp 16 x dp 100 = 12,800, the cluster has 1,024; dp = 8 would do",
        "1:5: plan.tp: expected a divisor of the 12 heads; got 8; 4 would do",
    ),
    (
        "tp: 4\ndp: 32\n",
        "2:5: plan.dp: tp 4 x cp 1 x pp 1 x dp 32 = 128, the cluster has 1,024; dp = 256 or ranks = 128 would do",
    ),
    (
        "ranks: 1000\npp: 3\n",
        "1:8: plan.ranks: tp 1 x cp 1 x pp 3 = 3 does not divide the 1,000 ranks of the plan; "
        "ranks = 999 or 1,002 would do",
    ),
    (
        "pp: 3\n",
        "1:5: plan.pp: tp 1 x cp 1 x pp 3 = 3 does not divide the 1,024 ranks of the cluster; ranks = 1,023 would do",
    ),
    (
        "cp: 512\nglobal_batch: 2\nsequence_length: 1536\n",
        "1:5: plan.cp: expected 2 x cp to divide the sequence, of which each rank has a piece from either half; "
        "1,536 / (2 x 512) = 1.5; 256 would do",
    ),
    (
        "tp: 4\ncp: 8\nglobal_batch: 1024\nsequence_length: 1040\n",
        "1:5: plan.tp: expected cp x tp to divide the sequence with `sequence_parallel`; 1,040 / (cp 8 x tp 4) = 32.5; "
        "`sequence_parallel: false` would do",
    ),
    ("ep: 4\n", "1:5: plan.ep: expected 1, since the model has no experts; got 4"),
    ("routing: {skew: 1}\n", "1:10: plan.routing: expected none, since the model has no experts"),
    (
        "dispatcher: deduplicated\n",
        "1:13: plan.dispatcher: expected none, since the model has no experts; got `deduplicated`",
    ),
    (
        "recompute: [norms, mla_up]\n",
        "1:12: plan.recompute: expected no `mla_up`, since the model has no latent attention",
    ),
    (
        "recompute: [norms, nroms]\n",
        "1:12: plan.recompute: expected `none`, `selective`, `full`, or a list of parts (attention, norms, mla_up, "
        "activations, mlp, experts); got 'nroms' in it",
    ),
    ("recompute: [mlp, mlp]\n", "1:12: plan.recompute: expected each part once; got mlp, mlp"),
    (
        "recompute_layers: 2\n",
        "1:19: plan.recompute_layers: expected `recompute` beside it, since nothing is computed again; got 2",
    ),
    (
        "pp: 16\n",
        "1:5: plan.pp: expected whole layers; 24 layers / pp 16 = 1.5; `layers_per_stage: spread` or pp = 8 would do",
    ),
    (
        "ranks: 26\npp: 13\n",
        "2:5: plan.pp: expected whole layers; 24 layers / pp 13 = 1.84615; `layers_per_stage: spread`, "
        "`balance_ends: true` (24 + 2 = 13 x 2) or pp = 2 would do",
    ),
    ("pp: 32\n", "1:5: plan.pp: expected at most one part for each of the 24 layers; got pp 32"),
    ("pp: 4\nlayers_per_stage: [12, 12]\n", "2:19: plan.layers_per_stage: expected a number for each of pp 4 parts; got 2"),
    ("pp: 2\nlayers_per_stage: [12, 13]\n", "2:19: plan.layers_per_stage: expected 24 layers in all; got 25"),
    (
        "pp: 2\nlayers_per_stage: [12, -1]\n",
        "2:19: plan.layers_per_stage: expected whole numbers of layers; got [12, -1]",
    ),
    (
        "pp: 2\nlayers_per_stage: sprad\n",
        "2:19: plan.layers_per_stage: expected `spread` or a list of numbers of layers; got 'sprad'",
    ),
    (
        "pp: 4\nbalance_ends: true\n",
        "2:15: plan.balance_ends: expected whole layers; (24 layers + 2) / pp 4 = 6.5; "
        "`layers_per_stage: spread` instead would do",
    ),
    (
        "pp: 2\nbalance_ends: true\n",
        "2:15: plan.balance_ends: expected three parts of the pipeline or more with it; got 2",
    ),
    (
        "pp: 2\nbalance_ends: true\nlayers_per_stage: spread\n",
        "2:15: plan.balance_ends: expected either `balance_ends` or `layers_per_stage`; got both",
    ),
    (
        "micro_batch: 3\nglobal_batch: 1024\n",
        "2:15: plan.global_batch: expected whole micro-batches; 1,024 / (dp 1024 x micro_batch 3) = 0.333333; "
        "3,072 would do",
    ),
    (
        "pp: 4\nchunks: 2\nglobal_batch: 512\nsequence_length: 4096\n",
        "2:9: plan.chunks: expected a multiple of pp 4 with `interleaved`; "
        "got global_batch / (dp x micro_batch) = 2 micro-batches",
    ),
    ("pp: 4\nschedule: interleaved\n", "2:11: plan.schedule: expected `chunks` of 2 or more with `interleaved`; got 1"),
    ("chunks: 2\n", "1:9: plan.chunks: expected 2 stages or more with `interleaved`; got 1"),
    (
        "pp: 4\nchunks: 2\nschedule: gpipe\n",
        "2:9: plan.chunks: expected 1 with `gpipe`, or `schedule: interleaved`; got 2",
    ),
    (
        "ranks: 3\npp: 3\nschedule: dualpipe\n",
        "2:5: plan.pp: expected an even number of stages with `dualpipe`, which runs from both ends; got 3",
    ),
    (
        "pp: 4\nschedule: dualpipe\nglobal_batch: 1024\n",
        "2:11: plan.schedule: expected an even number of at least 2 x pp = 8 with `dualpipe`; "
        "got global_batch / (dp x micro_batch) = 4 micro-batches",
    ),
    ("schedule: 1F1B\n", "1:11: plan.schedule: unknown name `1F1B`; did you mean `1f1b`?"),
    ("order: [tp, cp, dpp, pp]\n", "1:17: plan.order.2: unknown name `dpp`; did you mean `pp`?"),
    ("order: [tp, cp, dp]\n", "1:8: plan.order: expected each of tp, cp, dp, pp once; got tp, cp, dp"),
    ("order: [tp, cp, tp, pp]\n", "1:8: plan.order: expected each of tp, cp, dp, pp once; got tp, cp, tp, pp"),
    ("zero: 4\n", "1:7: plan.zero: expected at most 3; got 4"),
    ("zero: true\n", "1:7: plan.zero: expected an integer; got true"),
    ("zero_group: 8\n", "1:13: plan.zero_group: expected `zero` 1, 2 or 3 with it, since nothing is sharded; got 8"),
    (
        "zero: 3\nzero_group: 12\n",
        "2:13: plan.zero_group: expected a divisor of cp 1 x dp 1024 = 1,024; got 12; 8 or 16 would do",
    ),
    (
        "cp: 4\npp: 2\nzero: 1\nzero_group: 8\norder: [dp, pp, tp, cp]\nranks: 24\n",
        "4:13: plan.zero_group: expected a divisor of cp 4 x dp 3 = 12; got 8; 6 or 12 would do",
    ),
    (
        "cp: 4\npp: 2\nzero: 1\nzero_group: 2\norder: [dp, pp, tp, cp]\nranks: 24\nglobal_batch: 12\n"
        "sequence_length: 4096\n",
        "4:13: plan.zero_group: expected a group on the borders of cp and dp, between which the stages lie; got 2",
    ),
    (
        "algorithm: ring\n",
        "1:12: plan.algorithm: expected `auto`, since the step of a transformer has several collectives; got `ring`",
    ),
    ("formats: {math: fp8}\n", "1:17: plan.formats.math: the chip does not offer fp8; expected one of bf16"),
    (
        "routing: {overflow: drop}\n",
        "1:21: plan.routing.overflow: expected `capacity_factor` with `drop`, since nothing overflows without",
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=[case[0].replace("\n", " ") for case in REFUSED])
def test_plans_that_cannot_be(objections, case):
    plan, *wanted = case
    plan += "" if "global_batch" in plan else "global_batch: 3072\n"
    plan += "" if "sequence_length" in plan else "sequence_length: 4096\n"
    found = objections(plan)
    assert len(found) == len(wanted), found
    for text in wanted:
        assert any(line.startswith("plan.yaml:" + text) for line in found), found


REFUSED_EXPERTS = [
    ("ep: 32\n", "1:5: plan.ep: expected a divisor of the 16 experts; got ep 32; 16 would do"),
    (
        "ep: 3\n",
        "1:5: plan.ep: expected a divisor of the 16 experts and etp 1 x ep 3 = 3 to divide tp 1 x cp 1 x dp 1024 = "
        "1,024; got ep 3; 2 or 4 would do",
    ),
    (
        "ranks: 8\nep: 8\netp: 2\n",
        "2:5: plan.ep: expected etp 2 x ep 8 = 16 to divide tp 1 x cp 1 x dp 8 = 8; got ep 8; 4 would do",
    ),
    ("tp: 16\n", "1:5: plan.tp: expected a divisor of shared_ffn, 1,000; got 16; 8 would do"),
    (
        "zero: 1\nzero_group: 32\nranks: 96\ntp: 2\nep: 16\netp: 3\n",
        "2:13: plan.zero_group: expected a divisor of cp 1 x dp 48 = 48; got 32; 24 or 48 would do",
        "6:6: plan.etp: expected a divisor of an expert's ffn, 512; got 3; 2 would do",
    ),
    (
        "zero: 1\nzero_group: 3\nranks: 12\nep: 4\n",
        "2:13: plan.zero_group: expected tp 1 x zero_group 3 = 3 to be a multiple or a divisor of etp 1 x ep 4 = 4",
    ),
    (
        "order: [cp, dp, pp, tp]\nranks: 48\npp: 2\ntp: 2\nep: 8\n",
        "5:5: plan.ep: expected etp 1 x ep 8 on the borders of 12 and 2 ranks, between which the stages lie under "
        "order cp, dp, pp, tp; pp last in `order` would do",
    ),
]


@pytest.mark.parametrize(
    "case", REFUSED_EXPERTS, ids=[case[0].replace("\n", " ") for case in REFUSED_EXPERTS]
)
def test_ranks_of_experts_that_cannot_be(objections, case):
    plan, *wanted = case
    found = objections(plan + "global_batch: 3072\nsequence_length: 4096\n", EXPERTS)
    assert len(found) == len(wanted), found
    for text in wanted:
        assert any(line.startswith("plan.yaml:" + text) for line in found), found


def test_what_a_transformer_needs(objections):
    assert objections("tp: 2\n") == [
        "plan.yaml:1:1: plan: `global_batch`: expected sequences per step, since the model is a transformer; got none",
        "plan.yaml:1:1: plan: `sequence_length`: expected tokens per sequence, since the model is a transformer; got none",
    ]


def test_everything_wrong_comes_at_once(objections):
    found = objections("tp: 5\npp: 5\ndp: 7\nep: 2\nzero_group: 2\nchunks: 3\nschedule: gpipe\n" + BATCH)
    keys = [line.split(": ")[1] for line in found]
    assert sorted(keys) == ["plan.chunks", "plan.dp", "plan.ep", "plan.pp", "plan.tp"]


def test_only_a_transformer_is_cut(objections):
    found = objections("tp: 8\nzero: 1\nglobal_batch: 12\n", FILES["model.yaml"])
    assert [line.split(": ")[:2] for line in found] == [
        ["plan.yaml:1:5", "plan.tp"],
        ["plan.yaml:2:7", "plan.zero"],
        ["plan.yaml:3:15", "plan.global_batch"],
    ]
    assert all("expected none, since only a `transformer` can be cut so" in line for line in found)
    # What changes nothing is no mistake, so that the resolved plan of another experiment can be read.
    assert (
        objections("tp: 1\nschedule: 1f1b\nsequence_parallel: false\nranks: 8\n", FILES["model.yaml"]) == []
    )


def test_the_plan_of_another_model_is_as_short_as_before(write):
    assert resolved(load_experiment("experiment.yaml"))["plan"] == {
        "schema_version": 1,
        "name": "everyone",
        "ranks": "all",
        "algorithm": "auto",
        "objective": "floor",
        "protocol": "auto",
    }


def test_defaults_that_follow(write):
    write("plan.yaml", "tp: 8\nchunks: 3\nformats: {main_gradients: bf16, weights: fp16}\n")
    plan = load_plan("plan.yaml")
    assert (plan.ranks, plan.sequence_parallel, plan.schedule) == ("all", True, "interleaved")
    assert (plan.formats.gradients, plan.formats.parameters) == ("bf16", "fp16")
    write("plan.yaml", "cp: 8\nrouting: {capacity_factor: 1.5}\n")
    plan = load_plan("plan.yaml")
    assert (plan.sequence_parallel, plan.schedule, plan.routing.overflow) == (False, "1f1b", "drop")
    assert PlanConfig().routing.overflow == "wait"


def test_a_plan_survives_being_printed(write):
    write("model.yaml", EXPERTS)
    write("plan.yaml", "tp: 2\nep: 4\npp: 4\nlayers_per_stage: [5, 7, 7, 5]\nbucket: 25 MiB\n" + BATCH)
    config = load_experiment("experiment.yaml")
    shown = resolved(config)["plan"]
    assert shown["layers_per_stage"] == [5, 7, 7, 5]
    assert shown["bucket"] == "25 MiB"
    assert shown["order"] == ["tp", "cp", "dp", "pp"]
    assert config_hash(config) != config_hash(load_experiment("experiment.yaml", ["plan.zero=1"]))


@pytest.mark.parametrize("tp", [1, 2, 3, 4, 6, 8, 12])
def test_what_would_do_does(tp):
    """Whatever number a message offers is accepted in its place."""
    model = TransformerConfig(layers=24, hidden=1536, heads=12, kv_heads=4, ffn=6144, vocab=32000)
    for pp, chunks, ranks in itertools.product((1, 2, 5, 8), (1, 2), (96, 100)):
        keys = {"tp": tp, "pp": pp, "chunks": chunks, "global_batch": 9600, "sequence_length": 4800}
        plan = PlanConfig.model_validate(keys)
        for path, text in plan_problems(plan, model, ranks, "the plan"):
            advice = text.split("; ")[-1]
            if not advice.endswith("would do"):
                continue
            for offer in advice.removesuffix(" would do").replace(", ", " or ").split(" or "):
                name, _, value = offer.replace("`", "").rpartition(" = " if " = " in offer else ": ")
                if "balance_ends" in offer:
                    name, value = "balance_ends", "true"
                name = name or ("ranks" if text.startswith("tp ") else str(path[0]))
                number = int(value.replace(",", "")) if value.replace(",", "").isdigit() else value
                number = number if value not in ("true", "false") else value == "true"
                fixed = PlanConfig.model_validate({**keys, name: number} if name != "ranks" else keys)
                count = number if name == "ranks" else ranks
                texts = {other for _, other in plan_problems(fixed, model, int(count), "the plan")}
                assert text not in texts
                kind = text.split(";")[0][:24]
                assert not any(other.startswith(kind) for other in texts), (text, texts)
