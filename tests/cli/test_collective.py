"""`tailstep collective`, as a user meets it: what it prints, and what it refuses without a traceback."""

import json
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = """
name: two tiers
chip: {name: any, peak: {bf16: 1 TFLOP/s}}
tiers:
  - name: node
    link: {bandwidth: 400 GB/s, duplex: each, latency: 1 us}
    fan_out: 8
    reduction_radix: 8
  - name: pod
    link: {bandwidth: 50 GB/s, duplex: each, latency: 10 us}
    fan_out: 32
"""
KEYS = ["algorithm", "protocol", "time_s", "algbw_Bps", "busbw_Bps", "rounds", "bytes_per_rank"]


@pytest.fixture
def tailstep(tmp_path, monkeypatch, invoke):
    """Runs the command in a folder with `two.yaml`; returns (exit code, stdout, stderr)."""
    (tmp_path / "two.yaml").write_text(CLUSTER)
    monkeypatch.chdir(tmp_path)
    return partial(invoke, "collective")


def test_json_of_a_ring(tailstep):
    code, out, err = tailstep(
        "all-reduce",
        "--cluster",
        "two.yaml",
        "--ranks",
        "8",
        "--size",
        "1 GB",
        "--algorithm",
        "ring",
        "--json",
    )
    assert (code, err) == (0, "")
    (row,) = json.loads(out)
    assert list(row) == KEYS
    # 14 rounds of 1 us, and 14/8 GB at 400 GB/s.
    time = 14e-6 + 14 / 8 * 1e9 / 400e9
    assert row["algorithm"] == "ring"
    assert row["protocol"] == "none"
    assert [row[key] for key in KEYS[2:]] == pytest.approx(
        [time, 1e9 / time, 14 / 8 * 1e9 / time, 14, 14 / 8 * 1e9], rel=1e-12
    )
    assert isinstance(row["rounds"], int)


def test_json_lists_all_algorithms_fastest_first(tailstep):
    code, out, _ = tailstep("all-reduce", "--cluster", "two.yaml", "--json")
    rows = json.loads(out)
    assert code == 0
    assert [row["time_s"] for row in rows] == sorted(row["time_s"] for row in rows)
    assert {row["algorithm"] for row in rows} == {
        "ring",
        "bidirectional-ring",
        "recursive-doubling",
        "halving-doubling",
        "tree",
        "binomial",
        "k-ary",
        "hierarchical",
    }
    code, out, _ = tailstep("all-reduce", "--cluster", "two.yaml", "--json", "--algorithm", "auto")
    assert json.loads(out) == rows[:1]


def test_table_names_the_tiers_and_the_winner(tailstep):
    code, out, err = tailstep("all-reduce", "--cluster", "two.yaml", "--ranks", "12", "--size", "64 MiB")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "12 ranks of two tiers span node (8) x pod (2), unevenly"
    assert lines[1].split() == ["all-reduce", "of", "64", "MiB"]
    assert lines[2].split() == ["algorithm", "time", "algbw", "busbw", "rounds", "bytes/rank"]
    assert lines[3].split()[0] == "hierarchical"
    rows = lines[3 : lines.index("")]
    assert [line.split()[-1] for line in rows].count("best") == 1
    assert lines[3].endswith(" best")
    assert any(line.startswith("recursive-doubling ") for line in lines)
    assert max(len(line) for line in lines) <= 80


def test_defaults_are_the_whole_of_a_shipped_cluster(tailstep):
    code, out, err = tailstep("all-gather")
    assert (code, err) == (0, "")
    assert out.startswith(
        "1024 ranks of DGX H100 SuperPOD span node (8) x unit (32) x pod (4)\nall-gather of 64 MiB"
    )


def test_a_barrier_has_no_size(tailstep):
    code, out, _ = tailstep(
        "barrier", "--cluster", "two.yaml", "--ranks", "8", "--algorithm", "dissemination", "--json"
    )
    assert code == 0
    (row,) = json.loads(out)
    assert [row[key] for key in KEYS[2:]] == pytest.approx([3e-6, 0.0, 0.0, 3, 0.0])


def test_one_rank(tailstep):
    code, out, _ = tailstep(
        "reduce", "--cluster", "two.yaml", "--ranks", "1", "--algorithm", "ring", "--json"
    )
    assert code == 0
    assert json.loads(out) == [dict(zip(KEYS, ["ring", "none", 0.0, None, None, 0, 0.0], strict=True))]
    assert tailstep("reduce", "--cluster", "two.yaml", "--ranks", "1")[1].startswith(
        "1 rank of two tiers spans no tier"
    )


def test_protocols_of_the_shipped_cluster(tailstep):
    def rows(*arguments):
        code, out, _ = tailstep(
            "all-reduce", "--ranks", "16", "--size", "8 B", "--algorithm", "tree", "--json", *arguments
        )
        assert code == 0
        return {row["protocol"]: row["time_s"] for row in json.loads(out)}

    # NCCL 2.30.7: 6.8 us, 2 x 7 hops of 0.6 us inside, 2 of 5 us outside; LL128 14, 1.25, 8.5; Simple 8.4, 4, 14.
    found = rows()
    assert list(found) == ["LL", "LL128", "Simple"]
    expected = {"LL": 25.2e-6, "LL128": 48.5e-6, "Simple": 92.4e-6}
    assert found == {name: pytest.approx(time, rel=1e-3) for name, time in expected.items()}
    assert rows("--protocol", "auto") == {"LL": found["LL"]}
    assert rows("--protocol", "Simple") == {"Simple": found["Simple"]}
    # Latency and bandwidth of the links alone: 8 rounds of 2.7 us.
    assert rows("--protocol", "none") == {"none": pytest.approx(8 * 2.7e-6, rel=1e-3)}


def test_the_table_has_a_column_for_protocols_where_there_are_any(tailstep):
    code, out, _ = tailstep("all-reduce", "--ranks", "16")
    assert code == 0
    lines = out.splitlines()
    assert lines[2].split() == ["algorithm", "protocol", "time", "algbw", "busbw", "rounds", "bytes/rank"]
    assert max(len(line) for line in lines) <= 100
    assert "…" not in out


def test_overrides(tailstep):
    # 16 ranks on switches of radix 4, 10 us a hop: two levels up.
    arguments = [
        "--set",
        "tiers.0.fan_out=16",
        "--set",
        "tiers.0.reduction_radix=4",
        "--set",
        "tiers.0.hop_latency=10 us",
    ]
    code, out, _ = tailstep(
        "reduce",
        "--cluster",
        "two.yaml",
        "--ranks",
        "16",
        "--size",
        "1 B",
        "--algorithm",
        "in-network",
        "--json",
        *arguments,
    )
    assert code == 0
    assert json.loads(out)[0]["time_s"] == pytest.approx(20e-6, rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["all-reduc"], "unknown collective `all-reduc`; did you mean `all-reduce`?"),
        (
            ["all-reduce", "--algorithm", "rng"],
            "unknown algorithm `rng` for all-reduce; did you mean `ring`?",
        ),
        (["all-reduce", "--algorithm", "pairwise"], "unknown algorithm `pairwise` for all-reduce"),
        (
            ["all-reduce", "--cluster", "dgx-h100"],
            "dgx-h100: no cluster `dgx-h100` comes with tailstep; did you mean",
        ),
        (["all-reduce", "--cluster", "none.yaml"], "none.yaml"),
        (["all-reduce", "--protocol", "LL12"], "unknown protocol `LL12`; did you mean `LL128`?"),
        (
            ["all-reduce", "--algorithm", "in-network", "--protocol", "LL"],
            "expected a protocol that serves in-network algorithms on every tier of the group; got `LL`, and "
            "`Simple` would do",
        ),
        (
            ["all-reduce", "--cluster", "two.yaml", "--protocol", "LL"],
            "protocol `LL`: expected `auto` or `none`, since no link of two tiers has protocols",
        ),
        (["all-reduce", "--ranks", "0"], "ranks: expected a whole number of at least 1; got 0"),
        (["all-reduce", "--ranks", "-3"], "ranks: expected a whole number of at least 1; got -3"),
        (["all-reduce", "--ranks", "2.5"], "--ranks"),
        (["all-reduce", "--ranks", "1025"], "expected at most 8 x 32 x 4 = 1024"),
        (["all-reduce", "--size", "64"], "--size: expected a size such as 64 MiB"),
        (["all-reduce", "--size", "64 mib"], "--size: "),
        (["all-reduce", "--size", "0 B"], "--size: expected a size above zero, such as 64 MiB; got 0 B"),
        (["all-reduce", "--size", "-1 MB"], "--size: expected a size above zero, such as 64 MiB; got -1 MB"),
        (["barrier", "--size", "1 MB"], "--size: a barrier carries no data; leave `--size` out"),
        (
            ["all-gather", "--ranks", "12", "--algorithm", "hierarchical"],
            "expected a group that fills every unit",
        ),
        (["all-reduce", "--set", "tiers.0.fanout=4"], "fan_out"),
        ([], "Missing argument"),
    ],
)
def test_refusals(arguments, message, tailstep):
    code, out, err = tailstep(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_json_goes_to_stdout_alone(tailstep):
    code, out, err = tailstep("send-recv", "--ranks", "2", "--json")
    assert (code, err) == (0, "")
    assert {row["algorithm"] for row in json.loads(out)} == {"direct"}


JITTER = ("--set", "tiers.1.jitter={family: exponential, mean: 2 us}")


def test_a_distribution_as_json(tailstep):
    code, out, _ = tailstep(
        "all-reduce",
        "--cluster",
        "two.yaml",
        "--ranks",
        "16",
        "--size",
        "1 MB",
        "--distribution",
        "--json",
        *JITTER,
    )
    rows = json.loads(out)
    assert code == 0
    for row in rows:
        time = row["time_s"]
        assert list(time) == ["mean", "p50", "p95", "p99", "p99_9", "ci"]
        assert row["floor_s"] < time["p50"] < time["p95"] < time["p99"] <= time["p99_9"]
        assert list(time["ci"]) == ["level", "mean", "p50", "p95", "p99", "p99_9"]
        low, high = time["ci"]["mean"]
        assert low < time["mean"] < high
        assert row["busbw_Bps"] == pytest.approx(2 * 15 / 16 * 1e6 / time["p50"], rel=1e-6)
        assert row["method"] == "schedule"
    means = [row["time_s"]["mean"] for row in rows]
    assert means == sorted(means)


def test_a_distribution_as_a_table_with_the_objective_and_the_crossovers(tailstep):
    code, out, _ = tailstep(
        "all-reduce",
        "--cluster",
        "two.yaml",
        "--ranks",
        "16",
        "--distribution",
        "--objective",
        "p99",
        *JITTER,
    )
    assert code == 0
    lines = out.splitlines()
    assert lines[2].split() == ["algorithm", "floor", "mean", "p50", "p99", "busbw", "how"]
    assert lines[3].endswith("message by message; best p99")
    assert "Fastest with links idle" in out


def test_links_that_are_not_random_say_so(tailstep):
    _, out, _ = tailstep("barrier", "--cluster", "two.yaml", "--distribution")
    assert "Nothing about these links is random" in out


def test_a_picture(tailstep, tmp_path):
    code, _, err = tailstep("all-reduce", "--cluster", "two.yaml", "--ranks", "16", "--plot", "curves.svg")
    assert code == 0
    assert "drew curves.svg" in err
    picture = (tmp_path / "curves.svg").read_text()
    assert "bus bandwidth" in picture or "<svg" in picture


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--objective", "p99"],
            "--objective p99: expected `--distribution` with it, since idle links have one time",
        ),
        (["--distribution", "--objective", "p90"], "--objective: unknown `p90`; "),
        (["--plot", "curves.gif"], "--plot: expected a file that ends in .svg, .png, .pdf; got curves.gif"),
        (["--plot", "nowhere/curves.svg"], "--plot: there is no folder nowhere"),
        (["--distribution", "--samples", "10"], "200"),
        (["--ranks", "0"], "ranks: expected a whole number of at least 1; got 0"),
    ],
)
def test_mistakes_about_distributions_and_pictures(tailstep, arguments, message):
    code, out, err = tailstep("all-reduce", "--cluster", "two.yaml", *arguments)
    assert (code, out) == (2, "")
    assert message in err
