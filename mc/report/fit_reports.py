"""What reports of all fits have in common: figures with their intervals, how descents ended, and both as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from mc.units import Dimension, format_quantity

# Losses beyond are none: likelihoods of 0.
_NOWHERE = 1e299
_OUTCOMES = {
    "flat": "ended where the loss is flat",
    "corner": "ended in a corner, where ways that take equally long meet and no step leads down",
    "unfinished": "ran out of steps (`--steps`)",
}


@dataclass(frozen=True)
class FittedFigure:
    """One parameter.

    Attributes:
        name: its path.
        paths: all places of the configuration that have it.
        dimension: for printing.
        prior: the centre of the prior.
        low: end of the interval.
        value: fitted.
        high: end of the interval.
        known_from: `data`, `prior` or `both`.
    """

    name: str
    paths: tuple[str, ...]
    dimension: Dimension
    prior: float
    low: float
    value: float
    high: float
    known_from: str


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How descents of a fit of any kind ended.

    Attributes:
        losses: of all starts, the least first.
        gradient: largest entry at the best.
        steps: of the best descent.
        outcome: `flat`, `corner` or `unfinished`.
        agreeing: how many starts found the same loss.
    """

    losses: Sequence[float]
    gradient: float
    steps: int
    outcome: str
    agreeing: int

    def how_it_ended(self) -> str:
        """In a sentence, without a full stop."""
        ends = [each for each in self.losses if each < _NOWHERE]
        spread = f"{ends[0]:.3g} to {ends[-1]:.3g}" if len(ends) > 1 else f"{self.losses[0]:.3g}"
        lost = len(self.losses) - len(ends)
        nowhere = f", {lost} where the data are not possible" if lost else ""
        return (
            f"The fit {_OUTCOMES[self.outcome]}: loss {spread} over {len(self.losses)} starts, {self.agreeing} of them at the "
            f"least{nowhere}; gradient {self.gradient:.1e} after {self.steps} steps"
        )


def plain_report(report: Any) -> dict[str, Any]:
    """A report with `figures` as plain data, in SI units."""
    plain = asdict(report)
    for each in plain["figures"]:
        each["dimension"] = each["dimension"].value
    return plain


def figures_from_json(found: Mapping[str, Any]) -> list[FittedFigure]:
    """The figures of what `plain_report` made."""
    return [
        FittedFigure(**{**each, "paths": tuple(each["paths"]), "dimension": Dimension(each["dimension"])})
        for each in found["figures"]
    ]


def figures_table(name: str, level: float, figures: Sequence[FittedFigure]) -> Table:
    """Every figure that moved, with its prior, its interval, and where it is known from."""
    table = Table(box=None, title=f"{name}, calibrated", title_justify="left")
    table.add_column("parameter", overflow="fold")
    for heading in ("prior", "fitted", f"{100 * level:.0f} % interval", "known from"):
        table.add_column(heading, justify="left" if heading == "known from" else "right", no_wrap=True)
    moved = [each for each in figures if each.known_from != "prior"]
    for each in moved:
        low, prior, value, high = (
            format_quantity(number, each.dimension, digits=3)
            for number in (each.low, each.prior, each.value, each.high)
        )
        table.add_row(each.name, str(prior), str(value), f"{low} .. {high}", each.known_from)
    left = len(figures) - len(moved)
    if left:
        table.caption = f"{left} more free figures stay near their priors (`--json` lists them)"
        table.caption_justify = "left"
    return table
