"""A small experiment in four files, written where the test runs, for tests to break."""

import pytest

FILES = {
    "cluster.yaml": """\
name: little cluster
chip:
  peak: {bf16: 1 PFLOP/s}
tiers:
  - name: node
    link: {bandwidth: 900 GB/s, duplex: sum, latency: 1 us}
    fan_out: 8
  - name: rack
    link: {bandwidth: 400 Gb/s, duplex: each, latency: 2 us}
    fan_out: 32
  - name: hall
    link: {bandwidth: 400 Gb/s, duplex: each, latency: 5 us}
    fan_out: 4
""",
    "model.yaml": """\
name: little model
compute: {flop: 60 TFLOP, format: bf16, efficiency: 40 %}
exchange: {collective: all-reduce, size: 64 MiB}
""",
    "plan.yaml": """\
name: everyone
ranks: all
algorithm: auto
""",
    "experiment.yaml": """\
name: little experiment
cluster: cluster.yaml
model: model.yaml
plan: plan.yaml
run: {samples: 1000, seed: 7}
""",
}


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write the four files into a fresh folder; returns a function that writes more, or rewrites."""
    monkeypatch.chdir(tmp_path)

    def put(name, text, *, replace=None):
        """`text` as a whole; or, with `replace`, the standard file with `replace` changed into `text`."""
        if replace is not None:
            assert FILES[name].count(replace) == 1, f"{replace!r} is not in {name} once"
            text = FILES[name].replace(replace, text)
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    for name, text in FILES.items():
        put(name, text)
    return put
