"""What is drawn in independent pieces, drawn on all devices of this process, a share of the pieces on each.

A piece is found by its numbers alone, so who draws it changes nothing.
"""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

_Pieces = TypeVar("_Pieces")
_Drawn = TypeVar("_Drawn")


def on_all_devices(draw: Callable[[_Pieces], _Drawn], pieces: _Pieces) -> _Drawn:
    """`draw(pieces)`, shared out among devices.

    Args:
        draw: from arrays with an axis of pieces, which is the first, to arrays with the same; no piece looks at another.
        pieces: the arrays. Where there are fewer of them than devices, devices are left out.
    """
    count = len(jax.tree.leaves(pieces)[0])
    devices = np.array(jax.local_devices()[:count])
    if devices.size == 1:
        return draw(pieces)
    # Shares are of one size: the last pieces are repeated.
    share = -(-count // devices.size)
    chosen = np.minimum(np.arange(share * devices.size), count - 1)
    shares = jax.tree.map(lambda leaf: jnp.asarray(leaf)[chosen], pieces)
    spec = PartitionSpec("pieces")
    mapped = jax.shard_map(
        draw, mesh=Mesh(devices, ("pieces",)), in_specs=(spec,), out_specs=spec, check_vma=False
    )
    return jax.tree.map(lambda leaf: leaf[:count], mapped(shares))
