r"""Schedules in time: one (max, +) recursion for all of them.

A message from s to t starts when its sender, its link and its data are ready,

    start  = max(ready[s], ready[t], out[s], in[t]),

holds the ports of both ends for the time of its bytes and arrives a latency, and whatever is random, later:

    out[s] = in[t] = start + b/w·c + b·γ
    ready'[t]      = max(ready'[t], start + b/w·c + b·γ + h·α + d + X),

where c and d are the slowdown and the delay of the state of the sender's link and X is jitter. In a round all
messages see the state before the round; only ports queue within it. A pipelined stream does not ask for
ready[t], since its link takes the next piece while the last is on its way.

With zero jitter this is the closed form. With jitter it is not a barrier per round: the ring's rank waits
for its left neighbour alone, so that exponential jitter θ costs 2θ a round (last-passage percolation: H.
Rost, Z. Wahrsch. verw. Gebiete 58 (1981); K. Johansson, Comm. Math. Phys. 209 (2000)), not θ·H_n.

Times are kept relative to what a round takes at least, which is summed up apart and with compensation, so
that thousands of rounds leave single precision intact.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray, UInt32

from mc.delays import AbstractDelay, ParameterError
from mc.delays.checks import is_known
from mc.random import key_words, levels_from_words, stream, threefry2x32
from mc.timing.links import Disturbance, Links
from mc.timing.program import Pattern, Program

# Numbers in one array of the state: few enough for the cache of a core, enough to hide the cost of a step.
_STATE = 1 << 17
_MOST_SAMPLES = 1 << 10

Start = AbstractDelay | Float[Array, "..."] | None


def completion(
    program: Program,
    links: Links,
    size: ArrayLike,
    key: PRNGKeyArray,
    samples: int,
    *,
    start: AbstractDelay | ArrayLike | None = None,
    disturbance: Disturbance | None = None,
    of: Literal["slowest", "each"] = "slowest",
) -> Float[Array, "..."]:
    """When a collective is complete, in `samples` independent trials.

    Trial i depends on the key and on i, not on how many there are or how they are chunked. Compiled once per
    shape of the program and number of trials: sizes, latencies, bandwidths and parameters are traced.

    Args:
        program: what is sent.
        links: what messages meet; laws whose quantile has no closed form need tables (`Links.prepared`).
        size: bytes, of the whole buffer as in nccl-tests.
        key: a threefry key.
        samples: how many trials.
        start: when each rank arrives, seconds: an array of shape [ranks] or [ranks, samples], or a law drawn
            for each rank and trial; all at 0 without it.
        disturbance: link states.
        of: the slowest rank, or each.

    Returns:
        Seconds; of shape [samples] for the slowest, [ranks, samples] for each rank.

    Raises:
        ParameterError: fewer tiers in `links` than the program knows, no trials, or `start` of another shape.
    """
    if program.tiers > links.tiers:
        raise ParameterError(
            f"links: expected {program.tiers} tiers, as the program knows; got {links.tiers}"
        )
    if not isinstance(samples, int) or isinstance(samples, bool) or samples < 1:
        raise ParameterError(f"samples: expected a whole number of at least 1; got {samples!r}")
    if of not in ("slowest", "each"):
        raise ParameterError(f"of: expected `slowest` or `each`; got {of!r}")
    if is_known(size) and not (np.isfinite(np.asarray(size)) & (np.asarray(size) >= 0)).all():
        raise ParameterError(f"size: expected a finite number >= 0; got {size}")
    real = jnp.result_type(float)
    if start is not None and not isinstance(start, AbstractDelay):
        start = jnp.asarray(start, real)
        if start.shape not in ((program.ranks,), (program.ranks, samples)):
            raise ParameterError(
                f"start: expected {program.ranks} times, or {program.ranks} x {samples}; got an array of "
                f"shape {start.shape}"
            )
    if start is not None and is_known(start) and not np.isfinite(np.asarray(start)).all():
        raise ParameterError("start: expected finite times; got some that are infinite or not a number")
    return _completion(program, links, jnp.asarray(size, real), key, start, disturbance, samples, of)


@eqx.filter_jit
def _completion(
    program: Program,
    links: Links,
    size: Float[Array, ""],
    key: PRNGKeyArray,
    start: Start,
    disturbance: Disturbance | None,
    samples: int,
    of: Literal["slowest", "each"],
) -> Float[Array, "..."]:
    most = max(1, min(samples, _MOST_SAMPLES, _STATE // max(program.nodes, 1)))
    chunks = -(-samples // most)
    width = -(-samples // chunks)

    def cut(drawn: Float[Array, "rows samples"], first: Int[Array, ""]) -> Float[Array, "rows width"]:
        # The last chunk may reach beyond the end; what it finds there is dropped with it.
        padded = jnp.pad(drawn, ((0, 0), (0, chunks * width - samples)), mode="edge")
        return jax.lax.dynamic_slice_in_dim(padded, first, width, axis=1)

    def one_chunk(index: Int[Array, ""]) -> Float[Array, "..."]:
        first = index * width
        sample = first.astype(jnp.uint32) + jnp.arange(width, dtype=jnp.uint32)
        own = start
        if isinstance(own, jax.Array):
            own = cut(own, first) if own.ndim > 1 else own[:, None]
        states = disturbance
        if states is not None:
            drawn = [tuple(cut(each, first) for each in column) for column in (states.slowdown, states.delay)]
            states = Disturbance(states.group, *drawn)
        each = _run(program, links, size, key, own, states, sample)
        return jnp.max(each, axis=0) if of == "slowest" else each

    parts = jax.lax.map(one_chunk, jnp.arange(chunks))
    joined = jnp.moveaxis(parts, 0, -2)
    return joined.reshape(*joined.shape[:-2], chunks * width)[..., :samples]


class _Now(eqx.Module):
    """Where in its round a step is; see `Program`."""

    opens: Bool[Array, "*steps"]
    closes: Bool[Array, "*steps"]
    joins: Bool[Array, "*steps"] | None


class _State(eqx.Module):
    """Where all nodes are, relative to `total`.

    Updated every step: `pending`, the ports and the totals. Updated every round: `ready`. What a program
    does not need is None.
    """

    ready: Float[Array, "nodes samples"]
    pending: Float[Array, "nodes samples"] | None
    leaving: Float[Array, "ports samples"] | None
    entering: Float[Array, "ports samples"] | None
    total: Float[Array, ""]
    lost: Float[Array, ""]


def _run(
    program: Program,
    links: Links,
    size: Float[Array, ""],
    key: PRNGKeyArray,
    start: Start,
    disturbance: Disturbance | None,
    sample: UInt32[Array, " samples"],
) -> Float[Array, "ranks samples"]:
    """One chunk of trials through all steps."""
    jitter_key = stream(key, "message jitter")

    def step(state: _State, xs: tuple[Array, Array, _Now]) -> tuple[_State, None]:
        index, pattern, now = xs
        at = jax.tree.map(lambda column: column[pattern], program.patterns)
        random = jax.random.fold_in(jitter_key, index)
        return _step(program, links, size, state, at, now, random, disturbance, sample), None

    begun = _arrivals(program, start, key, sample) + links.base
    if program.steps == 0:
        return begun
    first = _first_state(program, begun)
    steps = jnp.arange(program.steps, dtype=jnp.uint32)
    xs = (steps, program.pattern, _Now(program.opens_round, program.closes_round, program.joins))
    last, _ = jax.lax.scan(step, first, xs)
    nodes = last.ready if last.pending is None else last.pending
    by_lane = nodes.reshape(program.lanes, program.peers, sample.size)[:, : program.ranks]
    return (jnp.max(by_lane, axis=0) + last.lost) + last.total


def _step(
    program: Program,
    links: Links,
    size: Float[Array, ""],
    state: _State,
    at: Pattern,
    now: _Now,
    key: PRNGKeyArray,
    disturbance: Disturbance | None,
    sample: UInt32[Array, " samples"],
) -> _State:
    """What one slot of a round does to the state."""
    ready = state.ready if state.pending is None else jnp.where(now.opens, state.pending, state.ready)
    if now.joins is not None:
        lanes = ready.reshape(program.lanes, program.peers, -1)
        together = jnp.broadcast_to(jnp.max(lanes, axis=0), lanes.shape).reshape(ready.shape)
        ready = jnp.where(now.joins, together, ready)
    transfer = at.share * size / links.bandwidth[at.tier]
    combining = at.combined * size * links.reduction_time_per_byte
    latency = jnp.where(at.active, at.hops * links.latency[at.tier], 0.0)

    begin = ready[at.source]
    if program.rendezvous:
        begin = jnp.maximum(begin, ready)
    if state.leaving is not None and state.entering is not None:
        begin = jnp.maximum(begin, jnp.maximum(state.leaving[at.out_port], state.entering[at.in_port]))

    slowdown, on_the_way = jnp.ones((1, 1), latency.dtype), latency[:, None]
    if disturbance is not None:
        slowdown, waiting = _states(program, disturbance, at)
        on_the_way = on_the_way + waiting
    gone = begin + (transfer[:, None] * slowdown + combining[:, None])
    if any(law is not None for law in links.jitter):
        on_the_way = on_the_way + _jitter(program, links, at, key, sample)
    arrived = jnp.where(at.active[:, None], gone + on_the_way, -jnp.inf)

    # What the step takes at least is summed apart, and the state goes on relative to it.
    least = jnp.max(transfer + combining)
    if program.rendezvous:
        least = least + jnp.where(now.closes, jnp.max(latency), 0.0)
    total, lost = _add_up(state.total, state.lost, least)

    def since(times: Float[Array, "rows samples"]) -> Float[Array, "rows samples"]:
        return times - least

    def taken(port: Float[Array, "ports samples"], by: Int[Array, " ports"]) -> Float[Array, "ports samples"]:
        return since(jnp.where(by[:, None] >= 0, gone[jnp.maximum(by, 0)], port))

    return _State(
        ready=since(jnp.maximum(ready, arrived)) if state.pending is None else since(ready),
        pending=None if state.pending is None else since(jnp.maximum(state.pending, arrived)),
        leaving=None if state.leaving is None else taken(state.leaving, at.leaves),
        entering=None if state.entering is None else taken(state.entering, at.enters),
        total=total,
        lost=lost,
    )


def _first_state(program: Program, begun: Float[Array, "ranks samples"]) -> _State:
    width, real = begun.shape[1], begun.dtype
    switches = jnp.full((program.peers - program.ranks, width), -jnp.inf, real)
    ready = jnp.tile(jnp.concatenate([begun, switches]), (program.lanes, 1))
    port = jnp.full((program.patterns.leaves.shape[1], width), -jnp.inf, real) if program.ports else None
    zero = jnp.zeros((), real)
    return _State(ready, ready if program.many_slots else None, port, port, zero, zero)


def _arrivals(
    program: Program, start: Start, key: PRNGKeyArray, sample: UInt32[Array, " samples"]
) -> Float[Array, "ranks samples"]:
    shape = (program.ranks, sample.size)
    if isinstance(start, AbstractDelay):
        return start.quantile(_levels(stream(key, "arrivals"), program.ranks, sample))
    zero = jnp.zeros(shape, jnp.result_type(float))
    return zero if start is None else zero + start


def _levels(key: PRNGKeyArray, rows: int, sample: UInt32[Array, " samples"]) -> Float[Array, "rows samples"]:
    """Levels for each row and trial; a trial's depend on its number, not on its place in the chunk."""
    shape = (rows, sample.size)
    high = jnp.broadcast_to(sample[None, :], shape)
    low = jnp.broadcast_to(jnp.arange(rows, dtype=jnp.uint32)[:, None], shape)
    return levels_from_words(*threefry2x32(key_words(key), high, low))


def _jitter(
    program: Program, links: Links, at: Pattern, key: PRNGKeyArray, sample: UInt32[Array, " samples"]
) -> Float[Array, "nodes samples"]:
    levels = _levels(key, program.nodes, sample)
    drawn = jnp.zeros((), levels.dtype)
    for tier, law in enumerate(links.jitter[: program.tiers]):
        if law is not None:
            drawn = jnp.where((at.tier == tier)[:, None], law.quantile(levels), drawn)
    return drawn


def _states(
    program: Program, disturbance: Disturbance, at: Pattern
) -> tuple[Float[Array, "nodes samples"], Float[Array, "nodes samples"]]:
    """Slowdown and delay for each message: of its sender's link, or its receiver's where a switch sends."""
    sender, receiver = at.source % program.peers, jnp.arange(program.nodes) % program.peers
    rank = jnp.where(sender < program.ranks, sender, receiver)
    of_a_rank = (rank < program.ranks)[:, None]
    rank = jnp.minimum(rank, program.ranks - 1)
    slowdown, delay = jnp.ones((1, 1)), jnp.zeros((1, 1))
    for tier, group in enumerate(disturbance.group[: program.tiers]):
        here = (at.tier == tier)[:, None] & of_a_rank
        mine = group[rank]
        slowdown = jnp.where(here, disturbance.slowdown[tier][mine], slowdown)
        delay = jnp.where(here, disturbance.delay[tier][mine], delay)
    return slowdown, delay


def _add_up(
    total: Float[Array, ""], lost: Float[Array, ""], more: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Total + more, and what rounding lost (T. Dekker, Numer. Math. 18 (1971); exact for more <= total)."""
    wide = total + more
    back = wide - total
    return wide, lost + ((total - (wide - back)) + (more - back))
