"""Throughput of a chip against the time of a token: steps without noise for batches and tensor-parallel sizes.

More requests at once read the weights for more tokens, and make each wait longer; more ranks that share matrices make each wait
shorter, and wait for more messages. Without experts a replica has tp x pp ranks for each tp; with experts a stage keeps its
ranks, tp x dp of them. A point is on the front if no other one has more throughput in no more time.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from mc.config import ExperimentConfig
from mc.config.serving import LARGEST, ServingConfig
from mc.config.serving_checks import serving_problems
from mc.errors import InputError
from mc.experiment.build_serving import server_of
from mc.inference import ServingError, largest_batch


@dataclass(frozen=True)
class FrontPoint:
    """A replica with so many requests at once.

    Attributes:
        tp: ranks that share matrices.
        dp: groups with requests of their own.
        batch: requests at once.
        tpot: seconds per token, without noise.
        tokens_per_s_per_chip: of the chips that decode.
        is_best: whether it is on the front.
    """

    tp: int
    dp: int
    batch: int
    tpot: float
    tokens_per_s_per_chip: float
    is_best: bool = False


def serving_front(config: ExperimentConfig) -> list[FrontPoint]:
    """Points for powers of two, tp by tp and in rising batches.

    Raises:
        ServingError: nothing fits.
    """
    found = [point for serving in _layouts(config) for point in _points(config, serving)]
    if not found:
        raise ServingError("serving: expected a tp with which a request fits into memory; got none")
    best = -1.0
    on_front = set()
    for point in sorted(found, key=lambda each: (each.tpot, -each.tokens_per_s_per_chip)):
        if point.tokens_per_s_per_chip > best:
            best = point.tokens_per_s_per_chip
            on_front.add(point)
    return [FrontPoint(**{**vars(each), "is_best": each in on_front}) for each in found]


def _layouts(config: ExperimentConfig) -> Iterator[ServingConfig]:
    """The block with every tp inside of a node that its model can be cut by."""
    serving, model = config.serving, config.model.transformer
    assert serving is not None
    assert model is not None
    node, tp = config.cluster.tiers[0].fan_out, 1
    tiers = tuple(tier.name for tier in config.cluster.tiers)
    while tp <= max(node, serving.tp):
        sizes = {"tp": tp, "batch": LARGEST, "rate": None}
        if model.experts is not None and serving.stage_ranks % tp == 0:
            sizes |= {"dp": serving.stage_ranks // tp, "ep": serving.ep or serving.stage_ranks}
        elif model.experts is not None:
            break
        changed = serving.model_copy(update=sizes)
        if not list(serving_problems(changed, model, config.cluster.size, tiers)):
            yield changed
        tp *= 2


def _points(config: ExperimentConfig, serving: ServingConfig) -> Iterator[FrontPoint]:
    try:
        server = server_of(config.model_copy(update={"serving": serving}))
        most = largest_batch(serving, server.shape, server.layout, server.memory_size)
    except InputError:
        # Weights that do not fit.
        return
    at_once = serving.dp * serving.pp
    batch, limit = at_once, most or 256 * at_once
    while batch <= limit:
        step = server.step(batch)
        rate = batch * server.tokens_per_step / step / server.layout.ranks
        yield FrontPoint(serving.tp, serving.dp, batch, step / server.tokens_per_step, rate)
        batch = limit if batch < limit < 2 * batch else 2 * batch
