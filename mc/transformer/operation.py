"""Operations: what a rank does for one micro-batch, in the terms that a roofline needs.

A matrix product C[m, n] = A[m, k] B[k, n], `count` of them, takes 2mnk FLOP each and moves its operands and
its result through memory once. Fused attention takes the FLOP of its products and moves queries, keys,
values and outputs only. Everything else (norms, activation functions, residuals) is its bytes.

Operations of one part of a layer make a `Segment`, with the three passes that schedules tell apart: forward,
gradients of inputs and gradients of weights (ZB-H1 puts the last elsewhere; others run both as one).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from mc.config.recompute import LAYER, Recompute, parts_of

Kind = Literal["matmul", "attention", "memory"]
# The part of attention that selective recomputation runs again (Korthikanti et al. 2022, section 5).
CORE = frozenset({"attention", "scores", "softmax", "attention dropout", "context"})
# What else runs again, by the parts of `mc.config.recompute`. A product that reads narrower numbers has them converted again.
_AGAIN = {
    "attention": CORE,
    "norms": {
        *("attention norm", "query norm", "key and value norm", "mlp norm", "experts norm"),
        *("qkv convert", "query convert", "query down convert", "query up convert"),
        *("key and value down convert", "key and value up convert"),
        *("mlp up convert", "shared up convert", "router convert"),
    },
    "mla_up": {
        *("query", "query convert", "query up", "query up convert"),
        *("key and value up", "key and value up convert", "rotary"),
    },
    "activations": {
        f"{network} {name}"
        for network in ("mlp", "expert", "shared")
        for name in ("activation", "down convert")
    },
    "mlp": frozenset(),
    "experts": frozenset(),
}
# Of a segment that runs again whole, what lies around the network.
_AROUND = ("norm", "post-norm", "residual")


class Operation(NamedTuple):
    """One kernel, or `count` alike; `flops` and `bytes` are those of all together.

    Attributes:
        name: what it computes.
        kind: what its time follows from.
        flops: of its products.
        bytes: through memory.
        m: rows of the result; of attention, queries of a head.
        n: columns of the result; of attention, keys of a head.
        k: what is summed over; of attention, the width of a head.
        count: how many products; of attention, sequences times heads.
    """

    name: str
    kind: Kind
    flops: float
    bytes: float
    m: float = 0
    n: float = 0
    k: float = 0
    # A tuple's own `count` is of no use here.
    count: float = 1  # pyright: ignore[reportIncompatibleMethodOverride]


Operations = tuple[Operation, ...]


class Segment(NamedTuple):
    """A part of a layer, between two places where ranks may have to exchange.

    Attributes:
        name: `attention`, `mlp`, `experts`, `embedding` or `head`.
        forward: in order.
        backward_input: gradients of what came in.
        backward_weight: gradients of the parameters, added up over micro-batches.
    """

    name: str
    forward: Operations
    backward_input: Operations
    backward_weight: Operations


@dataclass(frozen=True)
class Split:
    """How a layer is cut, and how its numbers are stored.

    Attributes:
        tp: ranks that share each matrix.
        cp: ranks that share each sequence.
        ep: ranks that share the experts.
        etp: ranks that share each expert.
        sequence_parallel: whether what `tp` does not cut is cut along the sequence.
        micro_batch: sequences.
        sequence_length: tokens of one.
        fused_attention: whether scores stay on the chip, and those after the query are never computed.
        activation_bytes: of an activation in memory.
        operand_bytes: of an operand of a matrix product; less than an activation if it is converted first.
        gradient_bytes: of a weight's gradient while micro-batches add up.
        kept_bytes: of what products and activation functions read, while it is kept for the backward pass; as they read
            it if None.
    """

    micro_batch: float
    sequence_length: float
    tp: int = 1
    cp: int = 1
    ep: int = 1
    etp: int = 1
    sequence_parallel: bool = False
    fused_attention: bool = True
    activation_bytes: float = 2.0
    operand_bytes: float = 2.0
    gradient_bytes: float = 4.0
    kept_bytes: float | None = None

    @property
    def kept_operand_bytes(self) -> float:
        """Of an operand that is kept."""
        return self.operand_bytes if self.kept_bytes is None else min(self.kept_bytes, self.operand_bytes)

    @property
    def kept_activation_bytes(self) -> float:
        """Of what an activation function reads, or a part of a layer that is computed again."""
        return (
            self.activation_bytes if self.kept_bytes is None else min(self.kept_bytes, self.activation_bytes)
        )

    @property
    def tokens(self) -> float:
        """Tokens of a micro-batch that a rank and its tensor parallel peers compute together."""
        return self.micro_batch * self.sequence_length / self.cp

    @property
    def tokens_apart(self) -> float:
        """Tokens that a rank has in the parts that tensor parallelism leaves whole."""
        return self.tokens / self.tp if self.sequence_parallel else self.tokens


def memory(name: str, size: float) -> Operation:
    """An operation that is all bytes."""
    return Operation(name, "memory", 0.0, size)


def matmul(name: str, m: float, n: float, k: float, count: float, operand: float, result: float) -> Operation:
    """`count` products, with the bytes of a number in operands and in results."""
    size = count * (operand * (m * k + k * n) + result * m * n)
    return Operation(name, "matmul", 2.0 * m * n * k * count, size, m, n, k, count)


class Passes:
    """Collects the operations of a segment: what a method adds, it adds to all three passes.

    Forward operations are added in order, backward ones in the reverse order.
    """

    def __init__(self, split: Split):
        """Args: split, whose bytes per number hold."""
        self.split = split
        self.forward: list[Operation] = []
        self.backward_input: list[Operation] = []
        self.backward_weight: list[Operation] = []

    def linear(
        self, name: str, rows: float, inputs: float, outputs: float, *, count: float = 1, bias: bool = False
    ) -> None:
        """`count` matrices of `inputs` by `outputs`, each on `rows` rows.

        Operands in fewer bytes than activations are converted first, once as they are and once transposed
        for the product that needs the other order. Gradients of weights are read, added to and written.
        """
        split = self.split
        stored, operand = split.activation_bytes, split.operand_bytes
        flops = 2.0 * rows * inputs * outputs * count
        weights, into, out = count * inputs * outputs, count * rows * inputs, count * rows * outputs
        backward = self.backward_input
        if operand < stored:
            self.forward.append(memory(f"{name} convert", (stored + 2 * operand) * into))
        self.forward.append(
            Operation(
                name,
                "matmul",
                flops,
                operand * (into + weights) + stored * out,
                rows,
                outputs,
                inputs,
                count,
            )
        )
        size = operand * (out + weights) + stored * into
        backward.append(Operation(name, "matmul", flops, size, rows, inputs, outputs, count))
        if operand < stored:
            backward.append(memory(f"{name} convert", (stored + 2 * operand) * out))
        size = operand * (into + out) + 2 * split.gradient_bytes * weights
        self.backward_weight.append(Operation(name, "matmul", flops, size, inputs, outputs, rows, count))
        if bias:
            self.backward_weight.append(memory(f"{name} bias", stored * out))

    def memory(self, name: str, forward: float, backward: float) -> None:
        """Bytes of an operation without weights, in both directions; 0 for none."""
        if forward:
            self.forward.append(memory(name, forward))
        if backward:
            self.backward_input.append(memory(name, backward))

    def segment(self, name: str) -> Segment:
        """What has been collected."""
        return Segment(
            name,
            tuple(self.forward),
            tuple(reversed(self.backward_input)),
            tuple(reversed(self.backward_weight)),
        )


def recomputed(segment: Segment, recompute: Recompute) -> Operations:
    """What runs again before the backward pass of a segment."""
    parts = parts_of(recompute)
    if LAYER in parts:
        return segment.forward
    again = _again(parts)
    around = (
        [f"{segment.name} {name}" for name in _AROUND] if segment.name in parts & {"mlp", "experts"} else None
    )
    return tuple(
        each
        for each in segment.forward
        if each.name in again or (around is not None and each.name not in around)
    )


@lru_cache(maxsize=256)
def _again(parts: frozenset[str]) -> frozenset[str]:
    return frozenset().union(*(_AGAIN[each] for each in parts))
