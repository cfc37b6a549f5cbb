"""Three ways to the same distribution, behind one function.

- `direct` draws every rank (`mc.delays.direct`): the reference.
- `exact` draws the slowest rank itself by order statistics: one draw per step, whatever the number of ranks.
  Terms of a sum, and classes of
  different ranks as long as they are few, are drawn one by one; only what must be inverted as a whole is
  tabulated.
- `grid` computes the distribution on a grid and draws from that (`mc.delays.grid`).
"""

from collections.abc import Callable
from typing import Literal, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mc.delays.affine import Scaled, Shifted
from mc.delays.base import AbstractDelay
from mc.delays.direct import draw_direct
from mc.delays.grid import on_grid
from mc.delays.product import Product
from mc.delays.slowest import Latest, SlowestOf
from mc.delays.sum import Sum
from mc.delays.table import with_inverse
from mc.errors import InputError
from mc.random import draw_levels, stream

Method = Literal["exact", "direct", "grid"]

# Up to here drawing each class of ranks on its own is cheaper than tabulating the law of their maximum.
_FEW_CLASSES = 8


def draw(
    delay: AbstractDelay, key: PRNGKeyArray, count: int, method: Method = "exact"
) -> Float[Array, " count"]:
    """`count` independent draws of `delay`, in seconds.

    Args:
        delay: the law; parameters may be traced.
        key: a threefry key.
        count: number of draws, below 2³².
        method: see above.

    Raises:
        InputError: for an unknown method.
    """
    return sampler(delay, method)(key, count)


def sampler(
    delay: AbstractDelay, method: Method = "exact"
) -> Callable[[PRNGKeyArray, int], Float[Array, " count"]]:
    """`draw` with its tables built once: a function of (key, count)."""
    match method:
        case "direct":
            return lambda key, count: draw_direct(delay, key, count)
        case "grid":
            law = on_grid(delay)
            return lambda key, count: law.quantile(draw_levels(key, (count,)))
        case "exact":
            prepared = _prepare(delay)
            return lambda key, count: _draw_exact(prepared, key, count)
        case _:
            raise InputError(f"method: expected one of {', '.join(get_args(Method))}; got {method!r}")


def _prepare(delay: AbstractDelay) -> AbstractDelay:
    # Tables only where a quantile is needed: below the sums and classes that `_draw_exact` takes apart.
    match delay:
        case Shifted():
            return Shifted(_prepare(delay.delay), delay.shift)
        case Scaled():
            return Scaled(_prepare(delay.delay), delay.factor)
        case Sum():
            return Sum(_prepare(delay.first), _prepare(delay.second))
        case Product():
            return Product(_prepare(delay.first), _prepare(delay.second))
        case SlowestOf() if delay.size <= _FEW_CLASSES:
            return SlowestOf(jax.vmap(_prepare)(delay.delays))
        case Latest():
            return Latest(tuple(map(_prepare, delay.delays)))
        case _:
            return with_inverse(delay)


def _draw_exact(delay: AbstractDelay, key: PRNGKeyArray, count: int) -> Float[Array, " count"]:
    match delay:
        case Shifted():
            return _draw_exact(delay.delay, key, count) + delay.shift
        case Scaled():
            return _draw_exact(delay.delay, key, count) * delay.factor
        case Sum():
            first, second = stream(key, "first"), stream(key, "second")
            return _draw_exact(delay.first, first, count) + _draw_exact(delay.second, second, count)
        case Product():
            first, second = stream(key, "first"), stream(key, "second")
            return _draw_exact(delay.first, first, count) * _draw_exact(delay.second, second, count)
        case SlowestOf() if delay.size <= _FEW_CLASSES:
            keys = jax.vmap(lambda index: jax.random.fold_in(key, index))(jnp.arange(delay.size))
            return jnp.max(jax.vmap(lambda law, k: _draw_exact(law, k, count))(delay.delays, keys), axis=0)
        case Latest():
            keys = [jax.random.fold_in(key, index) for index in range(len(delay.delays))]
            drawn = [_draw_exact(part, own, count) for part, own in zip(delay.delays, keys, strict=True)]
            return jnp.max(jnp.stack(drawn), axis=0)
        case _:
            return delay.quantile(draw_levels(key, (count,)))
