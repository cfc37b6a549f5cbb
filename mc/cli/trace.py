"""`tailstep trace`: one sampled step in time, for Perfetto."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from mc.cli.options import Overrides
from mc.config import load_experiment
from mc.errors import InputError


def trace(
    config: Annotated[
        str, typer.Argument(help="An experiment file, or a shipped one by name.", show_default=False)
    ],
    step: Annotated[
        str,
        typer.Option(
            metavar="QUANTILE", help="The step nearest to this: p50, p99, p99.9, slowest or fastest."
        ),
    ] = "p99",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where to write it (.json); standard output without.", show_default=False
        ),
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Write the sampled step nearest to a quantile as a trace that Perfetto reads (ui.perfetto.dev).

    Compute and communication of each stage, who waits for whom, and the critical path.
    """
    if out is not None:
        _check_out(out)
    experiment = load_experiment(config, overrides or ())
    # The engine brings JAX, which takes seconds: not before the configuration is known to be good.
    from mc.experiment.trace import probability_of
    from mc.experiment.trace import trace as traced
    from mc.report import progress
    from mc.report.chrome_trace import chrome_trace

    probability_of(step)
    with progress("sampling", total=experiment.run.samples) as advance:
        found = traced(experiment, step, advance=advance)
    text = json.dumps(chrome_trace(found), allow_nan=False, separators=(",", ":")) + "\n"
    if out is None:
        print(text, end="")
    else:
        out.write_text(text, encoding="utf-8")
    print(
        f"{step} is {found.quantile_s * 1e3:.4g} ms; step {found.sample} of realisation {found.realisation} takes "
        f"{found.step_s * 1e3:.4g} ms and waits for {found.waited_for}; seed {found.seed}, config {found.config_hash}",
        file=sys.stderr,
    )


def _check_out(out: Path) -> None:
    if out.suffix != ".json":
        raise InputError(f"--out: expected a file that ends in .json; got `{out}`")
    if not out.parent.is_dir():
        raise InputError(f"--out: expected an existing folder; got `{out.parent}`")
