"""`tailstep explain`, as a user meets it: tables, JSON that adds up, and what a bad placement costs."""

import json
import subprocess
import sys
from itertools import permutations
from pathlib import Path

import pytest

CLUSTER = """
name: two tiers
chip: {name: any, peak: {bf16: 100 TFLOP/s}, memory_size: 16 GB}
tiers:
  - {name: node, link: {bandwidth: 400 GB/s, duplex: each, latency: 1 us}, fan_out: 4}
  - {name: pod, link: {bandwidth: 20 GB/s, duplex: each, latency: 10 us}, fan_out: 8}
"""
MODEL = """
name: little
transformer: {layers: 8, hidden: 1024, heads: 16, kv_heads: 4, ffn: 4096, vocab: 32000}
"""
PLAN = """
tp: 4
pp: 2
zero: 1
global_batch: 16
sequence_length: 2048
"""
EXPERIMENT = "name: experiment\ncluster: two.yaml\nmodel: little.yaml\nplan: plan.yaml\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the files are."""
    folder = tmp_path_factory.mktemp("explain")
    for name, text in (("two", CLUSTER), ("little", MODEL), ("plan", PLAN), ("experiment", EXPERIMENT)):
        (folder / f"{name}.yaml").write_text(text)
    return folder


@pytest.fixture
def tailstep(folder, monkeypatch, invoke):
    """Runs the command in that folder; returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(folder)
    return invoke


def test_json_adds_up(tailstep):
    code, out, err = tailstep("explain", "experiment.yaml", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["plan"]["dp"] == 4
    assert found["plan"]["micro_batches"] == 4
    assert found["plan"]["layers"] == [[4], [4]]

    spans = {each["dimension"]: [tier["name"] for tier in each["tiers"]] for each in found["groups"]}
    assert spans == {"tp": ["node"], "dp": ["pod"], "pp": ["pod"]}
    messages = found["messages"]
    assert found["seconds"] == pytest.approx(sum(each["seconds"] for each in messages))
    assert sum(each["share"] for each in messages) == pytest.approx(1)
    waited = [each["seconds"] for each in messages if each["behind"] is None]
    assert found["waiting_seconds"] == pytest.approx(sum(waited))
    for each in messages:
        assert each["seconds"] == pytest.approx(each["count"] * each["seconds_each"])
        assert each["tier"] == ("node" if each["axes"] == [[4, 1]] else "pod")

    # A stage sends its part of the activations by one message: latency, and bytes at one rank's bandwidth.
    (sent,) = [each for each in messages if each["dimension"] == "pp" and each["what"] == "activations"]
    assert sent["bytes"] == 2048 * 1024 * 2 / 4
    assert sent["seconds_each"] == pytest.approx(10e-6 + sent["bytes"] / 20e9, rel=2e-3)
    # An all-gather among four ranks cannot be faster than 3/4 of the buffer at full bandwidth.
    gathered = next(each for each in messages if each["segment"] == "mlp" and each["what"] == "inputs")
    assert gathered["seconds_each"] >= 0.75 * gathered["bytes"] / 400e9

    memory = found["memory_bytes"]
    parts = ("weights", "gradients", "optimizer", "activations", "buffers")
    assert memory["total"] == pytest.approx(sum(memory[name] for name in parts))
    assert memory["available"] == pytest.approx(0.98 * 16e9)
    assert memory["problem"] is None

    orders = found["orders"]
    assert [each["seconds"] for each in orders] == sorted(each["seconds"] for each in orders)
    assert {tuple(each["order"]) for each in orders} == set(permutations(("tp", "dp", "pp")))
    given = next(each for each in orders if each["order"] == ["tp", "dp", "pp"])
    assert given["seconds"] == pytest.approx(found["seconds"])
    # Tensor parallelism across nodes sends per layer what pipelines send per stage, over the slow links.
    outermost = found["outermost"]
    assert outermost["pp"] == given
    assert outermost["tp"]["order"] == ["dp", "pp", "tp"]
    assert outermost["tp"]["waiting_seconds"] > 3 * given["waiting_seconds"]
    assert orders[0]["order"][0] == "tp"
    assert orders[-1]["order"][0] != "tp"


def test_tables(tailstep):
    code, out, err = tailstep("explain", "experiment.yaml", "--set", "plan.pp=1", "--set", "plan.zero=0")
    assert (code, err) == (0, "")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[:2] == ["experiment", "little: 187.2 million parameters"]
    assert "32,768 tokens a step: 16 sequences of 2,048, 2 micro-batches of 1 on each of 8 replicas" in lines
    assert "tp node (4) 4 1" in lines
    assert "dp pod (8) 8 4" in lines
    assert any(
        line.startswith("tp mlp: kept inputs (backward) all-gather 4.19 MB 16 4 node") for line in lines
    )
    assert any(
        line.startswith("dp gradients all-reduce") and line.endswith("behind layers") for line in lines
    )
    assert any(line.startswith("of that, computing waits for") for line in lines)
    assert any(line.startswith("tp, dp") and line.endswith("this plan, cheapest") for line in lines)
    assert any(line.startswith("dp, tp") and "tp outermost" in line and "times" in line for line in lines)
    assert "there is, less 2 % 15.7 GB" in lines


def test_what_does_not_fit_is_explained_too(tailstep):
    code, out, err = tailstep("explain", "experiment.yaml", "--set", "cluster.chip.memory_size=300 MB")
    assert (code, err) == (0, "")
    assert " too much; any of these would fit: " in out


def test_other_models_are_refused(tailstep):
    code, out, err = tailstep("explain", "quickstart")
    assert (code, out) == (2, "")
    assert err == "expected a model with a `transformer`; this one has `compute` and `exchange`\n"


def test_validate_refuses_what_cannot_be_and_what_does_not_fit(tailstep):
    assert tailstep("validate", "experiment.yaml")[:2] == (0, "experiment.yaml: ok (experiment)\n")
    code, _, err = tailstep("validate", "experiment.yaml", "--set", "plan.tp=3")
    assert code == 2
    assert "plan.tp: tp 3 x cp 1 x pp 2 = 6 does not divide the 32 ranks of the cluster" in err
    assert "plan.tp: expected a divisor of the 16 heads" in err
    code, _, err = tailstep("validate", "experiment.yaml", "--set", "cluster.chip.memory_size=300 MB")
    assert code == 2
    assert err.startswith("experiment.yaml: plan: ")
    assert "too much" in err


def test_validating_a_plan_does_not_import_jax(folder):
    program = (
        "import sys\nfrom mc.cli.app import app\n"
        "try:\n    app(['validate', 'experiment.yaml', '--set', 'plan.tp=3'])\n"
        "except SystemExit as ended:\n    print(ended.code, 'jax' in sys.modules)"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={"PYTHONPATH": str(root), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "2 False\n", done.stderr


@pytest.mark.parametrize("name", ["llama3-405b-16k", "megatron-1t-3072", "deepseek-v3"])
def test_shipped_plans_can_be(tailstep, folder, name):
    model = name.removesuffix("-16k").removesuffix("-3072")
    (folder / "shipped.yaml").write_text(
        f"name: shipped\ncluster: fabric-100k\nmodel: {model}\nplan: {name}\n"
    )
    assert tailstep("validate", "shipped.yaml")[0] == 0
