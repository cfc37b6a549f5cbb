"""A pass through the layers of a stage: of one step of decoding, or of prompts.

A stage's ranks compute the operations of their layers (`operations`, `roofline`) and wait for messages between them:

| message | collective | where |
|---|---|---|
| partial sums of attention, and of the network | all-reduce over tp | twice a layer |
| tokens to experts, results back | `tokens`, over ep | a layer with experts |
| tokens for the ranks that share an expert, their sums | all-gather, reduce-scatter over etp | likewise |
| embedded tokens, choices of tokens | all-reduce, all-gather over tp | the ends |

Each of the tp ranks of a group sends its part of the group's tokens to experts. With `two_batches` a step computes two
halves of the batch one after the other, each of which reads all weights, and the tokens of one move while the other
computes: of their time M at least 1 − `overlap` of the chip is waited for, and all that takes longer than computing.

What goes with the load of the busiest rank (its experts' operations, but for the weights, and bytes of tokens) is a
function of it, `Pass.at`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from mc.config.names import FORMAT_BYTES
from mc.config.serving import ServingConfig
from mc.inference.layout import Layout
from mc.inference.operations import Operation, Tokens, end_operations, layer_operations
from mc.inference.roofline import Roofline, Times
from mc.inference.tokens import METADATA_BYTES, TokenLinks, token_bytes, token_links
from mc.parallel import Group
from mc.training import AbstractPrices, Chip, Price
from mc.transformer import MOE, Transformer

# Bytes of a candidate for the next token: its number and its logit.
_CANDIDATE = 8.0


@dataclass
class Sent:
    """Messages that a stage waits for, one after the other.

    Attributes:
        latency: seconds that they would take without bytes.
        bandwidth: the rest.
        count: how many.
        crossing: by tier, how many cross it, and seconds of their bytes there.
    """

    latency: float = 0.0
    bandwidth: float = 0.0
    count: float = 0.0
    crossing: dict[int, tuple[float, float]] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """In all."""
        return self.latency + self.bandwidth

    def add(self, price: Price, tier: int, times: float = 1.0) -> None:
        """Adds so many messages."""
        self.latency += times * float(price.latency)
        self.bandwidth += times * float(price.bandwidth)
        self.count += times
        count, seconds = self.crossing.get(tier, (0.0, 0.0))
        self.crossing[tier] = count + times, seconds + times * float(price.bandwidth)


@dataclass(frozen=True)
class At:
    """A pass where the busiest rank has so many times the mean load.

    Attributes:
        work: its operations.
        sent: messages whatever the load.
        tokens: to experts and back.
        shown: part of the seconds of `tokens` that is waited for.
    """

    work: Times
    sent: Sent
    tokens: Sent
    shown: float

    @property
    def seconds(self) -> float:
        """In all."""
        return self.work.seconds + self.sent.seconds + self.shown * self.tokens.seconds


@dataclass(frozen=True)
class Pass:
    """The layers of a stage, once.

    Attributes:
        plain: operations whatever the load.
        routed: of experts.
        sent: messages.
        visits: dispatches and combines: bytes of each kind, and how many.
        links: that they take.
        halves: 2 where they move while the other half of the batch computes, 1 where they are waited for.
        overlap: part of tokens' time that is hidden at most.
        model: what times follow from.
        tier: the outermost that tokens cross.
    """

    plain: Times
    routed: tuple[tuple[Operation, float], ...]
    sent: Sent
    visits: tuple[tuple[float, float], ...]
    links: TokenLinks | None
    halves: int
    overlap: float
    model: "Model"
    tier: int

    def at(self, load: float = 1.0) -> At:
        """The pass under a load."""
        work = Times()
        work.add(self.plain)
        for operation, times in self.routed:
            work.add(self.model.roofline.times(operation.loaded(load)), times)
        tokens = Sent()
        for size, times in self.visits:
            assert self.links is not None
            tokens.add(self.links.price(load * size, self.model.serving.kernels), self.tier, times)
        shown = 1.0
        if self.halves > 1 and tokens.seconds > 0:
            moved = tokens.seconds
            shown = max(1.0 - self.overlap, (moved - work.seconds) / moved, 0.0)
        return At(work, self.sent, tokens, shown)

    @property
    def waits(self) -> int:
        """How many times ranks wait for each other, at least once."""
        return max(1, round(self.sent.count + sum(times for _, times in self.visits)))


class Fabric(NamedTuple):
    """The network around a replica.

    Attributes:
        prices: of messages, by the protocol that is asked for.
        plain: without protocols.
        node: ranks of a node.
    """

    prices: AbstractPrices
    plain: AbstractPrices
    node: int


class Model:
    """What passes of one layout follow from."""

    def __init__(
        self, serving: ServingConfig, shape: Transformer, layout: Layout, chip: Chip, fabric: Fabric
    ):
        """Args: the block; shape; layout; chip; fabric."""
        self.serving, self.shape, self.layout, self.chip = serving, shape, layout, chip
        self.prices = fabric.prices
        self.roofline = Roofline(chip, serving.formats, serving.kernels.attention)
        group = layout.experts
        self.links = token_links(fabric.plain, group, fabric.node) if group.axes else None
        self.tier = self.prices.tier(group)

    def stage(self, layers: Iterable[int], tokens: Tokens, *, first: bool, last: bool) -> Pass:
        """A pass of some layers, with the ends of the model."""
        halves = 2 if self.serving.two_batches and self.links is not None else 1
        part = tokens._replace(sequences=tokens.sequences / halves)
        kinds = [self.shape.layer_kinds[index] for index in layers]
        plain, sent = Times(), Sent()
        routed: list[tuple[Operation, float]] = []
        visits: list[tuple[float, float]] = []
        for kind in dict.fromkeys(kinds):
            times = float(kinds.count(kind) * halves)
            for each in layer_operations(self.shape, kind, self.layout, self.serving.formats, part):
                if each.routed:
                    routed.append((each, times))
                else:
                    plain.add(self.roofline.times(each), times)
            self._messages(sent, kind, part, times)
            if kind == MOE and self.links is not None:
                visits += [(size, times) for size in self._visits(part)]
        before, after = end_operations(self.shape, self.layout, self.serving.formats, tokens)
        if first:
            plain.add(self.roofline.total(before))
            self._send(sent, "all-reduce", self.layout.tensor, self._width(tokens))
        if last:
            plain.add(self.roofline.total(after))
            asked = tokens.sequences * (1.0 if tokens.is_prompt else tokens.queries)
            self._send(sent, "all-gather", self.layout.tensor, _CANDIDATE * asked * self.layout.tp)
        overlap = float(self.chip.efficiency.overlap)
        return Pass(plain, tuple(routed), sent, tuple(visits), self.links, halves, overlap, self, self.tier)

    def transfer(self, tokens: Tokens) -> Price:
        """To the next stage."""
        width = FORMAT_BYTES[self.serving.formats.pipeline] / self.layout.tp
        return self.prices.price("send-recv", self.layout.pipeline, width * tokens.total * self.shape.hidden)

    def _width(self, tokens: Tokens) -> float:
        return FORMAT_BYTES[self.serving.formats.tensor] * tokens.total * self.shape.hidden

    def _send(self, into: Sent, collective: str, group: Group, size: float, times: float = 1.0) -> None:
        if group.axes and size > 0:
            into.add(self.prices.price(collective, group, size), self.prices.tier(group), times)

    def _messages(self, into: Sent, kind: str, tokens: Tokens, times: float) -> None:
        layout = self.layout
        self._send(into, "all-reduce", layout.tensor, self._width(tokens), 2 * times)
        experts = self.shape.experts
        if kind == MOE and layout.ep > 1 and layout.etp > 1 and experts is not None:
            pooled = self._width(tokens) * layout.dp * experts.top_k / layout.ep
            for collective in ("all-gather", "reduce-scatter"):
                self._send(into, collective, layout.expert_tensor, pooled, times)

    def _visits(self, tokens: Tokens) -> tuple[float, float]:
        """Bytes of a dispatch and of a combine."""
        experts, formats, hidden = self.shape.experts, self.serving.formats, self.shape.hidden
        assert experts is not None
        copies = tokens.total / self.layout.tp * experts.top_k
        return (
            copies * (token_bytes(hidden, formats.dispatch) + METADATA_BYTES),
            copies * token_bytes(hidden, formats.combine),
        )


@lru_cache(maxsize=64)
def context_keys(shape: Transformer, prompt: int, output: int) -> float:
    """Keys that a token of an answer meets, in the mean over the answer and the layers."""
    if shape.window is None:
        return prompt + output / 2
    return sum(shape.keys(prompt + made, causal=False) for made in range(output)) / output
