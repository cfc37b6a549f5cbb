r"""The law of a step from half of the steps, scored on the other half.

The logarithm of what a forward or backward takes (kind k, stage s of replica r, micro-batch i, step n) is taken to be

    a[r,s,k] + c[r,s,k]·state[n,k] + rank[n,r,s] + b[r,s,k]·u[n,r,i] + own[n,r,s,k,i],

- a: what stays during the job: a slow worker, a stage with more to do;
- state: what all ranks of a step have in common, one of the fitted steps drawn with what came before and after its
  pipelines (both traces start with some steps in which chips are quicker, and whose exchanges take longer); c says how
  much of it each rank feels: of a worker that is slow for another reason, half of it is enough;
- rank: transient, of one rank in one step, normal;
- u: transient, of one micro-batch on all stages of its replica, forward and backward: the lengths of its sequences. The
  first principal component over stages and kinds; b says how much each of them feels. Micro-batches of a step are not
  independent: u is a part of its replica's step (less the mean of all replicas, which state has) and one of
  its own, which adds up to zero, both normal with standard deviations of their own;
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
from jaxtyping import Array, ArrayLike, Float, Int
from numpy.typing import NDArray

from experiments.traces.record import Record, load
from experiments.traces.replay import timetable, transfer
from mc.pipeline import Rows, Timetable, Transfer, completion, draws_of, normal_from_word
from mc.random import stream

MODELS = ("one lognormal", "persistent", "shared", "sequences")
SAMPLES, QUICK_SAMPLES = 10_000, 1_000
SPLITS = 10
# Reported by PRISM, arXiv:2510.15596, for its own forecasts.
PRISM, WANTED = 0.208, 0.15
_OWN, _LENGTH, _RANK, _REPLICA = 0, 1, 2, 3


class Fit(NamedTuple):
    """A model of a record's durations, in logarithms; see above.

    Attributes:
        constant: a, [kinds, stages, replicas].
        feels: c, likewise.
        state: [fitted steps, kinds].
        around: seconds before and after the pipelines, [fitted steps].
        rank: standard deviation, [stages, replicas].
        length: b, [kinds, stages, replicas].
        apart: standard deviations of u, of replicas' steps and of micro-batches in them.
        own: standard deviation, [kinds, stages, replicas].
    """

    constant: NDArray[np.float64]
    feels: NDArray[np.float64]
    state: NDArray[np.float64]
    around: NDArray[np.float64]
    rank: NDArray[np.float64]
    length: NDArray[np.float64]
    apart: NDArray[np.float64]
    own: NDArray[np.float64]


@dataclass(frozen=True)
class Scored:
    """Forecasts of the halves that have not been fitted.

    Attributes:
        trace: which.
        model: which.
        steps: in each half.
        ks: largest distance between the distribution functions, mean of both halves.
        each: the two: odd steps from even ones, even steps from odd ones.
        pooled: of all steps at once, each at its level in the forecast from the other half.
        splits: `ks` by random halves instead, mean; the number of splits follows from the call.
        floor: between the measured halves.
        splits_floor: likewise by random halves.
        bias: mean of steps, drawn over measured − 1.
        deviation: standard deviation of steps, drawn over measured.
    """

    trace: str
    model: str
    steps: int
    ks: float
    each: tuple[float, float]
    pooled: float
    splits: float
    floor: float
    splits_floor: float
    bias: float
    deviation: float

    @property
    def perfect(self) -> float:
        r"""What the true law reaches on average for so many steps: √(π/2)·log 2/√n (Kolmogorov 1933, for large n)."""
        return float(np.sqrt(np.pi / 2) * np.log(2) / np.sqrt(self.steps))


def fit(record: Record, model: str = "sequences") -> Fit:
    """A model of some steps."""
    logs = np.log(record.durations)
    steps, replicas, stages, kinds, micro_batches = logs.shape
    constant = logs.mean(axis=(0, 4))
    feels, state = np.zeros(constant.shape), np.zeros((steps, kinds))
    rank, length, apart = np.zeros((replicas, stages)), np.zeros(constant.shape), np.zeros(2)
    if model == "one lognormal":
        constant = np.broadcast_to(logs.mean(axis=(0, 1, 4)), constant.shape)
    rest = logs - constant[..., None]
    if model in ("shared", "sequences"):
        state = rest.mean(axis=(1, 2, 4))
        feels = np.einsum("nrsk,nk->rsk", rest.mean(axis=4), state) / (state**2).sum(axis=0)
        rest = rest - (feels * state[:, None, None])[..., None]
    if model == "sequences":
        length, score = _principal(rest)
        rest = rest - length[..., None] * score[:, :, None, None]
        whole = score.mean(axis=2)
        whole = whole - whole.mean(axis=1, keepdims=True)
        # What is subtracted takes one replica, or one micro-batch, of the variance.
        inside = score - score.mean(axis=2, keepdims=True)
        freedom = np.array([(replicas - 1) / replicas, (micro_batches - 1) / micro_batches])
        apart = np.sqrt(np.array([whole.var(), inside.var()]) / freedom)
    if model in ("shared", "sequences"):
        common = rest.mean(axis=(3, 4))
        inside = (rest - common[..., None, None]).var(axis=(0, 3, 4))
        rank = np.sqrt(np.maximum(common.var(axis=0) - inside / (kinds * micro_batches), 0.0))
        rest = rest - common[..., None, None]
    own = rest.std(axis=(0, 4))
    if model == "one lognormal":
        own = np.broadcast_to(rest.std(axis=(0, 1, 4)), own.shape)
    constant, feels, length, own = (np.swapaxes(each, 0, 2) for each in (constant, feels, length, own))
    around = record.traced + record.host
    return Fit(constant, feels, state, around, rank.T, length, apart, own)


def _principal(rest: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What micro-batches have in common over stages and kinds: loads [replicas, stages, kinds], scores of variance 1."""
    steps, replicas, stages, kinds, micro_batches = rest.shape
    loads, scores = np.empty((replicas, stages, kinds)), np.empty((steps, replicas, micro_batches))
    for replica in range(replicas):
        columns = np.moveaxis(rest[:, replica], 3, 1).reshape(steps * micro_batches, -1)
        left, size, right = np.linalg.svd(columns, full_matrices=False)
        scale = np.sqrt(len(columns)) * np.sign(right[0].sum())
        loads[replica] = (right[0] * size[0] / scale).reshape(stages, kinds)
        scores[:, replica] = (left[:, 0] * scale).reshape(steps, micro_batches)
    return loads, scores


@eqx.filter_jit
def _draw(
    fitted: Fit,
    table: Timetable,
    between: Transfer,
    which: Int[Array, " samples"],
    seed: Array,
) -> Float[Array, "samples replicas"]:
    fitted = jax.tree.map(jnp.asarray, fitted)
    samples, replicas = which.size, fitted.constant.shape[2]
    sample = jnp.repeat(jnp.arange(samples, dtype=jnp.uint32), replicas)
    draws = draws_of(seed, sample, jnp.tile(jnp.arange(replicas, dtype=jnp.uint32), samples))
    first = jax.tree.map(lambda each: each[0], table.rows)

    def column(values: ArrayLike) -> Array:
        return jnp.tile(values, samples)

    def normals(count: int, source: int) -> Array:
        # The same number for all operations that share something, not one for each.
        rows = eqx.tree_at(lambda each: each.number, first, jnp.arange(count))
        return normal_from_word(draws.words(rows, source)[0])

    stage = jnp.arange(table.stages)
    state = jnp.repeat(fitted.state[which], replicas, axis=0)
    of_rank = column(fitted.rank) * normals(table.stages, _RANK)
    of_replica = normals(1, _REPLICA).reshape(samples, replicas)
    whole = (of_replica - of_replica.mean(axis=1, keepdims=True)).reshape(1, -1)
    inside = normals(table.micro_batches, _LENGTH)
    inside = inside - inside.mean(axis=0, keepdims=True)
    lengths = fitted.apart[0] * whole + fitted.apart[1] * inside

    def duration(rows: Rows) -> Array:
        constant, feels, length, own = (
            column(each[rows.kind, stage])
            for each in (fitted.constant, fitted.feels, fitted.length, fitted.own)
        )
        log = constant + feels * state[:, rows.kind].T + of_rank
        log = log + length * lengths[rows.micro_batch]
        return jnp.exp(log + own * normal_from_word(draws.words(rows, _OWN)[0]))

    found = completion(table, duration, samples * replicas, transfer=between)
    return found.makespan.reshape(samples, replicas)


def draw(record: Record, model: str, samples: int) -> NDArray[np.float64]:
    """Steps by the model of a record, in seconds."""
    fitted = fit(record, model)
    key = jax.random.key(7, impl="threefry2x32")
    # All fitted steps alike often: what is around them is drawn with their state, or alone where there is none.
    which = np.arange(samples) % record.span.size
    found = _draw(
        fitted, timetable(record), transfer(record, samples), jnp.asarray(which), stream(key, model)
    )
    return np.asarray(found, np.float64).max(axis=1) + fitted.around[which]


def distance(measured: NDArray[np.float64], drawn: NDArray[np.float64]) -> float:
    """Largest distance between two empirical distribution functions."""
    both = np.concatenate([measured, drawn])
    first, second = (np.searchsorted(np.sort(part), both, "right") / part.size for part in (measured, drawn))
    return float(np.abs(first - second).max())


def forecast(trace: str, model: str, samples: int = SAMPLES, splits: int = SPLITS) -> Scored:
    """Each half from the other: every other step, and random halves."""
    record = load(trace)
    even = np.arange(record.span.size) % 2 == 0
    ks, floor, drawn, measured = _both(record, even, model, samples)
    levels = [(d < m[:, None]).mean(axis=1) for d, m in zip(drawn, measured, strict=True)]
    rng = np.random.default_rng(3)
    random = [_both(record, even[rng.permutation(even.size)], model, samples)[:2] for _ in range(splits)]
    by_chance = (
        np.mean([[np.mean(each), least] for each, least in random], axis=0) if splits else (np.nan,) * 2
    )
    return Scored(
        trace,
        model,
        measured[0].size,
        float(np.mean(ks)),
        (ks[0], ks[1]),
        distance(np.concatenate(levels), (np.arange(10_000) + 0.5) / 10_000),
        float(by_chance[0]),
        floor,
        float(by_chance[1]),
        float(np.mean([d.mean() / m.mean() - 1 for d, m in zip(drawn, measured, strict=True)])),
        float(np.mean([d.std() / m.std() for d, m in zip(drawn, measured, strict=True)])),
    )


_Halves = list[NDArray[np.float64]]


def _both(
    record: Record, half: NDArray[np.bool_], model: str, samples: int
) -> tuple[list[float], float, _Halves, _Halves]:
    """Distances both ways, that between the halves, what is drawn and what it is compared with."""
    first, second = record.of(half), record.of(~half)
    drawn = [draw(each, model, samples) for each in (first, second)]
    measured = [second.span, first.span]
    ks = [distance(m, d) for m, d in zip(measured, drawn, strict=True)]
    return ks, distance(*measured), drawn, measured
