"""The printed report: every number that it owes, checked by hand; nothing cut, nothing interpreted."""

import dataclasses
import io
import re
import shlex

import numpy as np
import pytest
from rich.console import Console

from mc.estimate import estimate, slowest_rank_cost, waterfall
from mc.report import run_table
from mc.report.command import CommandLine
from tests.results.example import example_result


def printed(result, width=100, encoding="utf-8"):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    Console(file=stream, width=width, color_system=None).print(run_table(result))
    stream.flush()
    return stream.buffer.getvalue().decode(encoding)


def constant_result():
    """100 µs compute, 25 µs wait, 25 µs transfer: a sixth of 64 chips is lost; 1.25 times the ideal."""
    parts = {
        name: np.full((2, 50), time)
        for name, time in (("compute", 1e-4), ("straggler_wait", 2.5e-5), ("bandwidth", 2.5e-5))
    }
    samples = np.full((2, 50), 1.5e-4)
    return example_result(
        samples=samples,
        parts=parts,
        estimates=estimate(samples),
        waterfall=waterfall(samples, parts),
        slowest_rank=slowest_rank_cost(samples, parts["straggler_wait"], ranks=64),
        ideal_step_time=1.2e-4,
    )


def lines_of(text):
    return [re.sub(r" {2,}", "  ", line.strip()) for line in text.splitlines()]


def test_a_constant_step_by_hand():
    lines = lines_of(printed(constant_result()))
    assert "mean  150.0  exact" in lines
    # 100 samples bound neither p99.9 nor p99 from above, constant or not.
    assert "p99.9  150.0  150.0 .. unbounded" in lines
    assert any(line.startswith("compute  100.0  exact  66.7 %  █") for line in lines)
    assert any(line.startswith("straggler wait  25.0  exact  16.7 %  █") for line in lines)
    assert "sum  150.0  100.0 %" in lines
    assert any(
        "costs 25.0 us a step (16.7 %): 10.7 of 64 chip-hours an hour are spent waiting" in line
        for line in lines
    )
    assert any("would take 120 us a step: the speed-up would be 1.25x" in line for line in lines)
    assert any("100 steps in 2 realisations, method exact, 200 a second" in line for line in lines)


@pytest.mark.parametrize(
    "fragment",
    [
        "example",
        "Two tiers, exponential jitter.",
        "Pod of 64: 64 ranks",
        "node: 8 x chip, 450 GB/s each way, 1 us",
        "rail: 8 x node, 50 GB/s each way, 5 us",
        "95 % interval",
        "p50 (median)",
        "seed           7",
        "0123456789abcdef",
        "tailstep run example.yaml --set 'run.seed=7'",
        "1.75 s",
    ],
)
def test_says(fragment):
    assert fragment in printed(example_result())


def test_intervals_bracket_their_values_as_printed():
    for line in printed(example_result()).splitlines():
        numbers = re.search(r"([\d.,]+) +([\d.,]+) \.\. ([\d.,]+|unbounded)", line)
        if numbers:
            value, low, high = (
                float(n.replace(",", "").replace("unbounded", "inf")) for n in numbers.groups()
            )
            assert low <= value <= high
            assert low < high


def test_names_are_not_markup():
    text = printed(
        example_result(name="[red]a[/]", description="[b]", cluster_name="[/nope]", tiers=("[link=x]t",))
    )
    for name in ("[red]a[/]", "[b]", "[/nope]: 64 ranks", "[link=x]t"):
        assert name in text


def test_plain_ascii_where_the_terminal_has_no_more():
    text = printed(constant_result(), encoding="ascii")
    assert "66.7 %  ###################" in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_command_can_be_copied(width):
    command = (
        "tailstep run "
        + " ".join(f"--set 'cluster.tiers.{n}.link.latency={n} us'" for n in range(6))
        + ' "a  b" c\\ d'
    )
    text = printed(example_result(command=command), width=width)
    shown = text[text.index("run again") + len("run again") :].replace("\\\n", " ")
    assert shlex.split(shown) == shlex.split(command)


def test_command_lines_fit():
    lines = CommandLine("tailstep run a.yaml --set x=1 --set y=2").lines(24)
    assert lines == ["tailstep run a.yaml \\", "  --set x=1 --set y=2"]


def test_one_rank_one_realisation_is_singular():
    result = dataclasses.replace(example_result(realisations=1), ranks=1)
    text = printed(result)
    assert "Pod of 64: 1 rank\n" in text.replace(" " * 2, "").replace(" \n", "\n")
    assert "in 1 realisation," in text
