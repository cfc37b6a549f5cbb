"""The table of NCCL's tuner plugin: which algorithm and protocol to use for which collective and sizes.

A line is `collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks[,numPipeOps[,regBuff]]`,
where −1 stands for any, or for NCCL's own choice of channels; the first line that matches decides. The plugin
does not trim blanks, so none are written (NCCL, plugins/tuner/example).
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mc.logs.errors import LogError
from mc.logs.names import algorithm_of, collective_of, protocol_of
from mc.logs.sink import Sink
from mc.logs.source import Source

NAME = "nccl-tuner"
_COLLECTIVES = {
    "broadcast": "broadcast",
    "reduce": "reduce",
    "all-gather": "allgather",
    "reduce-scatter": "reducescatter",
    "all-reduce": "allreduce",
}
_ALGORITHMS = {
    "Tree": "tree",
    "Ring": "ring",
    "CollNetDirect": "collnet_direct",
    "CollNetChain": "collnet_chain",
    "NVLS": "nvls",
    "NVLSTree": "nvls_tree",
    "PAT": "pat",
}
SIGNATURE = re.compile(
    rf"^[ \t]*(?:{'|'.join(_COLLECTIVES.values())})\s*,\s*\d+\s*,\s*\d+\s*,\s*(?:{'|'.join(_ALGORITHMS.values())})\s*,"
    r"\s*(?:ll|ll128|simple)\s*,\s*-?\d+",
    re.M | re.I,
)
# What the plugin reads as "no upper end".
ANY = -1


@dataclass(frozen=True)
class Choice:
    """One line of the table.

    Attributes:
        collective: by the names of the configuration.
        smallest: bytes.
        largest: bytes, inclusive.
        algorithm: by NCCL's name.
        protocol: by NCCL's name.
        channels: how many; None leaves it to NCCL.
        nodes: of the communicator; None for any.
        ranks: likewise.
        pipe_ops: likewise, aggregated operations.
        registered: whether the buffers are registered; None for either.
    """

    collective: str
    smallest: int
    largest: int
    algorithm: str
    protocol: str
    channels: int | None = None
    nodes: int | None = None
    ranks: int | None = None
    pipe_ops: int | None = None
    registered: bool | None = None


def read_tuner(source: Source, sink: Sink) -> tuple[Choice, ...]:
    """Reads a table of the tuner plugin."""
    found: list[Choice] = []
    for number, line in source.lines():
        sink.lines = number
        if line is None or "\0" in line:
            sink.skip("lines that are no text", number)
        elif line.strip() and not line.lstrip().startswith("#"):
            choice = _choice(line)
            if isinstance(choice, Choice):
                found.append(choice)
            elif not line.lower().startswith("collective"):
                sink.skip(choice, number, line)
    return tuple(found)


def _choice(line: str) -> Choice | str:
    """A line's choice, or why there is none."""
    words = [word.strip() for word in line.split(",")]
    if not 8 <= len(words) <= 10:
        return "lines that have not 8 to 10 fields"
    collective, algorithm, protocol = collective_of(words[0]), algorithm_of(words[3]), protocol_of(words[4])
    if collective not in _COLLECTIVES or algorithm is None or protocol is None:
        return "lines with an unknown collective, algorithm or protocol"
    try:
        numbers = [int(word) for word in (*words[1:3], *words[5:])]
    except ValueError:
        return "lines with no whole number where one should be"
    smallest, largest, channels, nodes, ranks, *rest = numbers
    if not 0 <= smallest <= largest or min(channels, nodes, ranks, *rest, 0) < ANY:
        return "lines whose sizes do not rise"
    rest += [ANY] * (2 - len(rest))
    registered = _or_any(rest[1])
    return Choice(
        collective,
        smallest,
        largest,
        algorithm,
        protocol,
        _or_any(channels),
        _or_any(nodes),
        _or_any(ranks),
        _or_any(rest[0]),
        None if registered is None else bool(registered),
    )


def _or_any(value: int) -> int | None:
    return None if value == ANY else value


def write_tuner(choices: Iterable[Choice], path: str | os.PathLike[str]) -> None:
    """Writes a table that the tuner plugin reads, in the order given.

    Raises:
        LogError: NCCL has no such collective, algorithm or protocol, or the file cannot be written.
    """
    lines = ["# collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff"]
    for choice in choices:
        names = _COLLECTIVES.get(choice.collective), _ALGORITHMS.get(choice.algorithm)
        if None in names or protocol_of(choice.protocol) is None:
            raise LogError(
                f"expected a collective, an algorithm and a protocol of NCCL's tuner; got {choice.collective}, "
                f"{choice.algorithm}, {choice.protocol}"
            )
        rest = choice.channels, choice.nodes, choice.ranks, choice.pipe_ops, choice.registered
        fields = (
            names[0],
            choice.smallest,
            choice.largest,
            names[1],
            choice.protocol.lower(),
            *(ANY if value is None else int(value) for value in rest),
        )
        lines.append(",".join(map(str, fields)))
    target = Path(path)
    try:
        target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise LogError(f"{target}: cannot be written: {error.strerror or error}") from None
