"""Running an experiment: build, draw in cells, estimate."""

import shlex
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mc.config import ExperimentConfig, config_hash, resolved_yaml
from mc.delays import Method
from mc.estimate import estimate, slowest_rank_cost, waterfall
from mc.experiment.build import build
from mc.experiment.build_mitigated import classes_of, mitigated
from mc.experiment.devices import on_all_devices
from mc.experiment.run_serving import draw_serving
from mc.experiment.run_training import draw_training
from mc.experiment.serving_summary import serving_summary
from mc.experiment.training_summary import training_summary
from mc.fabric import SharedLinks
from mc.random import stream
from mc.results import Machine, RunResult
from mc.step import PARTS, Classes, Compute, MitigatedStep, Step, StepDraws

# Steps per cell, and work (steps, or ranks x steps where every rank is drawn) per compiled call: enough to fill the
# cores, little enough to show progress.
_CELL: dict[Method, int] = {"exact": 1 << 16, "grid": 1 << 16, "direct": 1 << 10}
_CALL: dict[Method, int] = {"exact": 1 << 18, "grid": 1 << 18, "direct": 1 << 32}

# Parts of a transformer's step that an ideal network would not have.
_OF_THE_NETWORK = ("bandwidth", "latency_floor", "exposed_communication", "congestion")

Advance = Callable[[int], None]
AnyStep = Step | MitigatedStep


def run(
    config: ExperimentConfig, *, command: str | None = None, advance: Advance = lambda count: None
) -> RunResult:
    """Samples the steps of an experiment.

    Args:
        config: the experiment.
        command: the command line that repeats the run, for the record.
        advance: told how many more steps are drawn, as they are.

    Returns:
        Samples of shape (realisations, steps), their parts and what they say. Where nothing is persistently
        slow and no link remembers its state all steps are independent and there is one realisation; otherwise
        the samples asked for are rounded up to a whole number per realisation.

    Raises:
        InputError: the experiment cannot be built.
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    key = jax.random.key(config.run.seed, impl="threefry2x32")
    drawn = served = None
    if config.serving is not None:
        served = draw_serving(config, key, advance)
        parts, sampling_s = dict(served.parts), served.sampling_s
        ideal = sum(float(parts[name].mean()) for name in parts if name not in _OF_THE_NETWORK)
    elif config.model.transformer is not None:
        drawn = draw_training(config, key, advance)
        parts, sampling_s = drawn.parts, drawn.sampling_s
        ideal = sum(float(parts[name].mean()) for name in parts if name not in _OF_THE_NETWORK)
    else:
        parts, sampling_s, ideal = _sampled(config, key, advance)
    shape = np.broadcast_shapes(*(np.shape(times) for times in parts.values()))
    samples = sum(parts.values(), np.zeros(shape))
    confidence = config.run.confidence
    device = jax.devices()[0]
    estimates = estimate(samples, confidence)
    return RunResult(
        name=config.name,
        description=config.description or "",
        cluster_name=config.cluster.name,
        ranks=config.ranks,
        tiers=tuple(_tier_text(config)),
        samples=samples,
        parts=parts,
        estimates=estimates,
        waterfall=waterfall(samples, parts, confidence),
        slowest_rank=slowest_rank_cost(samples, parts["straggler_wait"], config.ranks, confidence),
        ideal_step_time=ideal,
        seed=config.run.seed,
        method=config.run.method,
        config_hash=config_hash(config),
        resolved_yaml=resolved_yaml(config),
        command=command or shlex.join(["tailstep", "run"]),
        machine=Machine(
            backend=device.platform,
            device_kind=device.device_kind,
            device_count=jax.device_count(),
            x64=bool(jax.config.read("jax_enable_x64")),
        ),
        started=started,
        ended=datetime.now(UTC),
        elapsed_s=time.perf_counter() - clock,
        sampling_s=sampling_s,
        training=None if drawn is None else training_summary(config, drawn, estimates.mean),
        serving=None if served is None else serving_summary(config, served),
    )


def draw_steps(config: ExperimentConfig) -> NDArray[np.float64]:
    """Step times of an experiment whose model computes and then exchanges, as `run` draws them, [realisations, steps].

    Raises:
        InputError: the experiment cannot be built.
    """
    parts, _, _ = _sampled(config, jax.random.key(config.run.seed, impl="threefry2x32"), lambda count: None)
    return sum(parts.values(), np.zeros(()))


def _sampled(
    config: ExperimentConfig, key: jax.Array, advance: Advance
) -> tuple[dict[str, NDArray[np.float64]], float, float]:
    """Parts of the steps of a model that computes and then exchanges, and seconds: of sampling, and without a network."""
    built = build(config)
    step = mitigated(config, built)
    remembers = built.remembers or config.mitigations.delayed_sync is not None
    realisations = min(config.run.realisations, config.run.samples) if remembers else 1
    per_realisation = -(-config.run.samples // realisations)
    sampling = time.perf_counter()
    # Tables for the exact method; the mean of one rank is read from them whatever the method.
    prepared = step.prepared()
    alone = eqx.filter_jit(Compute.mean_of_one)(
        (prepared if step is built.step else built.step.prepared()).compute
    )
    step = prepared if config.run.method == "exact" else step
    classes, left = classes_of(step, key, config.ranks, realisations)
    drawn = _draw(step, built.links, key, config, classes, realisations, per_realisation, advance)
    sampling_s = time.perf_counter() - sampling
    constants = (left * float(alone), float(step.transfer()), float(step.latency_floor()))
    return _parts(drawn, *constants), sampling_s, float(drawn.compute.mean())


class _Drawn(NamedTuple):
    """Steps of all realisations, (realisations, steps) each; of the exchange, None where it always takes the same."""

    compute: NDArray[np.float64]
    congestion: NDArray[np.float64]
    exchange: NDArray[np.float64] | None


def _parts(drawn: _Drawn, alone: float, transfer: float, latency: float) -> dict[str, NDArray[np.float64]]:
    """The waterfall's parts per step: what a rank computes if it waits for nobody, and what comes on top."""
    floor = np.asarray(transfer), np.asarray(latency)
    if drawn.exchange is not None:
        whole = max(transfer + latency, 1e-300)
        floor = drawn.exchange * (transfer / whole), drawn.exchange * (latency / whole)
    parts = np.asarray(alone), drawn.compute - alone, *floor, drawn.congestion
    return dict(zip(PARTS, parts, strict=True))


def _draw(
    step: AnyStep,
    sets: tuple[SharedLinks, ...],
    key: jax.Array,
    config: ExperimentConfig,
    classes: Classes | None,
    realisations: int,
    per_realisation: int,
    advance: Advance,
) -> _Drawn:
    """All steps, in cells."""
    method = config.run.method
    size = min(_CELL[method], per_realisation)
    chunks = -(-per_realisation // size)
    cell_realisation, cell_chunk = (axis.ravel() for axis in np.indices((realisations, chunks)))
    cells = cell_realisation.size

    counts = [
        links.chain.counts(stream(key, f"links {index}"), links.groups, realisations, chunks * size)
        for index, links in enumerate(sets)
    ]
    # By cell: the steps of a chunk.
    in_cells = [each.astype(np.float32).reshape(cells, size, each.shape[-1]) for each in counts]

    draw = eqx.filter_jit(_draw_cells)
    every_rank = method == "direct" or step.draws_every_rank
    work = size * (config.ranks if every_rank else 1)
    per_call = min(max(1, _CALL[method] // work) * jax.local_device_count(), cells)
    compute, congestion, exchange = [], [], []
    for first in range(0, cells, per_call):
        # The last call repeats cells rather than compile another shape.
        call = np.minimum(np.arange(first, first + per_call), cells - 1)
        rows = cell_realisation[call]
        own = (
            None
            if classes is None
            else jax.tree.map(lambda leaf, rows=rows: jnp.asarray(leaf[rows]), classes)
        )
        seen = tuple(jnp.asarray(each[call]) for each in in_cells)
        chunk = jnp.asarray(cell_chunk[call])
        drawn = draw(step, key, jnp.asarray(rows), chunk, own, seen, size=size, method=method)
        done = min(first + per_call, cells)
        compute.append(np.asarray(drawn.compute, np.float64)[: done - first])
        congestion.append(np.asarray(drawn.congestion, np.float64)[: done - first])
        if drawn.exchange is not None:
            exchange.append(np.asarray(drawn.exchange, np.float64)[: done - first])
        samples = config.run.samples
        advance(samples * done // cells - samples * first // cells)

    def gather(pieces: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        return np.concatenate(pieces).reshape(realisations, chunks * size)[:, :per_realisation]

    return _Drawn(gather(compute), gather(congestion), gather(exchange) if exchange else None)


def _draw_cells(step: AnyStep, key: jax.Array, *cells: Any, size: int, method: Method) -> StepDraws:
    return on_all_devices(lambda own: step.draw(key, *own, size=size, method=method), cells)


def cell_of(config: ExperimentConfig, shape: tuple[int, ...], sample: int) -> tuple[int, int, int]:
    """Where a step of a realisation was drawn: in which chunk, of how many steps, at which place.

    Args:
        config: of the run, whose model computes and then exchanges.
        shape: of its samples, (realisations, steps).
        sample: number of the step.
    """
    size = min(_CELL[config.run.method], shape[1])
    return sample // size, size, sample % size


def _tier_text(config: ExperimentConfig) -> list[str]:
    return [
        f"{tier.name}: {tier.fan_out:,} x, {tier.bandwidth_per_rank / 1e9:g} GB/s per rank and direction, "
        f"{tier.link.latency * 1e6:g} us"
        for tier in config.cluster.tiers
    ]
