"""NCCL's table of tuning, which it logs with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=TUNING: priors for a fit.

For each collective, algorithm and protocol NCCL expects `latency + bytes/bandwidth`: microseconds and GB/s
of algbw, in cells `latency/bandwidth`. Releases since 2.27 print blocks of three algorithms under headings
`Algorithm` and `Protocol`; those before, one line per collective with all cells under such a heading, or
without one. A bandwidth of zero means that NCCL does not use the pair (NCCL, src/graph/tuning.cc).
"""

import re
from dataclasses import dataclass

from mc.logs.names import algorithm_of, collective_of, protocol_of
from mc.logs.nccl_messages import Messages

_CELL = re.compile(r"(?P<latency>\d+\.\d+)\s*/\s*(?P<bandwidth>\d+\.\d+)")
_NAME = re.compile(r"^\s*(?P<name>[A-Za-z]+)\s*[|:]")
_PROTOCOLS = ("LL", "LL128", "Simple")
_ORDER = ("Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT")


@dataclass(frozen=True)
class Prior:
    """What NCCL expects of one way to carry out a collective.

    Attributes:
        source: the file.
        line: of it.
        collective: by the names of the configuration.
        algorithm: by NCCL's.
        protocol: by NCCL's.
        latency_s: seconds.
        bandwidth_Bps: bytes/s, of algbw.
        ranks: of the communicator; None if the log does not say.
        nodes: likewise.
    """

    source: str
    line: int
    collective: str
    algorithm: str
    protocol: str
    latency_s: float
    bandwidth_Bps: float
    ranks: int | None
    nodes: int | None


class Tuning:
    """Takes in messages, and finds the cells of the table among them."""

    def __init__(self, source: str):
        """Args: source, the name of the file."""
        self._source = source
        self._algorithms: tuple[str | None, ...] = ()
        self._found: dict[tuple[str, str, str, int | None, int | None], Prior] = {}

    @property
    def priors(self) -> tuple[Prior, ...]:
        """The pairs that NCCL uses, each once for every size of communicator."""
        return tuple(self._found.values())

    def hear(self, text: str, line: int, messages: Messages) -> None:
        """Takes in the text of a message."""
        match = _NAME.match(text)
        if match is None:
            return
        name = match["name"]
        if name.lower() == "algorithm":
            self._algorithms = tuple(
                algorithm_of(cell.strip()) for cell in text.split("|")[1:] if cell.strip()
            )
            return
        cells = _CELL.findall(text)
        collective = collective_of(name)
        if collective is None or not cells or len(cells) % 3 or len(cells) > 3 * len(_ORDER):
            return
        algorithms = self._algorithms
        if len(algorithms) * 3 != len(cells):
            algorithms = _ORDER[: len(cells) // 3]
        for place, (latency, bandwidth) in enumerate(cells):
            algorithm, protocol = algorithms[place // 3], protocol_of(_PROTOCOLS[place % 3])
            if algorithm is None or protocol is None or float(bandwidth) == 0:
                continue
            key = (collective, algorithm, protocol, messages.ranks, messages.nodes)
            self._found[key] = Prior(
                self._source, line, *key[:3], float(latency) * 1e-6, float(bandwidth) * 1e9, *key[3:]
            )
