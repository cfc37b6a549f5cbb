"""JSON lines of rccl-tests (`-Z json -x FILE`) and of MSCCL++, one object for each size and placement.

Times are us and bandwidths GB/s. rccl-tests states `ranks` as processes, each with `gpusPerRank` devices;
builds without MPI state `gpus` instead.
"""

import re
from collections.abc import Mapping
from typing import Any

from mc.logs.consistency import bandwidth_conflict, bus_conflict, unit_remark
from mc.logs.names import collective_of
from mc.logs.printed import Printed, printed
from mc.logs.records import number, records, text, whole
from mc.logs.sink import Draft, Sink
from mc.logs.source import Source

NAME = "rccl-tests-json"
SIGNATURE = re.compile(r'"(?:algBw|busBw)"\s*:')

_MICRO, _GIGA = 1e-6, 1e9


def read_rccl_json(source: Source, sink: Sink) -> None:
    """Reads JSON lines with `algBw` and `busBw`."""
    drafts: dict[tuple[Any, ...], Draft] = {}
    ratios: dict[tuple[Any, ...], list[float]] = {}
    for line, record in records(source, sink):
        key = _key(record)
        if key not in drafts:
            if len(drafts) >= 1024:
                sink.skip("records of more than 1,024 different runs", line)
                continue
            drafts[key] = _draft(key, sink)
        row, ratio = _row(line, record, drafts[key], sink)
        if row is not None:
            drafts[key].add(row)
            ratios.setdefault(key, []).append(ratio)
    for key, draft in drafts.items():
        remark = unit_remark(ratios.get(key, ()))
        if remark is not None and any(abs(ratio - 1) > 0.05 for ratio in ratios[key]):
            draft.remark(remark)
        draft.close()


def _key(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """What tells runs apart: the collective, ranks, nodes, and the hardware if somebody noted it."""
    ranks, nodes = whole(record.get("ranks")), whole(record.get("nodes"))
    each = whole(record.get("gpusPerRank")) or 1
    total = ranks * each if ranks else whole(record.get("gpus"))
    per_node = whole(record.get("ranksPerNode"))
    if nodes is None and ranks and per_node and ranks % per_node == 0:
        nodes = ranks // per_node
    kernel = record.get("kernel")
    return (
        text(record.get("name")) or "",
        total,
        nodes,
        text(record.get("hardware")),
        kernel if isinstance(kernel, int) else None,
    )


def _draft(key: tuple[Any, ...], sink: Sink) -> Draft:
    name, ranks, nodes, hardware, kernel = key
    draft = sink.draft("collective", name, "" if kernel is None else f"kernel {kernel}")
    draft.know("collective", collective_of(name), "from `name`")
    draft.know("ranks", ranks, "from `ranks` and `gpusPerRank`, or `gpus`")
    draft.know("nodes", nodes, "from `nodes`, or `ranks` and `ranksPerNode`")
    draft.know("device", hardware, "from `hardware`")
    if draft.facts.get("collective") is None:
        draft.remark("the collective is not known: say `--collective`")
    return draft


def _row(
    line: int | None, record: Mapping[str, Any], draft: Draft, sink: Sink
) -> tuple[dict[str, Any] | None, float]:
    size, time = whole(record.get("size")), _figure(record.get("time"))
    if size is None or time is None:
        sink.skip("records without `size` or `time`", line, str(record)[:80])
        return None, 1.0
    if size == 0 or time.value <= 0:
        sink.skip("records of zero bytes" if size == 0 else "records whose time is zero or negative", line)
        return None, 1.0
    wrong = number(record.get("wrong"))
    algbw, busbw = _figure(record.get("algBw")), _figure(record.get("busBw"))
    conflict, ratio = None, 1.0
    if algbw is not None and algbw.value > 0:
        conflict = bandwidth_conflict(size, time.scaled(_MICRO), algbw.scaled(_GIGA))
        ratio = size / (time.value * _MICRO) / (algbw.value * _GIGA)
        collective, ranks = draft.facts.get("collective"), draft.facts.get("ranks")
        if conflict is None and busbw is not None and collective is not None and ranks is not None:
            conflict = bus_conflict(collective, ranks, algbw.scaled(_GIGA), busbw.scaled(_GIGA))
    place = whole(record.get("inPlace"))
    return {
        "line": line,
        "bytes": size,
        "datatype": text(record.get("type")),
        "in_place": None if place is None else place == 1,
        "iteration": None,
        "timing": "call",
        "time_s": time.value * _MICRO,
        "wrong": None if wrong is None else int(wrong),
        "conflict": f"{wrong:g} elements came out wrong" if wrong else conflict,
    }, ratio


def _figure(value: Any) -> Printed | None:
    """A number with the rounding of its digits, as JSON keeps the text of a float to the shortest that reads back."""
    found = number(value)
    return None if found is None else printed(repr(found) if isinstance(value, float) else str(value).strip())
