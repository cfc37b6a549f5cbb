r"""The law of a step from half of the steps, scored on the other half.

The logarithm of what a forward or backward takes (kind k, stage s of replica r, micro-batch i, step n) is taken to be

    a[r,s,k] + state[n,k] + rank[n,r,s] + b[r,s,k]·u[n,r,i] + own[n,r,s,k,i],

- a: what stays during the job: a slow worker, a stage with more to do;
- state: what all ranks of a step have in common, one of the fitted steps drawn with what came before and after its
  pipelines (both traces start with some steps in which chips are quicker, and whose exchanges take longer);
- rank: transient, of one rank in one step, normal;
- u: transient, of one micro-batch on all stages of its replica, forward and backward: the lengths of its sequences. A
  standard normal number, of which b says how much of it each stage feels: the first principal component over stages and kinds;
- own: transient, of one operation, normal.

The naive models leave parts out, and put what these explain into `own`:

    one lognormal   a pooled over replicas, own: each operation independent, in no way persistent
    persistent      a, own
    shared          a, state, rank, own
    sequences       all

Their draws go through `mc.pipeline.completion`; a step is the maximum over replicas, and what is around.
"""

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from numpy.typing import NDArray

from experiments.traces.record import Record, load
from experiments.traces.replay import timetable, transfer
from mc.pipeline import Draws, Rows, Timetable, Transfer, completion, draws_of, normal_from_word
from mc.random import stream

MODELS = ("one lognormal", "persistent", "shared", "sequences")
SAMPLES, QUICK_SAMPLES = 20_000, 1_000
# Reported by PRISM, arXiv:2510.15596, for its own forecasts.
PRISM, WANTED = 0.208, 0.15
_OWN, _SEQUENCE, _RANK = 0, 1, 2


class Fit(NamedTuple):
    """A model of a record's durations, in logarithms; see above.

    Attributes:
        constant: a, [kinds, stages, replicas].
        state: [fitted steps, kinds].
        around: seconds before and after the pipelines, [fitted steps].
        rank: standard deviation, [stages, replicas].
        length: b, [kinds, stages, replicas].
        own: standard deviation, [kinds, stages, replicas].
    """

    constant: NDArray[np.float64]
    state: NDArray[np.float64]
    around: NDArray[np.float64]
    rank: NDArray[np.float64]
    length: NDArray[np.float64]
    own: NDArray[np.float64]


@dataclass(frozen=True)
class Scored:
    """A forecast of the half that has not been fitted.

    Attributes:
        trace: which.
        model: which.
        steps: in each half.
        ks: largest distance between the distribution functions, mean of both directions.
        each: the two: even steps fitted, odd steps fitted.
        floor: between the measured halves.
        perfect: what the true law would reach on average with so many steps.
        mean: of steps, drawn over measured − 1.
        deviation: standard deviation of steps, drawn over measured.
    """

    trace: str
    model: str
    steps: int
    ks: float
    each: tuple[float, float]
    floor: float
    perfect: float
    mean: float
    deviation: float


def fit(record: Record, model: str = "sequences") -> Fit:
    """A model of some steps."""
    logs = np.log(record.durations)
    steps, replicas, stages, kinds, micro_batches = logs.shape
    constant = logs.mean(axis=(0, 4))
    state = np.zeros((steps, kinds))
    rank = np.zeros((replicas, stages))
    length = np.zeros((replicas, stages, kinds))
    if model == "one lognormal":
        constant = np.broadcast_to(logs.mean(axis=(0, 1, 4)), constant.shape)
    rest = logs - constant[..., None]
    if model in ("shared", "sequences"):
        state = rest.mean(axis=(1, 2, 4))
        rest = rest - state[:, None, None, :, None]
    if model == "sequences":
        for replica in range(replicas):
            columns = np.moveaxis(rest[:, replica], 3, 1).reshape(steps * micro_batches, -1)
            left, size, right = np.linalg.svd(columns, full_matrices=False)
            first = np.outer(left[:, 0] * size[0], right[0]).reshape(steps, micro_batches, stages, kinds)
            length[replica] = (right[0] * size[0] / np.sqrt(len(columns))).reshape(stages, kinds)
            rest[:, replica] -= np.moveaxis(first, 1, 3)
    if model in ("shared", "sequences"):
        common = rest.mean(axis=(3, 4))
        inside = (rest - common[..., None, None]).var(axis=(0, 3, 4))
        rank = np.sqrt(np.maximum(common.var(axis=0) - inside / (kinds * micro_batches), 0.0))
        rest = rest - common[..., None, None]
    own = rest.std(axis=(0, 4))
    if model == "one lognormal":
        own = np.broadcast_to(rest.std(axis=(0, 1, 4)), own.shape)
    turned = (np.moveaxis(each, (0, 1, 2), (2, 1, 0)) for each in (constant, length, own))
    constant, length, own = turned
    around = record.traced + record.host
    return Fit(constant, state, around, rank.T, length, own)


@eqx.filter_jit
def _draw(
    fitted: Fit,
    table: Timetable,
    between: Transfer,
    which: Int[Array, " samples"],
    seed: Array,
) -> Float[Array, "samples replicas"]:
    constant, rank, length, own = (
        jnp.asarray(each) for each in (fitted.constant, fitted.rank, fitted.length, fitted.own)
    )
    samples, replicas = which.size, constant.shape[2]
    sample = jnp.repeat(jnp.arange(samples, dtype=jnp.uint32), replicas)
    draws = draws_of(seed, sample, jnp.tile(jnp.arange(replicas, dtype=jnp.uint32), samples))

    def column(values: Array) -> Array:
        return jnp.tile(values, samples)

    state = jnp.repeat(jnp.asarray(fitted.state)[which], replicas, axis=0)
    first = jax.tree.map(lambda each: each[0], table.rows)
    each_stage = _numbered(first, jnp.arange(table.stages))
    of_rank = column(rank) * draws.normals(each_stage, _RANK)[0]
    stage = jnp.arange(table.stages)

    def duration(rows: Rows) -> Array:
        log = column(constant[rows.kind, stage]) + state[:, rows.kind].T + of_rank
        log = log + column(own[rows.kind, stage]) * _normals(draws, rows, _OWN)
        lengths = _normals(draws, _numbered(rows, rows.micro_batch), _SEQUENCE)
        return jnp.exp(log + column(length[rows.kind, stage]) * lengths)

    found = completion(table, duration, samples * replicas, transfer=between)
    return found.makespan.reshape(samples, replicas)


def _normals(draws: Draws, rows: Rows, source: int) -> Array:
    return normal_from_word(draws.words(rows, source)[0])


def _numbered(rows: Rows, number: Array) -> Rows:
    """The same draw for all rows of a number."""
    return eqx.tree_at(lambda each: each.number, rows, number)


def draw(record: Record, model: str, samples: int) -> NDArray[np.float64]:
    """Steps by the model of a record, in seconds."""
    fitted = fit(record, model)
    key = jax.random.key(7, impl="threefry2x32")
    which = np.arange(samples) % record.span.size
    found = _draw(fitted, timetable(record), transfer(record, samples), jnp.asarray(which), stream(key, model))
    # Without a state, surroundings are another fitted step's: 1 in all is enough, as all steps are drawn alike.
    return np.asarray(found, np.float64).max(axis=1) + fitted.around[which]


def distance(measured: NDArray[np.float64], drawn: NDArray[np.float64]) -> float:
    """Largest distance between two empirical distribution functions."""
    both = np.concatenate([measured, drawn])
    first, second = (np.searchsorted(np.sort(part), both, "right") / part.size for part in (measured, drawn))
    return float(np.abs(first - second).max())


def perfect(steps: int) -> float:
    r"""Mean distance of so many draws from their own law: √(π/2)·log 2/√n (Kolmogorov 1933; exact for large n)."""
    return float(np.sqrt(np.pi / 2) * np.log(2) / np.sqrt(steps))


def forecast(trace: str, model: str, samples: int = SAMPLES) -> Scored:
    """Each half from the other."""
    halves = load(trace).halves
    drawn = [draw(half, model, samples) for half in halves]
    measured = [half.span for half in reversed(halves)]
    each = [distance(*pair) for pair in zip(measured, drawn, strict=True)]
    steps = len(measured[0])
    return Scored(
        trace,
        model,
        steps,
        float(np.mean(each)),
        (each[0], each[1]),
        distance(*measured),
        perfect(steps),
        float(np.mean([d.mean() / m.mean() - 1 for d, m in zip(drawn, measured, strict=True)])),
        float(np.mean([d.std() / m.std() for d, m in zip(drawn, measured, strict=True)])),
    )
