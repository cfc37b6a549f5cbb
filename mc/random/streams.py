"""Streams: one key per source of randomness, found by name.

A draw depends on the seed, the name of its source and its own index, never on how many devices, chunks or
other sources there are. Adding a source therefore leaves the draws of all others alone, and two designs
compared under one seed share their noise.
"""

import zlib

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray, UInt32


def stream(key: PRNGKeyArray, name: str) -> PRNGKeyArray:
    """The key of the source called `name` (folded in by the CRC-32 of the name, stable across runs and machines)."""
    return jax.random.fold_in(key, zlib.crc32(name.encode()))


def key_words(key: PRNGKeyArray) -> tuple[UInt32[Array, ""], UInt32[Array, ""]]:
    """The two words of a threefry key.

    Raises:
        ValueError: for a key of another implementation, whose words mean something else.
    """
    words = jax.random.key_data(key)
    if words.shape != (2,):
        raise ValueError(
            f"expected one threefry2x32 key, as jax.random.key(seed) gives; got key data of shape {words.shape}"
        )
    return jnp.asarray(words[0]), jnp.asarray(words[1])
