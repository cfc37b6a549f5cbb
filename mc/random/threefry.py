"""Threefry-2x32-20 as plain array code, so that the compiler can fuse it with whatever consumes the bits.

`jax.random.bits` uses the same function but writes its words to memory, which is what a loop over millions of
ranks then spends its time on. Written out, the 20 rounds fuse with the transform and the running maximum, and
nothing is stored. The generator is the one of Random123, trusted because it passes BigCrush with a margin of
seven rounds and because it is JAX's default; the tests hold it against the published known answers and
against `jax.random.bits`.

References:
    Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3. SC 2011.
"""

import jax.numpy as jnp
from jaxtyping import Array, UInt32

_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
_PARITY = 0x1BD11BDA
_ROUNDS = 20


def threefry2x32(
    key: tuple[UInt32[Array, ""], UInt32[Array, ""]],
    high: UInt32[Array, "*shape"],
    low: UInt32[Array, "*shape"],
) -> tuple[UInt32[Array, "*shape"], UInt32[Array, "*shape"]]:
    """Two independent 32-bit words for each counter (`high`, `low`) under `key`.

    Args:
        key: the two key words.
        high: first counter word; any shape.
        low: second counter word; same shape.

    Returns:
        Two arrays of the counters' shape.
    """
    schedule = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(_PARITY))
    high, low = high + schedule[0], low + schedule[1]
    for index in range(_ROUNDS):
        high = high + low
        low = _rotate_left(low, _ROTATIONS[index % 8]) ^ high
        if index % 4 == 3:
            injection = index // 4 + 1
            high = high + schedule[injection % 3]
            low = low + schedule[(injection + 1) % 3] + jnp.uint32(injection)
    return high, low


def _rotate_left(word: UInt32[Array, "*shape"], bits: int) -> UInt32[Array, "*shape"]:
    return (word << jnp.uint32(bits)) | (word >> jnp.uint32(32 - bits))
