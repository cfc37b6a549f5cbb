"""The `sweep:` block of an experiment file: which values to go through, and how hard to look at each.

Every block (`grid` axis by axis, `zip`, `list`, `random`, `sobol`) is a list of points; the cells of a sweep are their
product, the first block slowest. What the values mean is up to the experiment: this file knows their notation alone.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from mc.document import Document, Node, StrictModel, located, validate

KEY = "sweep"
# Quantities that `precision` may name, and objectives may be.
STATISTICS = ("mean", "p50", "p95", "p99", "p99_9")
_PRECISION = re.compile(r"^\s*([0-9.]+)\s*%\s+on\s+(mean|p50|p95|p99|p99_9)\s*$")

Ends = Annotated[list[Any], Field(min_length=2, max_length=2)]
Paths = Annotated[dict[str, Any], Field(min_length=1)]


class RangeConfig(StrictModel):
    """Numbers from here to there; quantities keep their unit.

    Attributes:
        powers_of_two: every power of 2 times the first, up to the last.
        linear: first and last of evenly spaced numbers.
        log: first and last of numbers with one ratio between neighbours.
        points: how many, for `linear` and `log` in a grid or a zip.
        whole: whether they are rounded to whole numbers.
    """

    powers_of_two: Ends | None = Field(default=None, alias="powers of two")
    linear: Ends | None = None
    log: Ends | None = None
    points: Annotated[int, Field(ge=1, le=10**7)] | None = None
    whole: bool = False

    @model_validator(mode="after")
    def _one_kind(self) -> "RangeConfig":
        given = [self.powers_of_two, self.linear, self.log]
        if sum(each is not None for each in given) != 1:
            text = "expected one of `powers of two`, `linear` and `log`"
            raise located("RangeConfig", [((), text)])
        return self


class DrawsConfig(StrictModel):
    """Points drawn at random.

    Attributes:
        count: how many; a power of 2 for Sobol points, which are even only then.
        seed: of the points, not of the samples.
        over: path to a range without `points`, or to a list to choose from.
    """

    count: Annotated[int, Field(ge=1, le=2**24)]
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    over: Paths


class SweepConfig(StrictModel):
    """Which cells there are.

    Attributes:
        grid: path to values; every combination.
        zip: paths to values, which go together.
        cells: points one by one, each with the same paths; `list` in the file.
        random: independent draws.
        sobol: scrambled Sobol points, which fill the space more evenly.
        limit: more cells than this are a mistake.
        samples: steps to draw for each cell; 0 for the step without noise; those of `run` if left out.
        precision: such as `1% on p99`: half the width of the confidence interval, relative; steps are added until it
            is reached.
        budget: most steps to draw for one cell on the way there.
        impossible: what becomes of cells that cannot be, such as plans whose sizes do not suit each other: `refuse` the
            sweep, or `list` them as cells that failed.
        seeds: `common` random numbers for all cells, which makes differences between them sharp, or their `own`.
    """

    grid: Paths | None = None
    zip: Paths | None = None
    cells: Annotated[list[Paths], Field(min_length=1)] | None = Field(default=None, alias="list")
    random: DrawsConfig | None = None
    sobol: DrawsConfig | None = None
    limit: Annotated[int, Field(ge=1, le=10**9)] = 10_000
    samples: Annotated[int, Field(ge=0, le=50_000_000)] | None = None
    precision: str | None = None
    budget: Annotated[int, Field(ge=1, le=50_000_000)] = 1_000_000
    impossible: Literal["refuse", "list"] = "refuse"
    seeds: Literal["common", "own"] = "common"

    @model_validator(mode="after")
    def _consistent(self) -> "SweepConfig":
        found: list[tuple[tuple[str | int, ...], str]] = []
        if all(each is None for each in (self.grid, self.zip, self.cells, self.random, self.sobol)):
            found.append(((), "expected one of `grid`, `zip`, `list`, `random` and `sobol`; got none"))
        if self.precision is not None:
            match = _PRECISION.match(self.precision)
            if match is None or not 0 < float(match[1]) < 100:
                text = f"expected such as `1% on p99`, of {', '.join(STATISTICS)}; got {self.precision!r}"
                found.append((("precision",), text))
            elif self.samples == 0:
                found.append((("precision",), "expected none without noise (`samples: 0`)"))
        if self.sobol is not None and self.sobol.count & (self.sobol.count - 1):
            text = f"expected a power of 2, since Sobol points are even only then; got {self.sobol.count}"
            found.append((("sobol", "count"), text))
        if found:
            raise located("SweepConfig", found)
        return self

    @property
    def target(self) -> tuple[float, str] | None:
        """The relative precision that is asked for, and of which statistic."""
        if self.precision is None:
            return None
        match = _PRECISION.match(self.precision)
        assert match is not None
        return float(match[1]) / 100, match[2]


class _WithSweep(StrictModel):
    sweep: SweepConfig


def split_sweep(document: Document) -> tuple[Document, Node | None, SweepConfig | None]:
    """An experiment file without its `sweep` block, and the block.

    Raises:
        ConfigError: the block cannot be.
    """
    entries = dict(document.root.mapping or {})
    node = entries.pop(KEY, None)
    if node is None:
        return document, None, None
    root = Node({KEY: node}, node.position, node.key_position)
    config = validate(Document(document.file, root), _WithSweep).sweep
    rest = Node(entries, document.root.position, document.root.key_position)
    return Document(document.file, rest), node, config
