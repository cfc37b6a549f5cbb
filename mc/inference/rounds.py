"""Rounds of decoding on a pipeline: a (max, +) recursion.

A batch is in p parts. Stage s works on part k when the stage before has sent it and it has finished part k − 1; the first
stage, when the last one has chosen part k's token of the round before:

    end[s, k] = max(end[s − 1, k] + x, end[s, k − 1]) + S[s, k],

with x the time between stages and end[−1, k] that of the last stage in the round before (a token takes no time to send). A
round takes what lies between two ends of the last part. Without noise that is `Server.round`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

# Rounds before those that are kept: the pipeline fills.
WARM_UP = 8


def rounds(times: NDArray[np.float64], transfer: float) -> NDArray[np.float64]:
    """Seconds of rounds, [realisations, rounds].

    Args:
        times: of stages, [stages, realisations, (rounds + `WARM_UP`) x stages]: part after part.
        transfer: seconds between stages.
    """
    stages, realisations, count = times.shape
    parts = np.moveaxis(times.reshape(stages, realisations, count // stages, stages), (2, 3), (0, 1))
    ends = np.asarray(_last_ends(jnp.asarray(parts), transfer), np.float64)
    # Sums of many rounds would lose digits in 32 bits, so each round is told from where it began.
    return np.moveaxis(ends, 0, 1)[:, WARM_UP:]


@eqx.filter_jit
def _last_ends(parts: Array, transfer: float) -> Array:
    """How much later the last part ends than in the round before, [rounds, realisations].

    Args:
        parts: [rounds, parts, stages, realisations].
        transfer: seconds.
    """
    count = parts.shape[1]

    def one(ends: Array, times: Array) -> tuple[Array, Array]:
        # `ends` are of the last round, [stages, parts, realisations].
        free = [ends[stage, count - 1] for stage in range(count)]
        now = [[ends[0, 0]] * count for _ in range(count)]
        for part in range(count):
            ready = ends[count - 1, part]
            for stage in range(count):
                free[stage] = jnp.maximum(ready, free[stage]) + times[part, stage]
                now[stage][part] = free[stage]
                ready = free[stage] + transfer
        found = jnp.stack([jnp.stack(row) for row in now])
        later = found[count - 1, count - 1] - ends[count - 1, count - 1]
        return found - found[count - 1, count - 1][None, None, :], later

    start = jnp.zeros((count, count, parts.shape[-1]))
    return jax.lax.scan(one, start, parts)[1]
