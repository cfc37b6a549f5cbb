"""The `direct` method: every rank drawn, nothing assumed. The reference for the others, and the only one where no shortcut exists.

The expression of a delay says what to simulate: a maximum draws all its ranks, a mixture draws a state and
then that component, a sum draws both terms. Draws are functions of (key, step, rank), so the loop over ranks
needs no memory but the running maximum per step: ranks × steps is never held.

Two facts make it fast. Threefry's rounds fuse with the transform and the maximum into one loop. And for
identical ranks the transform from level to time is monotone, so the slowest rank is the one with the deepest
level: the minimum is taken over the bits, and one transform per step remains. For 32-bit words tied at the
minimum (n·2⁻³² of the steps) the 32 further bits of the winner are drawn once, not once per tied rank; that
shifts a level by less than 2⁻³².
"""

import zlib

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, UInt32

from mc.delays.affine import Scaled, Shifted
from mc.delays.base import AbstractDelay
from mc.delays.mixture import Mixture
from mc.delays.numerics import safe_log
from mc.delays.order_statistic import OrderStatistic
from mc.delays.product import Product
from mc.delays.slowest import Latest, Slowest, SlowestOf
from mc.delays.sum import Sum
from mc.delays.table import Tabulated
from mc.delays.total import Total
from mc.random import key_words, levels_from_words, threefry2x32

# Steps per block and ranks per inner tile: a tile's words stay in registers and cache.
_BLOCK = 1024
_TILE = 64

_Key = tuple[UInt32[Array, ""], UInt32[Array, ""]]
_Steps = UInt32[Array, " block"]


def draw_direct(delay: AbstractDelay, key: PRNGKeyArray, count: int) -> Float[Array, " count"]:
    """`count` draws of `delay` by simulating its expression rank by rank.

    Args:
        delay: any delay; a `Slowest` of more than 2³² ranks in all is beyond the counters.
        key: a threefry key; draw i depends on the key and on i alone.
        count: number of draws (steps), below 2³².
    """
    words = key_words(key)
    block = max(1, min(_BLOCK, count))
    blocks = -(-count // block)
    starts = jnp.arange(blocks, dtype=jnp.uint32) * block

    def one_block(start):
        return _simulate(delay, words, start + jnp.arange(block, dtype=jnp.uint32), jnp.uint32(0))

    return jax.lax.map(one_block, starts).reshape(-1)[:count]


def _simulate(
    delay: AbstractDelay, key: _Key, steps: _Steps, copy: UInt32[Array, ""]
) -> Float[Array, " block"]:
    # `copy` numbers the independent copies of this part of the expression.
    match delay:
        case Tabulated():
            return _simulate(delay.delay, key, steps, copy)
        case Shifted():
            return _simulate(delay.delay, key, steps, copy) + delay.shift
        case Scaled():
            return _simulate(delay.delay, key, steps, copy) * delay.factor
        case Sum():
            first, second = (_part(key, index) for index in range(2))
            return _simulate(delay.first, first, steps, copy) + _simulate(delay.second, second, steps, copy)
        case Total():
            return _sum_of_copies(delay, key, steps, copy)
        case Latest():
            drawn = [
                _simulate(part, _part(key, index), steps, copy) for index, part in enumerate(delay.delays)
            ]
            return jnp.max(jnp.stack(drawn), axis=0)
        case Product():
            first, second = (_part(key, index) for index in range(2))
            return _simulate(delay.first, first, steps, copy) * _simulate(delay.second, second, steps, copy)
        case Mixture():
            return _simulate_mixture(delay, key, steps, copy)
        case Slowest() if _is_family(delay.delay):
            return _slowest_of_identical(delay, key, steps, copy)
        case Slowest():
            return _slowest_of_composed(delay, key, steps, copy)
        case OrderStatistic():
            return _all_but_the_slowest(delay, key, steps, copy)
        case SlowestOf() if _is_family(delay.delays):
            return _slowest_of_different(delay, key, steps, copy)
        case SlowestOf():
            return _slowest_of_classes(delay, key, steps, copy)
        case _:
            return delay.quantile(_levels(key, steps, copy))


def _is_family(delay: AbstractDelay) -> bool:
    # One uniform draw makes one time: nothing inside to simulate.
    match delay:
        case Shifted() | Scaled():
            return _is_family(delay.delay)
        case Slowest() | SlowestOf() | OrderStatistic() | Latest():
            return False
        case Mixture() | Sum() | Total() | Product() | Tabulated():
            return False
        case _:
            return True


def _part(key: _Key, index: int) -> _Key:
    # A key of its own for each branch of the expression.
    return threefry2x32(key, jnp.uint32(zlib.crc32(b"part")), jnp.uint32(index))


def _levels(key: _Key, steps: _Steps, copy: UInt32[Array, ""]) -> Float[Array, " block"]:
    return levels_from_words(*threefry2x32(key, steps, jnp.broadcast_to(copy, steps.shape)))


def _simulate_mixture(
    delay: Mixture, key: _Key, steps: _Steps, copy: UInt32[Array, ""]
) -> Float[Array, " block"]:
    choice, *parts = (_part(key, index) for index in range(1 + len(delay.components)))
    level = _levels(choice, steps, copy)
    # log P(state ≤ k), from whichever side is the smaller sum: a last state of probability 10⁻⁹ is drawn
    # that often.
    before, after = jnp.cumsum(delay.weights)[:-1], jnp.flip(jnp.cumsum(jnp.flip(delay.weights)))[1:]
    common = after < 0.5
    ends = jnp.where(common, jnp.log1p(-jnp.where(common, after, 0.0)), safe_log(before))
    state = jnp.sum(level[:, None] > ends[None, :], axis=1)
    drawn = [_simulate(part, k, steps, copy) for part, k in zip(delay.components, parts, strict=True)]
    return jnp.select([state == index for index in range(len(drawn))], drawn)


def _sum_of_copies(delay: Total, key: _Key, steps: _Steps, copy: UInt32[Array, ""]) -> Float[Array, " block"]:
    found = jnp.zeros(steps.shape, jnp.result_type(float))
    for place, (part, count) in enumerate(zip(delay.delays, delay.counts, strict=True)):
        own = _part(key, place)

        def one(index, so_far, part=part, count=count, own=own):
            return so_far + _simulate(part, own, steps, copy * count + index)

        found = jax.lax.fori_loop(jnp.uint32(0), jnp.uint32(count), one, found)
    return found


def _slowest_of_identical(
    delay: Slowest, key: _Key, steps: _Steps, copy: UInt32[Array, ""]
) -> Float[Array, " block"]:
    ranks = delay.ranks.astype(jnp.uint32)
    # Two ranks share a counter, one for each word of the block.
    pairs = (ranks + 1) // 2
    first = copy * pairs

    def tile(index, deepest):
        rank = (index * _TILE + jnp.arange(_TILE, dtype=jnp.uint32))[:, None]
        words = threefry2x32(key, *jnp.broadcast_arrays(steps[None, :], first + rank))
        last = jnp.uint32(0xFFFFFFFF)
        even, odd = (jnp.where(2 * rank + half < ranks, word, last) for half, word in enumerate(words))
        return jnp.minimum(deepest, jnp.min(jnp.minimum(even, odd), axis=0))

    tiles = (pairs + _TILE - 1) // _TILE
    start = jnp.full(steps.shape, 0xFFFFFFFF, jnp.uint32)
    deepest = jax.lax.fori_loop(jnp.uint32(0), tiles, tile, start)
    _, finer = threefry2x32(_part(key, 0), steps, jnp.broadcast_to(copy, steps.shape))
    return jnp.where(ranks > 0, delay.delay.quantile(levels_from_words(deepest, finer)), 0.0)


def _slowest_of_composed(
    delay: Slowest, key: _Key, steps: _Steps, copy: UInt32[Array, ""]
) -> Float[Array, " block"]:
    count = delay.ranks.astype(jnp.uint32)

    def one(index, slowest):
        return jnp.maximum(slowest, _simulate(delay.delay, key, steps, copy * count + index))

    return jax.lax.fori_loop(jnp.uint32(0), count, one, jnp.zeros(steps.shape, jnp.result_type(float)))


def _all_but_the_slowest(
    delay: OrderStatistic, key: _Key, steps: _Steps, copy: UInt32[Array, ""]
) -> Float[Array, " block"]:
    # The slowest k + 1 so far are kept, and each tile of ranks is sorted into them.
    ranks, kept = delay.levels.ranks, delay.levels.dropped + 1
    tile_size = min(_TILE, ranks)

    def tile(index, slowest):
        rank = index * tile_size + jnp.arange(tile_size, dtype=jnp.uint32)
        times = jax.vmap(lambda each: _simulate(delay.delay, key, steps, copy * ranks + each))(rank)
        drawn = jnp.where(rank[:, None] < ranks, times, -jnp.inf)
        return jax.lax.top_k(jnp.concatenate([slowest, drawn.T], axis=1), kept)[0]

    start = jnp.full((steps.shape[0], kept), -jnp.inf, jnp.result_type(float))
    return jax.lax.fori_loop(jnp.uint32(0), jnp.uint32(-(-ranks // tile_size)), tile, start)[:, -1]


def _slowest_of_different(
    delay: SlowestOf, key: _Key, steps: _Steps, copy: UInt32[Array, ""]
) -> Float[Array, " block"]:
    size = delay.size
    tile_size = min(_TILE, size)
    whole = size // tile_size

    def tile_of(delays, rank, slowest):
        words = threefry2x32(key, *jnp.broadcast_arrays(steps[None, :], (copy * size + rank)[:, None]))
        times = jax.vmap(lambda law, level: law.quantile(level))(delays, levels_from_words(*words))
        return jnp.maximum(slowest, jnp.max(times, axis=0))

    def tile(index, slowest):
        start = index * tile_size
        part = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, start, tile_size), delay.delays)
        return tile_of(part, start.astype(jnp.uint32) + jnp.arange(tile_size, dtype=jnp.uint32), slowest)

    slowest = jax.lax.fori_loop(0, whole, tile, jnp.zeros(steps.shape, jnp.result_type(float)))
    if size % tile_size:
        rest = jax.tree.map(lambda leaf: leaf[whole * tile_size :], delay.delays)
        slowest = tile_of(rest, jnp.arange(whole * tile_size, size, dtype=jnp.uint32), slowest)
    return slowest


def _slowest_of_classes(
    delay: SlowestOf, key: _Key, steps: _Steps, copy: UInt32[Array, ""]
) -> Float[Array, " block"]:
    # Composed laws per rank or class: one after the other, each under a key of its own.
    def one(slowest, indexed):
        index, law = indexed
        own = threefry2x32(_part(key, 0), jnp.uint32(0), index)
        return jnp.maximum(slowest, _simulate(law, own, steps, copy)), None

    index = jnp.arange(delay.size, dtype=jnp.uint32)
    start = jnp.zeros(steps.shape, jnp.result_type(float))
    return jax.lax.scan(one, start, (index, delay.delays))[0]
