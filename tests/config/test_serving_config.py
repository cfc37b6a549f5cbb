"""Serving blocks: what is refused, where, and in which words; and that a block reloads as it was understood."""

import pytest
from ruamel.yaml import YAML

from mc.config import config_hash, load_experiment, resolved_yaml
from mc.document import ConfigError
from mc.errors import InputError
from mc.experiment.build_serving import server_of

TEXT = """\
name: test
cluster: dgx-h100-superpod
model: {model}
serving:
  prompt: 2048
  output: 512
  batch: 64
  {more}
"""


@pytest.fixture
def write(tmp_path):
    def written(more="tp: 8", model="llama3-70b", end=""):
        path = tmp_path / "serve.yaml"
        path.write_text(TEXT.format(model=model, more=more) + end, encoding="utf-8")
        return path

    return written


DENSE = [
    ("tp: 7", "serve.yaml:8:7: serving.tp: expected a divisor of the 64 heads; got 7"),
    ("dp: 2", "serve.yaml:8:7: serving.dp: expected 1, since replicas without experts share nothing; got 2"),
    ("ep: 2", "serve.yaml:8:7: serving.ep: expected 1, since the model has no experts; got 2"),
    ("pp: 81", "serving.pp: expected at most the 80 layers; got 81"),
    ("pp: 5", "serving.batch: expected a multiple of dp x pp = 5, so that all ranks have as many; got 64"),
    ("rate: 3", "serving.rate: expected a frequency such as"),
    ("tp_size: 8", "serving.tp_size: unknown key"),
    ("redundant_experts: 2", "serving.redundant_experts: expected 0, since the model has no experts; got 2"),
    (
        "prefill: {tier: rack}",
        "serving.prefill.tier: expected a tier of the cluster (node, unit, pod); got `rack`",
    ),
    ("prefill: {tp: 3}", "serving.prefill.tp: expected a divisor of the 64 heads; got 3"),
    ("prefill: {replicas: 2000}", "expected at most the 1024 chips of the cluster; got 2001 ranks"),
    ("speculation: {width: 2}", "serving.speculation.acceptance: missing key"),
    ("protocol: all", "serving.protocol: expected one protocol, `auto` or `none`; got `all`"),
    ("formats: {math: fp4}", "serving.formats.math: H100 does not offer fp4"),
]


@pytest.mark.parametrize(("more", "message"), DENSE)
def test_what_is_refused(write, more, message):
    with pytest.raises(ConfigError) as error:
        load_experiment(write(more))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("dp: 12", "serving.dp: expected a divisor of the 256 experts, or an `ep`; got tp x dp = 12"),
        ("{dp: 8, ep: 3}", "expected a divisor of tp x dp = 8 and of the 256 experts; got 3"),
        ("{dp: 8, ep: 1}", "serving.ep: expected more than 1, since 8 groups share the experts; got 1"),
        ("{dp: 9, redundant_experts: 4}", "got tp x dp = 9"),
    ],
)
def test_what_is_refused_of_experts(write, more, message):
    lines = more.strip("{}").replace(", ", "\n  ")
    with pytest.raises(ConfigError) as error:
        load_experiment(write(lines, "deepseek-v3"), ["serving.batch=largest"])
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("plan: {tp: 8}\n", "serve.yaml:9:7: plan: expected none, since `serving` says who does what"),
        ("run: {method: grid}\n", "run.method: expected `exact` or `direct` with `serving`; got `grid`"),
        (
            "failures: {mtbf_per_chip: 9 h, restart: 1 s, checkpoint_write: 1 s}\n",
            "failures: expected none with `serving`",
        ),
    ],
)
def test_what_does_not_go_with_serving(write, end, message):
    with pytest.raises(ConfigError) as error:
        load_experiment(write(end=end))
    assert message in str(error.value)


def test_a_model_without_layers_cannot_serve(write):
    with pytest.raises(ConfigError, match="serving: expected a model with a `transformer`"):
        load_experiment(write(model="barrier"))


def test_a_plan_is_due_without_serving(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("name: x\ncluster: dgx-h100-superpod\nmodel: llama3-8b\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"x.yaml:1:1: plan: missing key; `plan` has to be given"):
        load_experiment(path)


def test_what_was_understood_reloads(write, tmp_path):
    config = load_experiment(write("rate: 3 1/s\n  prefill: {tp: 4}"))
    text = resolved_yaml(config)
    assert "plan" not in YAML(typ="safe").load(text)
    again = tmp_path / "again.yaml"
    again.write_text(text, encoding="utf-8")
    assert load_experiment(again) == config
    assert config_hash(load_experiment(again)) == config_hash(config)


def test_what_does_not_fit_into_memory_says_what_would(write):
    with pytest.raises(InputError, match=r"serving: expected weights that fit into 72 GB of a chip; got 141"):
        assert server_of(load_experiment(write("tp: 1"))).batch
    text = r"serving.batch: expected requests that fit into 72 GB .* that is \d+ on each rank; got 4000"
    with pytest.raises(InputError, match=text):
        assert server_of(load_experiment(write("tp: 8"), ["serving.batch=4000"])).batch
    most = server_of(load_experiment(write("tp: 8"), ["serving.batch=largest"])).batch
    assert server_of(load_experiment(write("tp: 8"), [f"serving.batch={most}"])).batch == most
    with pytest.raises(InputError, match="expected requests that fit"):
        assert server_of(load_experiment(write("tp: 8"), [f"serving.batch={most + 1}"])).batch
