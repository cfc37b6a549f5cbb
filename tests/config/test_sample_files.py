"""Empirical delays whose samples are in a CSV file."""

import pytest

from mc.config import EmpiricalDelay, load_cluster, resolved_yaml
from mc.config.sample_files import MAXIMUM_SAMPLES
from mc.document import ConfigError
from mc.document.reader import MAXIMUM_BYTES

# As many as a tail needs beside the two that are looked at.
MORE = [4e-6 + 1e-8 * place for place in range(40)]


def load(text, write):
    write("noisy.yaml", f"extends: cluster.yaml\nnoise:\n  jitter: {{family: empirical, {text}}}\n")
    return load_cluster("noisy.yaml")


def test_samples_come_from_the_file_beside(write):
    write("data/x.csv", "time\n1 us\n\n2.5 us\n" + "".join(f"{each} s\n" for each in MORE))
    jitter = "{family: empirical, file: x.csv, tail_fraction: 50 %}"
    write("data/base.yaml", f"extends: ../cluster.yaml\nnoise: {{jitter: {jitter}}}\n")
    cluster = load_cluster("data/base.yaml")
    assert isinstance(cluster.noise.jitter, EmpiricalDelay)
    assert cluster.noise.jitter.samples == (1e-6, 2.5e-6, *MORE)


def test_column_and_unit(write):
    write("x.csv", "step, time\n" + "".join(f"{step}, {step}0\n" for step in range(1, 43)))
    jitter = load("file: x.csv, column: time, unit: us, tail_fraction: 0.5", write).noise.jitter
    assert isinstance(jitter, EmpiricalDelay)
    assert (jitter.samples[:2], jitter.tail_fraction) == ((1e-5, 2e-5), 0.5)


def test_the_resolved_configuration_stands_alone(write):
    write("x.csv", "time\n" + "".join(f"{each} s\n" for each in MORE))
    cluster = load("file: x.csv, tail_fraction: 0.5", write)
    write("alone/resolved.yaml", resolved_yaml(cluster))
    assert load_cluster("alone/resolved.yaml") == cluster


def test_as_many_samples_as_are_allowed_fit_into_a_resolved_file(write):
    """Judged by a fiftieth of them, each among the longest texts that a float can have."""
    write(
        "x.csv", "time\n" + "".join(f"1.{10**16 + place}e-5 us\n" for place in range(MAXIMUM_SAMPLES // 50))
    )
    assert 50 * len(resolved_yaml(load("file: x.csv", write))) < MAXIMUM_BYTES


REFUSED = [
    (
        "file: nope.csv",
        "noisy.yaml:3:37: noise.jitter.file: nope.csv cannot be read as CSV: No such file or directory",
    ),
    (
        "file: two.csv",
        "noisy.yaml:3:37: noise.jitter.file: expected `column` to choose one of the columns: step, time",
    ),
    (
        "file: two.csv, column: tim",
        "noisy.yaml:3:54: noise.jitter.column: no such column: `tim`; expected one of step, time",
    ),
    (
        "file: bad.csv",
        "bad.csv:3:1: noise.jitter.samples.1: expected a time such as 1.2 us, 3 ms or 10 s; got 'soon'",
    ),
    (
        "file: bare.csv",
        "bare.csv:2:1: noise.jitter.samples.0: expected a time such as 1.2 us, 3 ms or 10 s; got 7.0",
    ),
    (
        "file: empty.csv",
        "noisy.yaml:3:37: noise.jitter.file: expected `column` to choose one of the columns: none",
    ),
    ("file: long.csv", f"noisy.yaml:3:37: noise.jitter.file: expected at most {MAXIMUM_SAMPLES} samples"),
    ("file: binary.csv", "noisy.yaml:3:37: noise.jitter.file: binary.csv cannot be read as CSV"),
    ("file: [x]", "noisy.yaml:3:37: noise.jitter.file: expected the path of a CSV file"),
    (
        "file: x.csv, samples: [1 us, 2 us]",
        "noisy.yaml:3:37: noise.jitter.file: expected either `file` or `samples`; got both",
    ),
    ("tail_fraction: 0.1", "noisy.yaml:3:3: noise.jitter.samples: missing key"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refused_at_its_place(text, message, write, tmp_path):
    write("two.csv", "step,time\n1,2\n")
    write("bad.csv", "time\n1 us\nsoon\n")
    write("bare.csv", "time\n7\n8 us\n")
    write("empty.csv", "")
    write("long.csv", "time\n" + "1 us\n" * (MAXIMUM_SAMPLES + 1))
    (tmp_path / "binary.csv").write_bytes(b"time\n\xff\xfe\n")
    with pytest.raises(ConfigError) as error:
        load(text, write)
    assert str(error.value).startswith(message)
    assert len(error.value.problems) == 1
