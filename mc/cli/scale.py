"""`tailstep scale`: the same experiment on more and more chips, and where doubling them stops paying."""

import json
from pathlib import Path
from typing import Annotated

import typer

from mc.cli.options import Overrides
from mc.config import load_experiment
from mc.errors import InputError

_MOST = 1 << 22


def scale(
    config: Annotated[
        str,
        typer.Argument(help="An experiment file, or a shipped one by name.", show_default=False),
    ],
    chips: Annotated[
        str, typer.Option(metavar="SIZES", help="Doublings from..to, or a list such as 8,64,512.")
    ] = "8..131072",
    samples: Annotated[
        int, typer.Option(help="Steps to draw for each size; 0 for the step without noise.", min=0, max=10**6)
    ] = 100,
    worth: Annotated[
        float | None,
        typer.Option(
            help="The factor on throughput that a doubling has to bring.  [default: 1.9, 1.5 with --strong]",
            min=0.0,
            max=2.0,
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw throughput and efficiency against chips (.svg, .png, .pdf).",
            show_default=False,
        ),
    ] = None,
    overrides: Overrides = None,
    *,
    weak: Annotated[
        bool,
        typer.Option(
            "--weak/--strong",
            help="Keep the micro-batches of a replica, or the global batch.",
        ),
    ] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of a table.")
    ] = False,
) -> None:
    """Run an experiment on more and more chips: throughput, efficiency, and where doubling stops paying.

    The plan's tp, cp, pp and ep stay; there are more replicas. Where the cluster is too small its outermost tier
    is enlarged.
    """
    sizes = _sizes(chips)
    from mc.report import progress
    from mc.report.pictures.base import check_plot
    from mc.report.pictures.scale import plot_scale
    from mc.report.scale import scale_json, scale_table

    if plot is not None:
        check_plot(plot)
    experiment = load_experiment(config, overrides or ())
    # The engine brings JAX, which takes seconds: not before the configuration is known to be good.
    from mc.experiment.scale import scale as scale_experiment

    label = "sampling" if samples else "evaluating"
    with progress(label, total=len(sizes) * max(samples, 1)) as advance:
        found = scale_experiment(
            experiment,
            sizes,
            mode="weak" if weak else "strong",
            samples=samples,
            worth=worth,
            advance=advance,
        )
    if as_json:
        print(json.dumps(scale_json(found), indent=2, allow_nan=False))
    else:
        from rich.console import Console

        console = Console()
        table = scale_table(found)
        # A pipe has no width (rich takes 80); the table needs more.
        console.width = max(console.width, Console(width=500).measure(table).minimum)
        console.print(table)
    if plot is not None:
        plot_scale(plot, found)


def _sizes(text: str) -> tuple[int, ...]:
    """The sizes that `--chips` names, rising; raises InputError."""
    first, dots, last = text.partition("..")
    try:
        if dots:
            low, high = int(first), int(last)
            if not 1 <= low <= high:
                raise ValueError
            found = tuple(low << power for power in range((high // low).bit_length()))
        else:
            found = tuple(sorted({int(each) for each in text.split(",")}))
            if found[0] < 1:
                raise ValueError
    except ValueError:
        raise InputError(
            f"--chips: expected doublings such as 8..131072, or a list such as 8,64,512; got `{text}`"
        ) from None
    if found[-1] > _MOST:
        raise InputError(f"--chips: expected at most {_MOST:,} chips; got {found[-1]:,}")
    return found
