"""How long each pass of a micro-batch through each part of the model takes.

A rank's pass through a layer is its operations (`roofline.py`) and what it waits for. A message that computing waits for
takes its price, and the time that ranks wait for each other. Of one that moves behind computing (`Message.behind`) only the
part is waited for that does not hide:

- behind products, in pieces beside them (`segment`) or of gradients of inputs or of weights beside the others: what hides
  is at most the `overlap` that the chip reaches, since the message takes part of the chip and of its memory, and at most
  the time of those products;
- behind another micro-batch (experts): likewise, but for the limit;
- tokens that are sent once to each node, and from there to its ranks at the same time: the longer of the two;
- behind attention (keys and values of a ring): all but what takes longer than the attention to those that came before,
  which is (c − 1)/c of it;
- behind the layers before (gathers and reductions of ZeRO 3): all but what takes longer than the pass, and but for the
  first layer's, which nothing is there to hide.

The host's time is compared with all of that, pass by pass. So a pass has four parts that add up to it: operations, what
it waits for by dimension, and what the host takes beyond.

All is plain arithmetic (`arithmetic.py`): with floats it prices thousands of plans a second, with arrays as many
variants at once, and it can be traced.
"""

from dataclasses import dataclass, field, replace
from functools import lru_cache

from mc.config.recompute import Recompute
from mc.parallel import Content, Message, Plan, contents, messages
from mc.training.arithmetic import Number, maximum, positive
from mc.training.efficiency import Chip
from mc.training.pass_times import (
    FORWARD,
    INPUT,
    PASSES,
    ROUTED,
    SPLIT,
    WEIGHT,
    PartTimes,
    PassTime,
    Piece,
    Times,
)
from mc.training.prices import FREE, AbstractPrices, Price
from mc.training.roofline import Roofline, Tally
from mc.transformer import (
    Segment,
    Split,
    Transformer,
    embedding_segment,
    head_segment,
    recomputed,
    segments,
)


@dataclass
class _Pass:
    """A pass while it is added up; `behind` are seconds of messages that move behind layers."""

    work: Tally = field(default_factory=Tally)
    waiting: dict[str, Number] = field(default_factory=dict)
    behind: dict[str, Number] = field(default_factory=dict)
    latency: Number = 0.0
    to_nodes: Number = 0.0
    to_ranks: Number = 0.0
    exchanges: Number = 0.0
    collectives: Number = 0.0

    def add(self, other: "_Pass", times: float) -> None:
        self.work.add(other.work, times)
        for mine, theirs in ((self.waiting, other.waiting), (self.behind, other.behind)):
            for name, seconds in theirs.items():
                mine[name] = mine.get(name, 0.0) + times * seconds
        self.latency = self.latency + times * other.latency
        self.to_nodes = self.to_nodes + times * other.to_nodes
        self.to_ranks = self.to_ranks + times * other.to_ranks
        self.exchanges = self.exchanges + times * other.exchanges
        self.collectives = self.collectives + times * other.collectives

    def wait(self, dimension: str, seconds: Number, latency: Number) -> None:
        self.waiting[dimension] = self.waiting.get(dimension, 0.0) + seconds
        self.latency = self.latency + latency


def times_of(plan: Plan, shape: Transformer, chip: Chip, prices: AbstractPrices) -> Times:
    """The passes of a plan on a chip, with messages at given prices.

    Raises:
        ChipError: the chip does not have a format of the plan.
    """
    return _Builder(plan, shape, chip, prices).times()


def pieces_of(plan: Plan, shape: Transformer, chip: Chip, prices: AbstractPrices) -> dict[str, Piece]:
    """What parts of the model are made of, without the host: a layer of each kind, the `embedding` and the `head`.

    A layer has the plan's recomputation. What a part takes is never less than the sum of its pieces.

    Raises:
        ChipError: the chip does not have a format of the plan.
    """
    return _Builder(plan, shape, chip, prices).pieces()


class _Builder:
    """Adds up layers of each kind, and of them the parts of the model."""

    def __init__(self, plan: Plan, shape: Transformer, chip: Chip, prices: AbstractPrices):
        self.plan, self.shape, self.reached, self.prices = plan, shape, chip.efficiency, prices
        self.roofline = Roofline(chip, plan.formats)
        # Whether the schedule runs gradients of inputs and of weights one without the other.
        self.apart = plan.schedule in SPLIT
        self.messages = messages(shape, plan)
        self.by_segment: dict[str, list[Message]] = {}
        for each in self.messages:
            if each.segment is not None:
                self.by_segment.setdefault(each.segment, []).append(each)
        # A layer of each kind, with nothing and with the plan's parts computed again.
        self.layers: dict[tuple[str, Recompute], dict[str, _Pass]] = {}

    def times(self) -> Times:
        """All parts; those with the same content take as long."""
        known: dict[Content, PartTimes] = {}
        parts = []
        for stage in contents(self.shape, self.plan):
            for each in stage:
                if each not in known:
                    known[each] = self._part(each)
            parts.append(tuple(known[each] for each in stage))
        step = tuple((each, self._price(each)) for each in self.messages if each.per == "step")
        return Times(tuple(parts), (self._transfer("forward"), self._transfer("backward")), step)

    def pieces(self) -> dict[str, Piece]:
        """Each piece alone."""
        found = {kind: self._layer(kind, self.plan.recompute) for kind in self.shape.kind_counts}
        for name, segment in (("embedding", _embedding), ("head", _head)):
            found[name] = {each: _Pass() for each in PASSES}
            self._add(found[name], segment(self.shape, self.plan.split), "none")
        return {name: self._piece(passes) for name, passes in found.items()}

    def _piece(self, passes: dict[str, _Pass]) -> Piece:
        def busy(one: _Pass) -> Number:
            tokens = maximum(one.to_nodes, one.to_ranks) if self.plan.ep > 1 else 0.0
            return one.work.compute + sum(one.waiting.values()) + tokens

        forward, inputs, weights = (passes[name] for name in PASSES)
        behind = [sum(one.behind.values()) for one in (forward, inputs, weights)]
        return Piece(
            (busy(forward), busy(inputs), busy(weights)),
            (behind[0], behind[1], behind[2]),
        )

    def _price(self, message: Message) -> Price:
        return self.prices.price(message.collective, message.group, message.bytes)

    def _transfer(self, where: str) -> Price:
        latency, bandwidth = FREE
        for message in self.messages:
            if message.per == "chunk" and message.where == where:
                price = self._price(message)
                latency = latency + price.latency + self.reached.wait
                bandwidth = bandwidth + price.bandwidth
        return Price(latency, bandwidth)

    def _layer(self, kind: str, recompute: Recompute) -> dict[str, _Pass]:
        found = self.layers.get((kind, recompute))
        if found is None:
            found = self.layers[kind, recompute] = {name: _Pass() for name in PASSES}
            for segment in segments(self.shape, kind, self.plan.split):
                self._add(found, segment, recompute)
        return found

    def _add(self, passes: dict[str, _Pass], segment: Segment, recompute: Recompute) -> None:
        tally = self.roofline.tally
        forward = tally(segment.forward)
        again = recomputed(segment, recompute)
        inputs = Tally()
        inputs.add(forward if again is segment.forward else tally(again))
        inputs.add(tally(segment.backward_input))
        weights = tally(segment.backward_weight)
        for name, work in zip(PASSES, (forward, inputs, weights), strict=True):
            passes[name].work.add(work)
        for message in self.by_segment.get(segment.name, ()):
            if message.again and recompute == "none":
                continue
            ahead = message.where == "forward"
            into, beside = (passes[FORWARD], forward) if ahead else (passes[INPUT], inputs)
            if message.dimension == ROUTED:
                self._carry(into, message)
            else:
                self._send(into, message, beside, weights)

    def _carry(self, into: _Pass, message: Message) -> None:
        """Tokens to experts: those between nodes and those inside of them add up apart."""
        price, reached = self._price(message), self.reached
        shown = message.each * (1.0 if message.blocking else 1.0 - reached.overlap)
        if message.to_nodes:
            into.to_nodes = into.to_nodes + shown * price.seconds
        else:
            into.to_ranks = into.to_ranks + shown * price.seconds
        if message.beside:
            return
        into.collectives = into.collectives + message.each
        into.latency = into.latency + shown * price.latency
        if message.blocking:
            late = message.each * reached.wait
            into.wait(message.dimension, late, late)
            into.exchanges = into.exchanges + message.each

    def _send(self, into: _Pass, message: Message, beside: Tally, weights: Tally) -> None:
        price, reached = self._price(message), self.reached
        seconds, latency = message.each * price.seconds, message.each * price.latency
        into.collectives = into.collectives + message.each
        shown = (1.0 - reached.overlap) * seconds
        match message.behind:
            case None:
                late = message.each * reached.wait
                into.wait(message.dimension, seconds + late, latency + late)
                into.exchanges = into.exchanges + message.each
            case "layers":
                into.behind[message.dimension] = into.behind.get(message.dimension, 0.0) + seconds
            case "attention":
                ranks = message.group.size
                into.wait(message.dimension, positive(seconds - beside.attention * (ranks - 1) / ranks), 0.0)
            case "micro-batch":
                into.wait(message.dimension, shown, (1.0 - reached.overlap) * latency)
            case behind:
                window = weights.compute if behind == "weight gradients" else beside.compute
                into.wait(
                    message.dimension, maximum(shown, seconds - window), (1.0 - reached.overlap) * latency
                )

    def _part(self, content: Content) -> PartTimes:
        passes = {name: _Pass() for name in PASSES}
        for kind, layers, again in content.layers:
            counts: tuple[tuple[Recompute, int], ...] = (
                ("none", layers - again),
                (self.plan.recompute, again),
            )
            for recompute, count in counts:
                if count:
                    found = self._layer(kind, recompute)
                    for name in PASSES:
                        passes[name].add(found[name], float(count))
        if content.is_first:
            self._add(passes, _embedding(self.shape, self.plan.split), "none")
        if content.is_last:
            self._add(passes, _head(self.shape, self.plan.split), "none")
        return self._finished(passes, max(content.dense + content.moe, 1))

    def _finished(self, passes: dict[str, _Pass], layers: int) -> PartTimes:
        """With what moves behind the passes, and with the host."""
        reached = self.reached
        hosts: dict[str, Number] = {}
        waits: dict[str, dict[str, Number]] = {}
        busies: dict[str, Number] = {}
        for name, found in passes.items():
            waits[name] = waiting = dict(found.waiting)
            if self.plan.ep > 1 and name != WEIGHT:
                tokens = maximum(found.to_nodes, found.to_ranks)
                waiting[ROUTED] = waiting.get(ROUTED, 0.0) + tokens
            busy = found.work.compute + sum(waiting.values())
            # With weights' gradients a backward pass has more to hide behind.
            more = passes[WEIGHT].work.compute if name == INPUT and not self.apart else 0.0
            for dimension, seconds in found.behind.items():
                # The first of as many gathers as there are layers has nothing before it.
                exposed = seconds / layers + positive(seconds * (1.0 - 1.0 / layers) - busy - more)
                waiting[dimension] = waiting.get(dimension, 0.0) + exposed
                busy = busy + exposed
            busies[name] = busy
            hosts[name] = reached.launch * found.work.kernels + reached.collective_launch * found.collectives
        for name in (FORWARD, INPUT):
            hosts[name] = hosts[name] + reached.pass_launch
        if not self.apart:
            # One pass to the host.
            hosts[INPUT] = hosts[INPUT] + hosts.pop(WEIGHT)
            busies[INPUT] = busies[INPUT] + busies[WEIGHT]
        return PartTimes(
            *(
                PassTime(
                    compute=found.work.compute,
                    ideal=found.work.ideal,
                    routed=found.work.routed,
                    attention=found.work.attention,
                    waiting=waits[name],
                    latency=found.latency,
                    to_nodes=found.to_nodes,
                    to_ranks=found.to_ranks,
                    host=positive(hosts[name] - busies[name]) if name in hosts else 0.0,
                    exchanges=found.exchanges,
                )
                for name, found in passes.items()
            )
        )


@lru_cache(maxsize=4096)
def _embedding(shape: Transformer, split: Split) -> Segment:
    return embedding_segment(shape, split)


@lru_cache(maxsize=4096)
def _head(shape: Transformer, split: Split) -> Segment:
    # Logits are computed in the format of activations.
    return head_segment(shape, replace(split, operand_bytes=split.activation_bytes))
