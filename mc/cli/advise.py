"""`tailstep advise`: the best of all plans, or what each figure of the hardware is worth."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from mc.cli.options import Overrides
from mc.config import ExperimentConfig, load_experiment
from mc.errors import InputError

# Steps to draw for the best of a quantile, of a model that computes and then exchanges, and of a transformer.
_STEPS, _FEW_STEPS = 2_000, 100


def advise(
    config: Annotated[
        str, typer.Argument(help="An experiment file, or a shipped one by name.", show_default=False)
    ],
    count: Annotated[int, typer.Option(help="How many of the best plans to show.", min=1, max=100)] = 5,
    samples: Annotated[
        int,
        typer.Option(
            help="Steps to draw: of each of these plans, to rank them by p99, or, without --plans, for elasticities with "
            "noise; 0 for none.",
            min=0,
            max=10**6,
        ),
    ] = 0,
    within: Annotated[
        float,
        typer.Option(
            help="Evaluate also plans that are slower than these by up to this part.", min=0.0, max=10.0
        ),
    ] = 0.0,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw step time against memory (with --samples p99 against the mean as well), worth, or what is spent "
            "(.svg, .png, .pdf).",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="AMOUNT",
            help="Of power or money for all chips, to spend on their figures as well as can be; `now` for what they cost now.",
            show_default=False,
        ),
    ] = None,
    costs: Annotated[
        list[str] | None,
        typer.Option(
            "--cost",
            metavar="NAME=AMOUNT",
            help="With --budget: what a figure costs each chip as it is now, `NAME=AMOUNT ^EXPONENT` if that does not grow in "
            "proportion; repeatable.",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        Literal["mean", "p50", "p99"] | None,
        typer.Option(
            help="With --budget: what of the noisy step is to be least, of --samples steps; the step without noise if left out. "
            "With --plans: `p99`, to find the best of all plans by that.",
            show_default=False,
        ),
    ] = None,
    prices: Annotated[
        list[str] | None,
        typer.Option(
            "--price",
            metavar="NAME=DOLLARS",
            help="With --samples: of a `chip-hour` or a `kWh`, for tokens per dollar; repeatable.",
            show_default=False,
        ),
    ] = None,
    overrides: Overrides = None,
    *,
    plans: Annotated[
        bool, typer.Option("--plans", help="Search all plans for the model on its chips.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of a table.")
    ] = False,
) -> None:
    """Say what to change: by how much each figure of the hardware changes the step, or which plan is best.

    With --samples: of the steps under noise, mean, median and p99, and of tokens per joule and per dollar.
    With --budget: the figures with which the step is fastest for so much power or money.
    With --plans: every plan of the transformer is evaluated, or a bound shows that it cannot be among the best; with --by p99
    those that may be best by that are drawn.
    """
    from mc.report import progress
    from mc.report.advise import (
        plans_json,
        plans_table,
        worth_json,
        worth_table,
    )
    from mc.report.pictures.advise import plot_plans, plot_worth
    from mc.report.pictures.base import check_plot

    if plot is not None:
        check_plot(plot)
    if costs and budget is None:
        raise InputError("--cost: expected a --budget as well")
    if by is not None and budget is None and not plans:
        raise InputError("--by: expected a --budget, or --plans, as well")
    if plans and by not in (None, "p99"):
        raise InputError(f"--by: expected p99 with --plans; got {by}")
    if samples and budget is not None and by is None:
        raise InputError(
            "--samples: expected `--by` with a --budget, which is spent on the step without noise otherwise"
        )
    if plans and budget is not None:
        raise InputError(
            "--budget: expected none with --plans; `tailstep energy --plans` searches plans under a budget"
        )
    if prices and (plans or budget is not None or not samples):
        raise InputError("--price: expected --samples with it, and neither --plans nor --budget")
    experiment = load_experiment(config, overrides or ())
    if budget is not None:
        table, plain = _spend(experiment, budget, costs or (), plot, by, samples)
    elif plans:
        # The engine brings JAX, which takes seconds: not before the configuration is known to be good.
        from mc.advise.rank import Tails, by_tail
        from mc.advise.search import plans_in, search

        tails = None if by is None else Tails(experiment, samples or _FEW_STEPS)
        with progress("searching", total=plans_in(experiment)) as advance:
            found = search(experiment, count, within=within, draw=tails, advance=advance)
        drawn = () if tails is None else tails.ranked()
        if samples and tails is None:
            with progress("sampling", total=samples * len(found.best)) as advance:
                drawn = by_tail(experiment, found.best, samples, advance)
        table, plain = plans_table(found, drawn[:count]), plans_json(found, drawn)
        if plot is not None:
            plot_plans(plot, found, drawn)
    elif samples:
        table, plain = _with_noise(experiment, samples, prices or (), plot)
    else:
        from mc.advise.worth import worth

        # In percent, since how many figures there are shows only once the plan is built.
        with progress("evaluating, %", total=100) as advance:
            worths = worth(experiment, lambda done, of: advance(100 * done // of - 100 * (done - 1) // of))
        table, plain = worth_table(worths), worth_json(worths)
        if plot is not None:
            plot_worth(plot, worths)
    if as_json:
        print(json.dumps(plain, indent=2, allow_nan=False))
        return
    from rich.console import Console

    console = Console()
    # A pipe has no width (rich takes 80); the table needs more.
    console.width = max(console.width, Console(width=500).measure(table).maximum)
    console.print(table)


def _with_noise(
    experiment: ExperimentConfig, samples: int, prices: Sequence[str], plot: Path | None
) -> tuple[Any, dict[str, Any]]:
    """Elasticities with noise: a table, and plain data."""
    from mc.advise.tail import parse_prices, tail_worth
    from mc.report import progress
    from mc.report.pictures.sensitivity import plot_tail
    from mc.report.tail import tail_json, tail_table

    told = parse_prices(prices)
    run = experiment.run.model_copy(update={"samples": samples})
    with progress("differentiating, %", total=100) as advance:
        found = tail_worth(experiment.model_copy(update={"run": run}), samples, told, advance=advance)
    if plot is not None:
        plot_tail(plot, found)
    return tail_table(found), tail_json(found)


def _spend(
    experiment: ExperimentConfig,
    budget: str,
    costs: Sequence[str],
    plot: Path | None,
    by: str | None,
    samples: int,
) -> tuple[Any, dict[str, Any]]:
    """The best figures for a budget: a table, and plain data."""
    from mc.advise.allocate import STEPS
    from mc.advise.budget import amount, cost, spend
    from mc.advise.noisy import Aim
    from mc.report import progress
    from mc.report.budget import budget_json, budget_table
    from mc.report.pictures.budget import plot_budget

    told = [cost(each) for each in costs]
    number = None
    if by is not None:
        usual = _STEPS if experiment.model.transformer is None else _FEW_STEPS
        number = Aim(by, samples or usual)
    given = None if budget == "now" else amount(budget, "--budget")
    with progress("descending", total=STEPS) as advance:
        found = spend(experiment, given, told, number=number, advance=advance)
    if plot is not None:
        plot_budget(plot, found)
    return budget_table(found), budget_json(found)
