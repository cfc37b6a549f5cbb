"""NCCL's own debug messages: what they say of ranks, nodes, versions, and of the choice for each call.

A message is `host:pid:thread [device] NCCL INFO text`; NCCL writes it to the same stream as the program, so
it may stand anywhere in a line. Its table of tuning is read by `mc.logs.nccl_tuning`.
"""

import re
from dataclasses import dataclass, field

from mc.logs.names import algorithm_of, collective_of, protocol_of

# A host's name begins with a letter, which is what separates it from a number that it is glued to.
_MESSAGE = re.compile(
    r"(?:\[?\d{4}-\d\d-\d\d[T ][\d:.]+\]?\s+)?(?<![A-Za-z])[A-Za-z][\w.-]*:\d+:\d+ \[\d+\] (?:[\d.]+ )?"
    r"(?:\S+:\d+ )?NCCL (?P<level>INFO|WARN|TRACE|ABORT|VERSION)\s?(?P<text>.*)"
)
_COMMUNICATOR = re.compile(r"\brank (?P<rank>\d+) nranks (?P<ranks>\d+)\b.*?(?:nNodes (?P<nodes>\d+))?", re.I)
_NODES = re.compile(r"\bnRanks (?P<ranks>\d+) nNodes (?P<nodes>\d+)\b")
_VERSION = re.compile(r"\b(?P<library>NCCL|RCCL) version\s*:?\s*(?P<version>\d+\.\d+[\w.+-]*)")
_CHOICE = re.compile(
    r"(?P<call>[A-Za-z]+): (?P<bytes>\d+) Bytes -> Algo (?P<algorithm>\w+) proto (?P<protocol>\w+)"
    r"(?:.*?channel\{Lo\.\.Hi\}=\{(?P<first>\d+)\.\.(?P<last>\d+)\})?",
    re.I,
)
_TOLD = re.compile(r"NCCL_(?P<what>ALGO|PROTO) set (?:by environment )?to (?P<value>\S+)")


def split_message(line: str) -> tuple[str, str | None]:
    """What stands before NCCL's message, and its text; None if there is no message in the line."""
    if "NCCL " not in line:
        return line, None
    match = _MESSAGE.search(line)
    return (line, None) if match is None else (line[: match.start()], match["text"])


@dataclass
class Messages:
    """What NCCL has said so far.

    Attributes:
        ranks: of the communicator.
        nodes: likewise.
        software: library and version.
        choices: by collective and bytes: algorithm, protocol, channels; None where calls of one size went different ways.
        told: what NCCL_ALGO and NCCL_PROTO were set to.
        count: messages seen.
    """

    ranks: int | None = None
    nodes: int | None = None
    software: str | None = None
    choices: dict[tuple[str | None, int], tuple[str | None, str | None, int | None] | None] = field(
        default_factory=dict
    )
    told: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def hear(self, text: str) -> None:
        """Takes in one message."""
        self.count += 1
        if (match := _CHOICE.search(text)) is not None:
            channels = int(match["last"]) - int(match["first"]) + 1 if match["last"] else None
            choice = (algorithm_of(match["algorithm"]), protocol_of(match["protocol"]), channels)
            call = collective_of(match["call"]), int(match["bytes"])
            self.choices[call] = choice if self.choices.get(call, choice) == choice else None
            return
        if (match := _NODES.search(text)) is not None:
            self.ranks, self.nodes = int(match["ranks"]), int(match["nodes"])
        elif "nranks" in text and (match := _COMMUNICATOR.search(text)) is not None:
            self.ranks = int(match["ranks"])
        elif (match := _TOLD.search(text)) is not None:
            self.told[match["what"]] = match["value"].rstrip(".")
        else:
            self.hear_version(text)

    def hear_version(self, text: str) -> None:
        """Takes in a line that may state a version."""
        if "version" in text and (match := _VERSION.search(text)) is not None:
            self.software = f"{match['library']} {match['version']}"

    def forget_calls(self) -> None:
        """A new program begins: its communicator and calls are its own."""
        self.choices.clear()
        self.ranks = self.nodes = None
