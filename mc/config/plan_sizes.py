"""Sizes that follow from a plan and a model, and those near by that would do where they do not fit."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from mc.config.plan import PlanConfig

Path = tuple[str | int, ...]
Found = Iterator[tuple[Path, str]]
FOLDED = frozenset({"tp", "cp", "dp"})
REPLICAS = frozenset({"cp", "dp"})


class ExpertsShape(Protocol):
    """What the checks need to know of experts; `ExpertsConfig` has it."""

    @property
    def count(self) -> int:
        """How many."""
        ...

    @property
    def ffn(self) -> int:
        """Width."""
        ...

    @property
    def shared_ffn(self) -> int:
        """Width of those that every token visits."""
        ...


class Shape(Protocol):
    """What the checks need to know of a model; `TransformerConfig` has it, and what is built of it."""

    @property
    def layers(self) -> int:
        """How many."""
        ...

    @property
    def heads(self) -> int:
        """Of queries."""
        ...

    @property
    def kv_heads(self) -> int:
        """Of keys and values."""
        ...

    @property
    def mla(self) -> object | None:
        """Latent attention, if it has that."""
        ...

    @property
    def ffn(self) -> int | None:
        """Width."""
        ...

    @property
    def experts(self) -> ExpertsShape | None:
        """If it has some."""
        ...


@dataclass(frozen=True)
class Sizes:
    """What the checks go by: the plan, the model, and the sizes that follow."""

    plan: PlanConfig
    model: Shape
    ranks: int
    dp: int

    @property
    def dimensions(self) -> list[tuple[str, int]]:
        """In the order in which ranks are numbered, the innermost first."""
        sizes = {"tp": self.plan.tp, "cp": self.plan.cp, "dp": self.dp, "pp": self.plan.pp}
        return [(name, sizes[name]) for name in self.plan.order]

    @property
    def parts(self) -> int:
        """Of the pipeline."""
        return self.plan.pp * self.plan.chunks

    def at(self, *names: str) -> Path:
        """The first of some keys that the plan has, since one that is left out has no place in a file."""
        given = [name for name in names if name in self.plan.model_fields_set]
        return (given[0] if given else names[0],)

    def fits(self, name: str, values: Iterable[int]) -> list[int]:
        """Those of some values of tp, cp or pp that divide the ranks beside the other two."""
        others = math.prod(getattr(self.plan, each) for each in ("tp", "cp", "pp") if each != name)
        return [each for each in values if self.ranks % (others * each) == 0]


def resolved_dp(plan: PlanConfig, ranks: int) -> int:
    """How many replicas a plan without problems has."""
    return plan.dp or ranks // (plan.tp * plan.cp * plan.pp)


def layer_counts(plan: PlanConfig, layers: int) -> tuple[int, ...]:
    """How many layers each part of the pipeline has, in the order of the model; for a plan without problems."""
    parts = plan.pp * plan.chunks
    asked = plan.layers_per_stage
    if isinstance(asked, tuple):
        return asked
    if plan.balance_ends:
        each = (layers + 2) // parts
        return (each - 1, *(each,) * (parts - 2), each - 1)
    each, rest = divmod(layers, parts)
    # The remainder goes to the middle, since the ends have the embedding and the loss.
    first = (parts - rest) // 2
    return tuple(each + (first <= place < first + rest) for place in range(parts))


def all_divisors(number: int) -> list[int]:
    """In order, 1 and the number among them."""
    small = [each for each in range(1, math.isqrt(number) + 1) if number % each == 0]
    return sorted({*small, *(number // each for each in small)})


def near(fit: list[int], wanted: int) -> str:
    """The same as the end of a message: that they would do."""
    found = nearest(fit, wanted)
    return f"; {found} would do" if found else ""


def nearest(fit: list[int], wanted: int) -> str:
    """The nearest below and above, in words."""
    below = [each for each in fit if each < wanted][-1:]
    above = [each for each in fit if each > wanted][:1]
    return either([f"{each:,}" for each in (*below, *above)])


def either(texts: list[str]) -> str:
    """Some texts with `or` between them."""
    return " or ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else "".join(texts)
