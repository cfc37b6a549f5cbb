"""Sweep files: what they say, and that whatever is wrong with one is said at its line before anything runs."""

import pytest

from mc.config.load_sweep import check_cells, load_sweep
from mc.document import ConfigError

EXPERIMENT = """\
name: small
cluster:
  name: small
  chip: {name: any, peak: {bf16: 100 TFLOP/s}}
  tiers:
    - {name: node, link: {bandwidth: 1 TB/s, duplex: each, latency: 1 us}, fan_out: 8}
    - {name: pod, link: {bandwidth: 50 GB/s, duplex: each, latency: 5 us}, fan_out: 64}
  noise:
    spread: {family: lognormal, median: 1, sigma: 2 %}
model:
  name: gradients
  compute: {flop: 5 GFLOP, format: bf16, efficiency: 50 %}
  exchange: {collective: all-reduce, size: 10 MB}
plan: {algorithm: ring}
run: {samples: 200}
sweep:
"""
FIRST = EXPERIMENT.count("\n") + 1


@pytest.fixture
def load(tmp_path):
    """Loads the experiment with a sweep block of these lines."""

    def loaded(*lines: str, check: bool = True, overrides=()):
        path = tmp_path / "sweep.yaml"
        path.write_text(EXPERIMENT + "".join(f"  {line}\n" for line in lines))
        sweep = load_sweep(path, overrides)
        if check:
            check_cells(sweep)
        return sweep

    return loaded


def said(load, *lines: str) -> str:
    with pytest.raises(ConfigError) as refused:
        load(*lines)
    return str(refused.value)


def test_a_grid_is_every_combination_the_first_axis_slowest(load):
    sweep = load("grid:", "  plan.ranks: [8, 16]", "  plan.algorithm: [ring, tree, auto]")
    assert [sweep.text(cell) for cell in range(len(sweep))] == [
        f"plan.ranks={ranks}, plan.algorithm={name}" for ranks in (8, 16) for name in ("ring", "tree", "auto")
    ]
    config = sweep.experiment(4)
    assert (config.ranks, config.plan.algorithm) == (16, "tree")


def test_blocks_multiply(load):
    sweep = load(
        "grid: {plan.ranks: [8, 16]}",
        "zip: {model.exchange.size: [1 MB, 2 MB], run.seed: [1, 2]}",
        "list: [{plan.algorithm: ring}, {plan.algorithm: tree}]",
    )
    assert len(sweep) == 8
    config = sweep.experiment(3)
    assert (config.ranks, config.model.exchange.size, config.run.seed) == (8, 2e6, 2)
    assert config.plan.algorithm == "tree"


@pytest.mark.parametrize(
    ("spelled", "values"),
    [
        ("{powers of two: [8, 100]}", [8, 16, 32, 64]),
        ("{linear: [2, 8], points: 4}", [2, 4, 6, 8]),
        ("{log: [1, 500], points: 4, whole: true}", [1, 8, 63, 500]),
    ],
)
def test_ranges_of_whole_numbers(load, spelled, values):
    sweep = load(f"grid: {{plan.ranks: {spelled}}}")
    assert [sweep.experiment(cell).ranks for cell in range(len(sweep))] == values


def test_ranges_of_quantities_keep_their_unit(load):
    sweep = load("grid: {model.exchange.size: {log: [1 kB, 1 GB], points: 7}}")
    sizes = [sweep.experiment(cell).model.exchange.size for cell in range(7)]
    assert sizes == pytest.approx([10.0**power for power in range(3, 10)], rel=1e-11)
    sweep = load("grid: {model.exchange.size: {powers of two: [1 KiB, 1 MiB]}}")
    assert [sweep.experiment(cell).model.exchange.size for cell in range(len(sweep))] == [
        2.0**power for power in range(10, 21)
    ]


@pytest.mark.parametrize("kind", ["random", "sobol"])
def test_draws_depend_on_the_seed_alone_and_fill_their_range(load, kind):
    def sizes(seed: int) -> list[float]:
        over = "{model.exchange.size: {log: [1 MB, 16 MB]}, plan.algorithm: [ring, tree]}"
        sweep = load(f"{kind}: {{count: 64, seed: {seed}, over: {over}}}", check=False)
        assert {sweep.experiment(cell).plan.algorithm for cell in range(64)} == {"ring", "tree"}
        return [sweep.experiment(cell).model.exchange.size for cell in range(64)]

    found = sizes(1)
    assert found == sizes(1)
    assert found != sizes(2)
    assert 1e6 <= min(found) < 2e6 < 8e6 < max(found) <= 16e6
    if kind == "sobol":
        # A net: each sixteenth of the octaves has four points.
        octaves = [
            sum(1e6 * 2 ** (k / 4) <= size < 1e6 * 2 ** ((k + 1) / 4) for size in found) for k in range(16)
        ]
        assert octaves == [4] * 16


def test_overrides_reach_the_experiment_and_the_sweep(load):
    sweep = load("grid: {plan.ranks: [8]}", overrides=["run.samples=7", "sweep.samples=3"])
    assert sweep.experiment(0).run.samples == 7
    assert sweep.config.samples == 3


@pytest.mark.parametrize(
    ("lines", "at", "message"),
    [
        (["grid: {plan.rank: [8]}"], "8", "did you mean `ranks`?"),
        (["grid: {plan.ranks: []}"], "[]", "at least one value; got an empty list"),
        (["grid: {}"], "{}", "at least one item"),
        (["seeds: own"], "seeds", "expected one of `grid`, `zip`, `list`, `random` and `sobol`"),
        (["grid: {plan.ranks: [8]}", "zip: {plan.ranks: [4]}"], "plan.ranks: [4", "is an axis already"),
        (["zip: {plan.ranks: [4], run.seed: [1, 2]}"], "[1", "expected 1 values"),
        (["list: [{plan.ranks: 4}, {run.seed: 1}]"], "{run", "the same paths in each, plan.ranks"),
        (["grid: {plan.ranks: [8, 1024]}"], "1024", "the cluster has 8 x 64 = 512"),
        (["grid: {plan.ranks: {powers of two: [8 MB, 16 s]}}"], "{powers", "two quantities of one kind"),
        (["grid: {plan.ranks: {log: [8, 16]}}"], "{log", "expected `points`"),
        (["grid: {plan.ranks: {log: [0, 16], points: 3}}"], "{log", "rising ends above 0"),
        (["grid: {plan.ranks: {logs: [1, 16]}}"], "logs", "did you mean `log`?"),
        (["grid: {plan.ranks: 8}"], "8", "expected a list of values, or a range"),
        (["grid: {plan.ranks: [8]}", "precision: 1 percent"], "1 percent", "such as `1% on p99`"),
        (["sobol: {count: 60, over: {plan.ranks: [8]}}"], "60", "expected a power of 2"),
        (["grid: {plan.ranks: [8]}", "limits: 3"], "limits", "did you mean `limit`?"),
        (["grid: {sweep.limit: [8]}"], "sweep.limit", "a path of the experiment itself"),
    ],
)
def test_what_is_wrong_is_said_at_its_place(load, lines, at, message):
    found = said(load, *lines)
    assert f"sweep.yaml:{FIRST + len(lines) - 1}:{lines[-1].index(at) + 3}: " in found
    assert message in found


def test_a_million_cells_by_accident_are_refused(load):
    found = said(
        load,
        "grid: {run.seed: {linear: [0, 999], points: 1000}, plan.ranks: {linear: [1, 512], points: 512}}",
    )
    assert f"sweep.yaml:{FIRST - 1}:1: " in found
    assert "at most 10,000 cells; got 1,000 x 512 = 512,000. `sweep.limit` raises the limit" in found


def test_cells_that_cannot_be_are_named(load):
    found = said(load, "grid:", "  plan.ranks: [8, 600]", "  plan.algorithm: [ring, tree]")
    assert "(cell 2: plan.ranks=600, plan.algorithm=ring)" in found


def test_a_sweep_of_a_million_cells_is_checked_at_its_ends(load):
    lines = [
        "limit: 2000000",
        "grid:",
        "  plan.ranks: {powers of two: [8, 512]}",
        "  run.seed: {linear: [0, 99999], points: 100000}",
    ]
    assert len(load(*lines, check=False)) == 700_000
    found = said(
        load, *lines[:3], "  plan.algorithm: [ring, rung]", "  run.seed: {linear: [0, 999], points: 1000}"
    )
    assert "did you mean `ring`" in found


def test_an_experiment_without_a_sweep_says_what_to_add():
    with pytest.raises(ConfigError, match="expected a `sweep` block"):
        load_sweep("quickstart")
