"""The JSON that nccl-tests writes with `-J`, with every call's time if `-I 1` was given.

Of a file are read `results`, `config.devices`, `config.iterations`, `nccl_version` and the program among
`args`; `env`, the whole environment of whoever ran it, is dropped and never kept. Times are us and
bandwidths GB/s. `times_us` are the calls' times, each the greatest over processes;
`per_process_max_times_us` are those of each process, which tell a slow one from a slow network
(nccl-tests, src/util.cu).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mc.logs.consistency import bandwidth_conflict, bus_conflict
from mc.logs.names import DATATYPE_BYTES, collective_of, nccl_version
from mc.logs.printed import exactly
from mc.logs.records import document, mapping, number, text, whole
from mc.logs.sink import Draft, Sink, name_of
from mc.logs.source import Source

NAME = "nccl-tests-json"
SIGNATURE = re.compile(r'"(?:alg_bw|nccl_version)"\s*:')

_MICRO, _GIGA = 1e-6, 1e9


def read_nccl_json(source: Source, sink: Sink) -> None:
    """Reads one file of `-J`."""
    whole_file = mapping(document(source, sink))
    results = whole_file.get("results")
    if not isinstance(results, list):
        raise sink.fail("expected the JSON of nccl-tests, an object with `results`; got another")
    if "env" in whole_file:
        sink.remark("the environment in the file was dropped")
    sink.lines = len(results)
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    program = _program(whole_file)
    for result in results:
        if not isinstance(result, dict):
            sink.skip("results that are no object")
            continue
        name = text(result.get("experiment_name")) or ""
        by_name.setdefault(name if collective_of(name) else program or name, []).append(result)
    for name, group in by_name.items():
        _table(name, group, whole_file, sink)


def _program(whole_file: Mapping[str, Any]) -> str | None:
    arguments = whole_file.get("args")
    first = text(arguments[0]) if isinstance(arguments, list) and arguments else None
    return re.split(r"[/\\]", first)[-1] if first else None


def _table(name: str, results: list[Mapping[str, Any]], whole_file: Mapping[str, Any], sink: Sink) -> None:
    draft = sink.draft("collective", name)
    draft.know("collective", collective_of(name), f"from the program's name, {name}")
    draft.know("collective", name_of(sink.source), "from the name of the file")
    _devices(draft, whole_file, results)
    version = whole(whole_file.get("nccl_version"))
    if version is not None:
        draft.know("software", f"NCCL {nccl_version(version)}", "from `nccl_version`")
    if draft.facts.get("collective") is None:
        draft.remark("the collective is not known: say `--collective`")
    for result in results:
        for place in ("out_of_place", "in_place"):
            for row in _rows(result, place, draft, sink):
                draft.add(row)
        if len(draft.waiting) >= Draft.MOST:
            draft.flush()
    draft.close()


def _devices(draft: Draft, whole_file: Mapping[str, Any], results: list[Mapping[str, Any]]) -> None:
    """Ranks, nodes and device from the list of devices, which has one entry for each process."""
    config = mapping(whole_file.get("config"))
    devices = [each for each in config.get("devices") or () if isinstance(each, dict)]
    per_process = (whole(config.get("nthreads")) or 1) * (whole(config.get("ngpus")) or 1)
    draft.know("ranks", _ranks_by_count(results), "from size and count")
    draft.know("ranks", len(devices) * per_process or None, "from the processes listed, nthreads and ngpus")
    hosts = [text(each.get("hostname")) for each in devices]
    if hosts and None not in hosts and draft.facts.get("ranks") == len(hosts) * per_process:
        shares = [hosts.count(host) * per_process for host in dict.fromkeys(hosts)]
        draft.know("nodes", len(shares), f"from the {len(shares)} hosts listed")
        if len(set(shares)) > 1:
            draft.know("placement", "+".join(map(str, shares)), "from the hosts listed")
    if devices:
        draft.know("device", text(devices[0].get("device_info")), "from the devices listed")


def _ranks_by_count(results: list[Mapping[str, Any]]) -> int | None:
    found = set()
    for result in results:
        size, count = whole(result.get("size")), whole(result.get("count"))
        width = DATATYPE_BYTES.get(text(result.get("type")) or "")
        if size and count and width and size != count * width:
            found.add(size // (count * width))
    return found.pop() if len(found) == 1 else None


def _rows(result: Mapping[str, Any], place: str, draft: Draft, sink: Sink) -> Iterator[dict[str, Any]]:
    """The mean of one placement, then its calls."""
    half = result.get(place)
    if half is None:
        return
    half, size = mapping(half), whole(result.get("size"))
    time = number(half.get("time", half.get("cpu_time")))
    if size is None or time is None:
        sink.skip("results without a size or a time that is a number")
        return
    if size == 0 or time <= 0:
        sink.skip("results of zero bytes" if size == 0 else "results whose time is zero or negative")
        return
    common = {
        "bytes": size,
        "datatype": text(result.get("type")),
        "in_place": place == "in_place",
        "timing": "call",
    }
    conflict = _conflict(size, time, half, draft)
    calls = mapping(result.get(f"{place}_per_iter"))
    wrong = number(half.get("nwrong"))
    yield {
        **common,
        "time_s": time * _MICRO,
        "iterations": whole(result.get("actual_iterations")),
        "wrong": None if wrong is None else int(wrong),
        "conflict": f"{wrong:g} elements came out wrong" if wrong else conflict,
        **_summary(calls),
    }
    yield from _calls(calls, {**common, "iterations": 1, "conflict": conflict}, sink)


def _conflict(size: int, time: float, half: Mapping[str, Any], draft: Draft) -> str | None:
    algbw, busbw = number(half.get("alg_bw")), number(half.get("bus_bw"))
    if algbw is None:
        return None
    rate = exactly(algbw).scaled(_GIGA)
    conflict = bandwidth_conflict(size, exactly(time).scaled(_MICRO), rate)
    collective, ranks = draft.facts.get("collective"), draft.facts.get("ranks")
    if conflict is None and busbw is not None and collective is not None and ranks is not None:
        return bus_conflict(collective, ranks, rate, exactly(busbw).scaled(_GIGA))
    return conflict


_SUMMARIES = {
    "time_min_s": "min_us",
    "time_p50_s": "p50_us",
    "time_p99_s": "p99_us",
    "time_max_s": "max_us",
    "time_std_s": "stdev_us",
}


def _summary(calls: Mapping[str, Any]) -> dict[str, float]:
    found = {name: number(calls.get(key)) for name, key in _SUMMARIES.items()}
    return {name: value * _MICRO for name, value in found.items() if value is not None}


def _calls(calls: Mapping[str, Any], common: Mapping[str, Any], sink: Sink) -> Iterator[dict[str, Any]]:
    """Every call: of all processes together, and of each."""
    matrix = calls.get("per_process_max_times_us")
    series: list[tuple[int | None, Any]] = [(None, calls.get("times_us"))]
    series += list(enumerate(matrix)) if isinstance(matrix, list) else []
    for process, times in series:
        for iteration, value in enumerate(times if isinstance(times, list) else ()):
            time = number(value)
            if time is None or time <= 0:
                sink.skip("calls whose time is no number above zero")
                continue
            yield {**common, "process": process, "iteration": iteration, "time_s": time * _MICRO}
