"""What the program says of published steps, with nothing between: plans, shapes and clusters go through `evaluate`."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from experiments.published.systems import cluster
from experiments.published.tables import Row
from mc.fabric import build_cluster
from mc.parallel import Plan, build_plan
from mc.training import Breakdown, Chip, TabulatedPrices, build_chip, build_prices, evaluate, mean_attention
from mc.transformer import Transformer, build_transformer


@dataclass(frozen=True)
class Case:
    """A row, ready to be evaluated with any chip."""

    row: Row
    plan: Plan
    shape: Transformer
    prices: TabulatedPrices

    def evaluate(self, chip: Chip | None = None) -> Breakdown:
        """The step; on the catalog's chip if no other is given."""
        return evaluate(
            self.plan, self.shape, chip or chip_of(self.row), self.prices, attention=self.attention
        )

    @property
    def attention(self) -> float:
        """Mean work of attention, over that of sequences of one document."""
        packed = self.plan.documents
        return 1.0 if packed is None else _attention(packed.median, packed.sigma, self.plan.sequence_length)


def cases(rows: Iterable[Row]) -> list[Case]:
    """Rows with what they need; clusters and models are built once."""
    return [_case(row) for row in rows]


def chip_of(row: Row) -> Chip:
    """The catalog's chip of a row, with the efficiencies of its generation."""
    return _chip(row.system, row.gpus)


def _case(row: Row) -> Case:
    model = row.config.model
    assert model is not None
    assert model.transformer is not None
    shape = build_transformer(model.transformer)
    return Case(row, build_plan(row.config), shape, _prices(row.system, row.gpus))


_attention = cache(mean_attention)


@cache
def _prices(system: str, gpus: int) -> TabulatedPrices:
    return build_prices(build_cluster(cluster(system, gpus)))


@cache
def _chip(system: str, gpus: int) -> Chip:
    chip = cluster(system, gpus).chip
    assert chip is not None
    return build_chip(chip)
