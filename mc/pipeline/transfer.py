"""What the messages between stages take."""

from typing import Any

import equinox as eqx


class Transfer(eqx.Module):
    """Seconds that messages take between neighbours.

    Boundary b lies between stages b and b + 1; the last, between the last stage and the first, is crossed by
    interleaved schedules alone. The two messages of a joint operation travel at once.

    Attributes:
        forward: activations over each boundary: one number, [stages], or, in the executor, [stages, batch].
        backward: gradients; likewise.
        blocking: whether the sender waits until the message is over, or computes meanwhile. The receiver waits in both
            cases, if it has nothing else to do before.
    """

    forward: Any
    backward: Any
    blocking: bool = eqx.field(static=True, default=False)
