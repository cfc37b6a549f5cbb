"""Computes the claims, prints them, and says loudly which ones do not hold."""

import argparse
import json
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from experiments.claims import collective, congestion, energy, optics, ridge, slowest, step, tiers
from experiments.claims.claim import Claim, Group

GROUPS = (
    Group("Tiers", tiers.claims),
    Group("Faster chips", step.claims),
    Group("The slowest rank", slowest.claims),
    Group("Collectives", collective.claims),
    Group("Congestion that grows with the cluster", congestion.claims),
    Group("Ridge points", ridge.claims),
    Group("Copper and optics", optics.claims),
    Group("Power", energy.claims),
)
SAMPLES, QUICK_SAMPLES = 1 << 16, 1 << 13
Sections = dict[str, list[Claim]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code, 1 where a claim does not hold."""
    parser = argparse.ArgumentParser(prog="python -m experiments.claims", description="Recompute the claims.")
    parser.add_argument("--quick", action="store_true", help="draw fewer samples")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print a list of claims as JSON")
    form.add_argument("--markdown", action="store_true", help="print the table of docs/claims.md")
    options = parser.parse_args(arguments)
    sections = {group.title: group.compute(QUICK_SAMPLES if options.quick else SAMPLES) for group in GROUPS}
    every = [claim for claims in sections.values() for claim in claims]
    if options.json:
        print(json.dumps([_row(claim) for claim in every], indent=2))
    elif options.markdown:
        print(markdown(sections))
    else:
        Console(width=130).print(table(sections))
    failed = [claim for claim in every if not claim.holds]
    if failed:
        print(f"CLAIMS FAILED: {len(failed)} of {len(every)}", file=sys.stderr)
        for claim in failed:
            wanted = f"expected {claim.expected:.10g} within {claim.tolerance:.3g}"
            print(f"  {claim.claim}: {wanted}; got {claim.computed:.10g}", file=sys.stderr)
    return 1 if failed else 0


def table(sections: Sections) -> Table:
    """One line per claim, for people."""
    shown = Table(title="Claims, recomputed")
    shown.add_column("claim", overflow="fold")
    for heading in ("expected", "computed", "tolerance"):
        shown.add_column(heading, justify="right")
    shown.add_column("holds")
    for title, claims in sections.items():
        shown.add_section()
        shown.add_row(f"[bold]{title}[/bold]")
        for claim in claims:
            verdict = "ok" if claim.holds else "[bold red]FAILS[/bold red]"
            shown.add_row(claim.claim, *_figures(claim), verdict)
    return shown


def markdown(sections: Sections) -> str:
    """The same for the documentation."""
    lines = ["| claim | expected | computed | tolerance | holds |", "|---|---:|---:|---:|---|"]
    for title, claims in sections.items():
        lines.append(f"| **{title}** | | | | |")
        for claim in claims:
            cells = (claim.claim, *_figures(claim), "ok" if claim.holds else "FAILS")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _figures(claim: Claim) -> tuple[str, str, str]:
    tolerance = "exact" if claim.tolerance == 0 else f"{claim.tolerance:.2g}"
    return f"{claim.expected:,.7g}", f"{claim.computed:,.7g}", tolerance


def _row(claim: Claim) -> dict[str, str | float | bool]:
    return {
        "claim": claim.claim,
        "expected": claim.expected,
        "computed": claim.computed,
        "tolerance": claim.tolerance,
        "holds": claim.holds,
    }


if __name__ == "__main__":
    sys.exit(main())
