"""Transformers without noise: training and serving, one cell at a time, or many plans' steps on arrays of numbers.

Cells of training whose clusters differ in numbers of links and chips alone share a plan, its pipeline and the messages: prices
and operations are arrays over cells (`mc.training.evaluate_many`). A cell by itself reads its prices from tables (within 0.2 %),
as `tailstep run` does; arrays have them as they are.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from mc.config import ExperimentConfig
from mc.estimate import Estimate
from mc.experiment.build_serving import server_of
from mc.experiment.quiet_step import build_quiet
from mc.experiment.training_summary import summary_of
from mc.fabric import build_cluster
from mc.parallel import Group as Ranks
from mc.sweep.leaves import Group, Path, put
from mc.sweep.one import quiet_metrics
from mc.sweep.quiet import filled
from mc.sweep.table import Row
from mc.sweep.transformers import of_training
from mc.training import ClusterPrices, ManyPrices, Price, build_chip, build_prices, evaluate_many
from mc.training.arithmetic import Number

# Cells below which what arrays need to be compiled is not earned back.
FEW = 8
_LINK, _CHIP = ("bandwidth", "latency"), ("peak", "memory_bandwidth", "efficiency")


def quiet_transformer(config: ExperimentConfig, cell: int) -> Row:
    """A step of training, or of decoding.

    Raises:
        InputError: it cannot be, or does not fit into memory.
    """
    if config.serving is not None:
        return _serving(config, cell)
    found = build_quiet(config)
    mean = float(found.breakdown.step)
    parts = {name: float(part) for name, part in found.breakdown.parts.items()}
    row = Row(cell, config.ranks, metrics=quiet_metrics(mean, parts))
    return row.beside(of_training(summary_of(config, found, Estimate(mean, mean, mean)), config.ranks))


def _serving(config: ExperimentConfig, cell: int) -> Row:
    """With requests that wait for no other, and as many ranks that prefill as keep up."""
    server = server_of(config)
    batch, serving = server.batch, server.serving
    step, prompt = server.step(batch), server.mean_pass
    answered = server.requests_per_s(batch)
    if serving.rate is not None:
        answered = serving.rate
    chips = float(server.layout.ranks)
    if serving.prefill is not None:
        replicas = serving.prefill.replicas or answered * prompt / server.prompts
        chips += replicas * server.prefill_layout.ranks
    memory = server.memory(batch)
    times = {"ttft": prompt + server.transfer, "tpot": step / server.tokens_per_step}
    row = Row(cell, config.ranks, metrics=quiet_metrics(step, server.decode(batch).parts()))
    return row.beside(
        {
            **{
                f"{name}_{each}_s": seconds
                for name, seconds in times.items()
                for each in ("mean", "p50", "p99")
            },
            "batch": float(batch),
            "requests_per_s": answered,
            "tokens_per_s": answered * serving.output,
            "tokens_per_s_per_chip": answered * serving.output / chips,
            "memory_B": memory.weights + memory.cache,
        }
    )


def quiet_trainings(group: Group) -> list[Row]:
    """The cells of a group, which train on clusters that differ in numbers.

    Raises:
        InputError: the plan cannot be, or does not fit into memory.
        TypeError: other numbers differ than arrays can have.
    """
    template = group.template
    first = build_quiet(template)
    if template.serving is not None:
        raise TypeError("they serve")
    if template.mitigations.local_steps or template.mitigations.delayed_sync:
        raise TypeError("replicas exchange seldom or late")
    if not all(map(_is_number, group.paths)) or len(first.chips.chips) > 1:
        raise TypeError("more differs than numbers of links and of one kind of chip")
    if any(slowdown != 1 for _, _, slowdown in template.cluster.chip_runs(first.plan.ranks)):
        raise TypeError("chips are slower than they say")
    count = len(group.cells)
    found = evaluate_many(
        first.plan,
        first.shape,
        build_chip(_with_columns(group).cluster.chip),
        _prices(group, first.plan.protocol),
        attention=first.mean_attention,
    )
    steps = np.broadcast_to(found.step, count) if found.step.ndim == 0 else found.step[:count]
    rows = []
    for place, cell in enumerate(group.cells.tolist()):
        mean = float(steps[place])

        def own(values: NDArray[np.float64], place: int = place) -> float:
            return float(values if np.ndim(values) == 0 else values[place])

        parts = {name: own(values) for name, values in found.parts.items()}
        config = put(template, dict(zip(group.paths, group.values[place].tolist(), strict=True)))
        row = Row(cell, template.ranks, metrics=quiet_metrics(mean, parts))
        summary = summary_of(config, first, Estimate(mean, mean, mean))
        bubble = {"bubble_fraction": own(found.bubble_fraction)}
        rows.append(row.beside(of_training(summary, template.ranks)).beside(bubble))
    return rows


def _is_number(path: Path) -> bool:
    if path[:2] == ("cluster", "tiers"):
        return len(path) == 5 and path[3] == "link" and path[4] in _LINK
    return path[:2] == ("cluster", "chip") and len(path) > 2 and path[2] in _CHIP


def _with_columns(group: Group) -> ExperimentConfig:
    """The template with arrays over cells for numbers."""
    columns = filled(group.values).T
    return put(group.template, dict(zip(group.paths, columns, strict=True)))


class _Sized:
    """Prices that are compiled once for all sizes."""

    def __init__(self, prices: ManyPrices):
        self.prices = prices

    def price(self, collective: str, group: Ranks, size: Number) -> Price:
        """As `ManyPrices` has it."""
        return self.prices.price(collective, group, jnp.asarray(size, jnp.result_type(float)))  # pyright: ignore[reportArgumentType]

    def tier(self, group: Ranks) -> int:
        """Index of the outermost tier that a group spans."""
        return self.prices.tier(group)


def _prices(group: Group, protocol: str):
    links = [place for place, path in enumerate(group.paths) if path[1] == "tiers"]
    if not links:
        return build_prices(build_cluster(group.template.cluster), protocol)

    def one(row: Float[Array, " links"]) -> ClusterPrices:
        own = {group.paths[place]: number for place, number in zip(links, row, strict=True)}
        return build_prices(build_cluster(put(group.template, own).cluster), protocol).source

    values = jnp.asarray(filled(group.values)[:, links], jnp.result_type(float))
    return _Sized(ManyPrices(eqx.filter_vmap(one)(values)))
