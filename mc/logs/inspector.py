"""NCCL Inspector: the time of every collective that a running job made, as one rank saw it.

Each line has the communicator (`header`) and one call (`coll_perf` or `p2p_perf`). Times are whole us of the
slowest channel, so a channel that starts late is not counted as waiting; the size of all-gather and
reduce-scatter is one rank's part. What the ring buffers dropped is said in `dump_stats`
(NCCL, plugins/profiler/inspector). Calls below 8 KiB are not recorded by default.
"""

import re
from collections.abc import Mapping
from typing import Any

from mc.logs.consistency import bandwidth_conflict
from mc.logs.names import algorithm_of, collective_of, protocol_of
from mc.logs.printed import Printed, exactly
from mc.logs.records import mapping, number, records, text, whole
from mc.logs.sink import Draft, Sink
from mc.logs.source import Source

NAME = "nccl-inspector"
SIGNATURE = re.compile(r'"(?:coll_perf|p2p_perf|coll_exec_time_us|inspector_output_format_version)"\s*:')

_PER_RANK = ("all-gather", "reduce-scatter")
_MOST = 4096


def read_inspector(source: Source, sink: Sink) -> None:
    """Reads a file of the inspector, one table for each communicator and operation."""
    drafts: dict[tuple[Any, ...], Draft] = {}
    dropped = 0.0
    for line, record in records(source, sink):
        header = mapping(record.get("header"))
        if isinstance(record.get("dump_stats"), dict):
            stats = record["dump_stats"]
            dropped += sum(
                number(stats.get(f"{what}_dropped_since_last_dump")) or 0 for what in ("coll", "p2p")
            )
            continue
        what = "coll" if isinstance(record.get("coll_perf"), dict) else "p2p"
        call = mapping(record.get(f"{what}_perf"))
        name = text(call.get(what))
        if name is None:
            sink.skip("records without a call", line, str(record)[:80])
            continue
        ranks = whole(header.get("n_ranks"))
        key = name, text(header.get("id")), ranks, whole(header.get("nnodes"))
        if key not in drafts:
            if len(drafts) >= _MOST:
                sink.skip(f"calls of more than {_MOST:,} communicators", line)
                continue
            drafts[key] = _draft(key, sink)
        draft = drafts[key]
        row = _row(line, what, call, header, draft, sink)
        if row is not None:
            draft.add(row)
            if len(draft.waiting) >= 1024:
                draft.flush()
    for draft in drafts.values():
        draft.close()
    if dropped:
        sink.remark(f"the inspector dropped {dropped:,.0f} calls")


def _draft(key: tuple[Any, ...], sink: Sink) -> Draft:
    name, communicator, ranks, nodes = key
    section = f"communicator {communicator}" if communicator else ""
    draft = sink.draft("collective", name, section)
    draft.know("collective", collective_of(name), "from the name of the call")
    draft.know("ranks", ranks, "from `n_ranks`")
    draft.know("nodes", nodes, "from `nnodes`")
    return draft


def _row(
    line: int | None, what: str, call: Mapping[str, Any], header: Mapping[str, Any], draft: Draft, sink: Sink
) -> dict[str, Any] | None:
    size, time = whole(call.get(f"{what}_msg_size_bytes")), number(call.get(f"{what}_exec_time_us"))
    if size is None or time is None:
        sink.skip("calls without a size or a time", line)
        return None
    if time <= 0 or size == 0:
        sink.skip("calls whose time is zero us" if time <= 0 else "calls of zero bytes", line)
        return None
    ranks = draft.facts.get("ranks")
    if draft.facts.get("collective") in _PER_RANK:
        if ranks is None:
            sink.skip("calls whose size is of one rank, with the number of ranks unknown (`--ranks`)", line)
            return None
        size *= ranks
    algbw = number(call.get(f"{what}_algobw_gbs"))
    conflict = None
    if algbw is not None and algbw > 0:
        near = Printed(time * 1e-6, (time - 1) * 1e-6, (time + 1) * 1e-6)
        conflict = bandwidth_conflict(size, near, exactly(algbw).scaled(1e9))
    return {
        "line": line,
        "bytes": size,
        "process": whole(header.get("rank")),
        "iteration": whole(call.get(f"{what}_sn")),
        "iterations": 1,
        "timing": "call",
        "algorithm": algorithm_of(text(call.get("coll_algo")) or ""),
        "protocol": protocol_of(text(call.get("coll_proto")) or ""),
        "time_s": time * 1e-6,
        "conflict": conflict,
    }
