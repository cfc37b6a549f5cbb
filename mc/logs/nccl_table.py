"""A table of nccl-tests: its rows, what holds for all of them, and whether they agree with themselves."""

import re
from dataclasses import dataclass, field
from typing import Any

from mc.config.bus_bandwidth import OF_BUFFER
from mc.logs.consistency import bandwidth_conflict, bus_conflict, ranks_from_bandwidths, unit_remark
from mc.logs.names import DATATYPE_BYTES, algorithm_of, collective_of, protocol_of
from mc.logs.nccl_messages import Messages
from mc.logs.nccl_rows import Half, Head
from mc.logs.printed import Printed
from mc.logs.sink import Draft, Sink, name_of

_MICRO, _GIGA = 1e-6, 1e9


@dataclass
class Run:
    """What the program said of itself.

    Attributes:
        program: its name.
        hosts: by rank.
        device: of the first rank.
        software: library and version.
        iterations: calls per row.
        aggregated: calls per launch.
    """

    program: str | None = None
    hosts: dict[int, str] = field(default_factory=dict)
    device: str | None = None
    software: str | None = None
    iterations: int | None = None
    aggregated: int = 1


@dataclass(frozen=True)
class _Entry:
    head: Head
    root: int | None
    in_place: bool
    half: Half
    line: int


class NcclTable:
    """Takes rows until the table ends; only then is known what they are of."""

    def __init__(self, sink: Sink, run: Run, messages: Messages, section: str):
        """Args: sink takes the rows; the others say what is known of them."""
        self._sink = sink
        self._run = run
        self._messages = messages
        self._section = section
        self._entries: list[_Entry] = []
        self._draft: Draft | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it has no rows."""
        return not self._entries and self._draft is None

    def add(self, head: Head, root: int | None, *, in_place: bool, half: Half, line: int) -> None:
        """One half of a row."""
        text = f"{head.size} bytes, time {half.time.value:g}"
        if head.size == 0:
            self._sink.skip("rows of zero bytes", line, text)
        elif half.time.value * _MICRO <= 0:
            self._sink.skip("rows whose time is zero or negative", line, text)
        else:
            self._entries.append(_Entry(head, root, in_place, half, line))
            if len(self._entries) >= Draft.MOST:
                self._hand_on()

    def close(self) -> None:
        """Hands on what is left."""
        self._hand_on()
        if self._draft is not None:
            self._draft.close()

    def _hand_on(self) -> None:
        """Says what is known of the table, checks its rows, and hands them on."""
        if not self._entries:
            return
        draft = self._draft = self._draft or self._open()
        collective, ranks = draft.facts.get("collective"), draft.facts.get("ranks")
        ratios = []
        for entry in self._entries:
            conflict, ratio = self._conflict(entry, collective, ranks)
            ratios.append(ratio if conflict else 1.0)
            draft.add(self._row(entry, conflict, collective))
        if (units := unit_remark(ratios)) is not None and any(abs(ratio - 1) > 0.01 for ratio in ratios):
            draft.remark(units)
        draft.flush()
        self._entries.clear()

    def _open(self) -> Draft:
        draft = self._sink.draft("collective", self._run.program or "", self._section)
        self._collective(draft)
        self._scale(draft)
        self._settings(draft)
        for name, what in (
            ("collective", "the collective"),
            ("ranks", "the number of ranks"),
            ("nodes", "the number of nodes"),
        ):
            if draft.facts.get(name) is None:
                draft.remark(f"{what} is not known: say `--{name}`")
        return draft

    def _collective(self, draft: Draft) -> None:
        run, annotations = self._run, self._sink.notes
        if run.program is not None:
            draft.know("collective", collective_of(run.program), f"from the program's name, {run.program}")
        if (noted := annotations.get("op")) is not None:
            draft.know(
                "collective", collective_of(noted.split(" ")[0].split(",")[0]), f"from the note `op: {noted}`"
            )
        draft.know("collective", name_of(self._sink.source), "from the name of the file")
        draft.know("collective", self._by_columns(), "from reduction, root and the ratio of bandwidths")

    def _by_columns(self) -> str | None:
        """The collective that the columns admit, if there is just one.

        A reduction without a root whose size is its count is an all-reduce or, where busbw = algbw, send-recv;
        with a size of n counts a reduce-scatter. The others, without a reduction, cannot be told apart.
        """
        head, root = self._entries[0].head, self._entries[0].root
        width = DATATYPE_BYTES[head.datatype]
        if head.reduction in ("none", ""):
            return "broadcast" if root is not None and root >= 0 and head.size == head.count * width else None
        if root is not None and root >= 0:
            return "reduce"
        if head.size != head.count * width:
            return "reduce-scatter"
        apart = [entry for entry in self._entries if entry.half.busbw.low > entry.half.algbw.high]
        return "all-reduce" if apart else None

    def _scale(self, draft: Draft) -> None:
        """Ranks, nodes, placement and device, each with how it is known."""
        run, messages = self._run, self._messages
        listed = len(run.hosts)
        whole = listed > 0 and max(run.hosts) + 1 == listed
        counted = self._ranks_by_count()
        titled = _titled(self._section, r"(?:GPUS?|RANKS)=(\d+)")
        nodes = _titled(self._section, r"\b(\d+)-nodes?\b") or _titled(self._section, r"NODES=(\d+)")
        draft.know("ranks", titled, f"from the heading `{self._section}`")
        if whole and not self._is_excerpt(listed, counted):
            draft.know("ranks", listed, f"from the {listed} ranks that the log lists")
        draft.know("ranks", messages.ranks, "from NCCL's messages")
        draft.know("ranks", counted, "from size and count")
        collective = draft.facts.get("collective")
        if collective is not None:
            pairs = [(each.half.algbw, each.half.busbw) for each in self._entries]
            draft.know("ranks", ranks_from_bandwidths(collective, pairs), "from busbw/algbw")
        draft.know("nodes", nodes, f"from the heading `{self._section}`")
        if whole and draft.facts.get("ranks") == listed:
            hosts = list(run.hosts.values())
            shares = [hosts.count(host) for host in dict.fromkeys(hosts)]
            draft.know("nodes", len(shares), f"from the {len(shares)} hosts that the log lists")
            if len(set(shares)) > 1:
                draft.know("placement", "+".join(map(str, shares)), "from the hosts that the log lists")
        draft.know("nodes", messages.nodes, "from NCCL's messages")
        draft.know("device", run.device, "from the ranks that the log lists")
        draft.know_notes()
        draft.know("software", run.software, "from the version that nccl-tests states")
        draft.know("software", messages.software, "from the version that NCCL states")

    @staticmethod
    def _is_excerpt(listed: int, counted: int | None) -> bool:
        """Whether the list of ranks is cut off: the sizes speak of more."""
        return counted is not None and counted != listed

    def _ranks_by_count(self) -> int | None:
        """Ranks of the collectives whose size is that of all of them."""
        found = set()
        for entry in self._entries:
            head = entry.head
            own = head.count * DATATYPE_BYTES[head.datatype]
            if own and head.size != own:
                found.add(head.size // own if head.size % own == 0 else 0)
        return found.pop() if len(found) == 1 and 0 not in found else None

    def _settings(self, draft: Draft) -> None:
        run, notes = self._run, self._sink.notes.get("algo_or_env", "")
        for name, variable, known in (
            ("algorithm", "ALGO", algorithm_of),
            ("protocol", "PROTO", protocol_of),
        ):
            if (told := re.search(rf"\b{variable}=(\w+)", self._section)) is not None:
                draft.know(name, known(told[1]), f"from the heading `{self._section}`")
            if variable in self._messages.told:
                value = self._messages.told[variable]
                draft.know(name, known(value), f"from NCCL_{variable}={value}")
            if (noted := re.search(rf"NCCL_{variable}=(\w+)(?![\w|,])", notes)) is not None:
                draft.know(name, known(noted[1]), f"from the note `{noted[0]}`")
        draft.know(
            "iterations",
            run.iterations and run.iterations * run.aggregated,
            "from the settings of the program",
        )

    def _conflict(self, entry: _Entry, collective: str | None, ranks: int | None) -> tuple[str | None, float]:
        """Why a row cannot be trusted, and (size/time)/algbw."""
        head, half = entry.head, entry.half
        time, algbw, busbw = half.time.scaled(_MICRO), half.algbw.scaled(_GIGA), half.busbw.scaled(_GIGA)
        ratio = head.size / time.value / algbw.value if algbw.value > 0 else 1.0
        if half.wrong:
            return f"{half.wrong:g} elements came out wrong", ratio
        conflict = bandwidth_conflict(head.size, time, algbw)
        if conflict is not None and not self._is_old_gather(entry, collective, ranks, time, algbw):
            return conflict, ratio
        if conflict is None and collective is not None and ranks is not None:
            return bus_conflict(collective, ranks, algbw, busbw), ratio
        return None, ratio

    def _is_old_gather(
        self, entry: _Entry, collective: str | None, ranks: int | None, time: Printed, algbw: Printed
    ) -> bool:
        """Whether algbw is (n−1)/n of size/time, as releases before 2.1 printed it for these collectives."""
        if collective not in OF_BUFFER or ranks is None or entry.half.algbw.value != entry.half.busbw.value:
            return False
        moved = entry.head.size * (ranks - 1) / ranks
        return bandwidth_conflict(moved, time, algbw) is None

    def _row(self, entry: _Entry, conflict: str | None, collective: str | None) -> dict[str, Any]:
        head, half = entry.head, entry.half
        row: dict[str, Any] = {
            "line": entry.line,
            "bytes": head.size,
            "datatype": head.datatype,
            "in_place": entry.in_place,
            "timing": "call",
            "time_s": half.time.value * _MICRO,
            "wrong": None if half.wrong is None else int(half.wrong),
            "conflict": conflict,
        }
        for name, value in (("time_min_s", half.least), ("time_max_s", half.most), ("time_p99_s", half.p99)):
            row[name] = None if value is None else value * _MICRO
        if half.variation is not None:
            row["time_std_s"] = half.variation / 100 * row["time_s"]
        # The bytes of a message are the row's size where that is what one rank gives.
        if (
            collective not in OF_BUFFER
            and (choice := self._messages.choices.get((collective, head.size))) is not None
        ):
            named = zip(("algorithm", "protocol", "channels"), choice, strict=True)
            row.update({name: value for name, value in named if value is not None})
        return row


def _titled(section: str, pattern: str) -> int | None:
    match = re.search(pattern, section, re.I)
    return int(match[1]) if match else None
