"""`tailstep calibrate`: from a log to a cluster file, and from there to a forecast."""

import json

import pytest
from typer.testing import CliRunner

from mc.cli.app import app
from mc.config import load_cluster
from mc.results.calibration import read_calibration

CLUSTER = """
name: small
chip: {peak: {}}
tiers:
  - {name: node, fan_out: 4, link: {bandwidth: 200 GB/s, duplex: each, latency: 1 us}}
  - {name: net, fan_out: 4, link: {bandwidth: 20 GB/s, duplex: each, latency: 5 us}}
"""


HEADING = """\
# size count type redop root time algbw busbw #wrong time algbw busbw #wrong
# (B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)
"""


def log():
    # A ring over 16 ranks: 30 rounds of 8 us and 15/8 of the bytes at 10 GB/s.
    text = "## op: all_reduce\n## ranks: 16\n## nodes: 4\n" + HEADING
    for size in (2**k for k in range(6, 28, 2)):
        time = 30 * 8 + 1.875 * size / 10e3
        algbw = size / time / 1e3
        placed = f"{time:.2f} {algbw:.6g} {1.875 * algbw:.6g} 0"
        text += f"{size} {size // 4} float sum -1 {placed} {placed}\n"
    return text


@pytest.fixture
def files(tmp_path):
    (tmp_path / "small.yaml").write_text(CLUSTER)
    (tmp_path / "nccl.log").write_text(log())
    return tmp_path


def test_a_log_becomes_a_cluster_in_one_command_and_a_forecast_in_the_next(files):
    out, picture = files / "fitted.yaml", files / "fit.svg"
    words = ["calibrate", "--cluster", str(files / "small.yaml"), "--data", str(files / "nccl.log")]
    words += ["--algorithm", "ring", "--starts", "2", "--out", str(out), "--plot", str(picture), "--json"]
    words += ["--results", str(files / "kept")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    kept = read_calibration(files / "kept")
    assert kept["calibration"] == found
    assert kept["config"] == out.read_text(encoding="utf-8")
    # A ring's bus bandwidth over its algorithm bandwidth.
    assert [each["bus_factor"] for each in found["curves"]] == [1.875]
    assert found["outcome"] == "flat"
    assert found["held_out"]["median"] < 0.01
    net = load_cluster(out).tiers[1].link
    assert net.latency == pytest.approx(8e-6, rel=0.02)
    assert net.bandwidth == pytest.approx(10e9, rel=0.02)
    assert picture.read_text().startswith("<?xml")
    words = [
        "collective",
        "all-reduce",
        "--cluster",
        str(out),
        "--size",
        "16 MiB",
        "--algorithm",
        "ring",
        "--json",
    ]
    (line,) = json.loads(CliRunner().invoke(app, words).stdout)
    assert line["time_s"] == pytest.approx(30 * 8e-6 + 1.875 * 2**24 / 10e9, rel=0.02)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--free", "tiers.nod.link.latency"], "unknown item `nod`"),
        (["--out", "fitted.txt"], "--out: expected a file that ends in .yaml; got fitted.txt"),
        (["--algorithm", "rings"], "all-reduce: expected an algorithm that these ranks can run"),
    ],
)
def test_mistakes(files, extra, message):
    words = ["calibrate", "--cluster", str(files / "small.yaml"), "--data", str(files / "nccl.log"), *extra]
    done = CliRunner().invoke(app, words)
    assert done.exit_code != 0
    assert message in str(done.exception)


def test_what_a_rule_holds_out_is_scored_and_not_fitted(files):
    # Above 1 MiB the log is spoilt: who fitted it would not have the bandwidth of the rest.
    text = ""
    for line in log().splitlines(keepends=True):
        words = line.split()
        if words[0].isdigit() and int(words[0]) > 2**20:
            words[5], words[9] = (f"{2 * float(words[place]):.2f}" for place in (5, 9))
            words[6:8] = words[10:12] = [f"{float(words[place]) / 2:.6g}" for place in (6, 7)]
            line = " ".join(words) + "\n"
        text += line
    (files / "nccl.log").write_text(text)
    words = ["calibrate", "--cluster", str(files / "small.yaml"), "--data", str(files / "nccl.log")]
    words += ["--algorithm", "ring", "--starts", "1", "--hold-out", "size > 1 MiB", "--json"]
    words += ["--free", "tiers.net.link.bandwidth", "--free", "tiers.net.link.latency"]
    found = json.loads(CliRunner().invoke(app, words).stdout)
    assert found["figures"][0]["value"] == pytest.approx(10e9, rel=0.03)
    score = found["held_out"]
    # Predicted in half the time.
    assert score["rule"] == "size > 1 MiB"
    assert score["median"] == pytest.approx(0.5, abs=0.02)
    assert score["line_median"] == pytest.approx(0.5, abs=0.02)
    assert score["rows"] == sum(each["rows"] for each in score["decades"]) == 3
    assert [each["held_out"] for each in found["curves"]] == [False, True]


def test_a_file_says_what_is_fitted_and_what_was_believed(files):
    (files / "fit.yaml").write_text(
        "cluster: small.yaml\n"
        "calibration:\n"
        "  data: [nccl.log]\n"
        "  algorithms: [ring]\n"
        "  starts: 1\n"
        "  free:\n"
        "    - tiers.net.link.bandwidth\n"
        "    - {path: tiers.net.link.latency, prior: 4 us, spread: 0.5}\n"
    )
    done = CliRunner().invoke(app, ["calibrate", str(files / "fit.yaml"), "--json"])
    assert done.exit_code == 0, done.output
    bandwidth, latency = json.loads(done.stdout)["figures"]
    assert bandwidth["value"] == pytest.approx(10e9, rel=0.02)
    assert latency["value"] == pytest.approx(8e-6, rel=0.02)
    assert latency["prior"] == 4e-6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "cluster: small.yaml\ncalibration: {data: [nccl.log], fre: []}\n",
            "fit.yaml:2:33: calibration.fre: unknown key",
        ),
        ("cluster: smal.yaml\ncalibration: {data: [nccl.log]}\n", "fit.yaml:1:10: no such file: `smal.yaml`"),
        (
            "cluster: small.yaml\ncalibration: {data: [nccl.log], free: [{path: tiers.net.link.latency, prior: 4 GB}]}\n",
            "4 GB",
        ),
    ],
)
def test_mistakes_in_a_file(files, text, message):
    (files / "fit.yaml").write_text(text)
    done = CliRunner().invoke(app, ["calibrate", str(files / "fit.yaml")])
    assert message in str(done.exception)


def test_nothing_to_fit():
    done = CliRunner().invoke(app, ["calibrate", "--cluster", "dgx-h100-superpod"])
    assert str(done.exception) == "expected --data, or a file with a `calibration` block; got neither"
