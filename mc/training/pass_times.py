"""Seconds of the passes of a micro-batch through the parts of a model: what `times.py` works out and all else reads."""

from collections.abc import Mapping
from dataclasses import dataclass

from mc.parallel import Message
from mc.training.arithmetic import Number, maximum
from mc.training.prices import Price

# The passes that schedules tell apart.
FORWARD, INPUT, WEIGHT = "forward", "backward_input", "backward_weight"
PASSES = (FORWARD, INPUT, WEIGHT)
# The dimension whose messages carry tokens to experts.
ROUTED = "ep"
# Schedules that run gradients of inputs and of weights one without the other.
SPLIT = ("zb-h1",)


@dataclass(frozen=True)
class PassTime:
    """One pass of a micro-batch through a part of the model.

    Attributes:
        compute: seconds of the chip's operations.
        ideal: seconds that their products would take at the peak.
        routed: seconds of `compute` that go with the tokens that a rank's experts get.
        attention: seconds of `compute` that attention among tokens takes, in proportion to their pairs.
        waiting: seconds that computing waits for messages, by dimension.
        latency: seconds of `waiting` that messages of no size would take.
        to_nodes: seconds in which tokens move between nodes, sent once to each, and
        to_ranks: to the ranks of experts, at the same time; `waiting` has the larger one.
        host: seconds that the host takes beyond all of that.
        exchanges: how many times ranks wait for each other.
    """

    compute: Number
    ideal: Number
    routed: Number
    attention: Number
    waiting: Mapping[str, Number]
    latency: Number
    to_nodes: Number
    to_ranks: Number
    host: Number
    exchanges: Number

    @property
    def seconds(self) -> Number:
        """In all."""
        return self.compute + sum(self.waiting.values()) + self.host

    def tokens(self, ranks: Number = 1.0, nodes: Number = 1.0) -> Number:
        """Seconds of tokens to experts where the busiest rank, and the busiest node, get so many times the mean."""
        return maximum(nodes * self.to_nodes, ranks * self.to_ranks)

    def growing(self, ranks: float, nodes: float) -> float:
        """What of the seconds of tokens goes with the load of the busiest rank, by a line through those at these loads.

        All of them where ranks wait for each other; where nodes do, as much as takes `nodes` times as long when the
        load is `ranks`.
        """
        if nodes * self.to_nodes < ranks * self.to_ranks:
            return self.to_ranks
        return self.to_nodes * (nodes - 1.0) / (ranks - 1.0) if ranks > 1.0 else 0.0


@dataclass(frozen=True)
class PartTimes:
    """A part of the model: each pass of one micro-batch.

    Attributes:
        forward: the forward pass.
        backward_input: what is computed again, and the gradients of what came in; with the host's time for both halves where
            the schedule runs them as one.
        backward_weight: the gradients of parameters.
    """

    forward: PassTime
    backward_input: PassTime
    backward_weight: PassTime


@dataclass(frozen=True)
class Times:
    """The passes of a plan.

    Attributes:
        parts: per stage and chunk.
        transfer: of activations to the next stage, and of their gradients back.
        step: messages of the whole step, each with its price.
    """

    parts: tuple[tuple[PartTimes, ...], ...]
    transfer: tuple[Price, Price]
    step: tuple[tuple[Message, Price], ...]


@dataclass(frozen=True)
class Piece:
    """A layer of one kind, or an end of the model: seconds of each pass of one micro-batch, in the order of `PASSES`.

    Attributes:
        busy: of operations, and of messages that they wait for.
        behind: of messages that move behind layers.
    """

    busy: tuple[Number, Number, Number]
    behind: tuple[Number, Number, Number]
