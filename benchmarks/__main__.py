"""`python -m benchmarks [--quick] [--json | --markdown] [NAME …]`; exit code 1 if a target is missed."""

import argparse
import dataclasses
import json
import os
import platform
import sys

import jax
from rich.console import Console
from rich.table import Table

from benchmarks import calibration, cold_start, devices, direct, exact, pipelines, plans, schedules, sweeps
from benchmarks.measure import Finding

_BENCHMARKS = {
    "exact": exact.run,
    "direct": direct.run,
    "devices": devices.run,
    "schedules": schedules.run,
    "pipelines": pipelines.run,
    "plans": plans.run,
    "sweeps": sweeps.run,
    "calibration": calibration.run,
    "cold-start": cold_start.run,
}


def main() -> int:
    """Runs the benchmarks that were asked for, all by default."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(_BENCHMARKS)}; all by default"
    )
    parser.add_argument("--quick", action="store_true", help="fewer draws and repeats")
    parser.add_argument("--json", action="store_true", help="a list of findings instead of a table")
    parser.add_argument("--markdown", action="store_true", help="the page docs/benchmarks.md")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in _BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark `{unknown[0]}`; expected {', '.join(_BENCHMARKS)}")

    findings: list[Finding] = []
    for name in options.names or _BENCHMARKS:
        print(f"{name} …", file=sys.stderr)
        findings += _BENCHMARKS[name](quick=options.quick)
    if options.json:
        print(json.dumps([dataclasses.asdict(finding) for finding in findings]))
    elif options.markdown:
        print(_page(findings, quick=options.quick))
    else:
        Console().print(_table(findings))
    return 0 if all(finding.holds for finding in findings) else 1


def _machine() -> str:
    device = jax.devices()[0]
    return f"{platform.machine()}, {os.cpu_count()} cores, {device.device_kind}, jax {jax.__version__}"


def _page(findings: list[Finding], *, quick: bool) -> str:
    """The page of the documentation, as Markdown."""
    command = "python -m benchmarks --quick --markdown" if quick else "python -m benchmarks --markdown"
    head = f"""\
# Benchmarks

Written by `{command} > docs/benchmarks.md`, on {_machine()}.

What is compared runs in turn, and the median of the ratios (`x`) is quoted: absolute times say little about
another machine, or about this one on another day. A target is what the project asks of itself; the command exits
with 1 if one is missed. `python -m benchmarks NAME` runs one group.

| benchmark | measured | target | | how |
|---|---:|---:|---|---|"""
    return "\n".join([head, *map(_row, findings)])


def _row(finding: Finding) -> str:
    verdict = "ok" if finding.holds else "**missed**"
    return f"| {finding.name} | {finding.value:.3g} {finding.unit} | {finding.target} | {verdict} | {finding.note} |"


def _table(findings: list[Finding]) -> Table:
    table = Table(
        "benchmark", "measured", "target", "", "how", title=_machine(), title_justify="left", box=None
    )
    table.columns[1].justify = "right"
    for finding in findings:
        verdict = "[green]ok[/]" if finding.holds else "[red]MISSED[/]"
        table.add_row(
            finding.name, f"{finding.value:.3g} {finding.unit}", finding.target, verdict, finding.note
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
