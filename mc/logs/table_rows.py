"""From the rows of somebody's table to measurements."""

from collections.abc import Iterator, Mapping
from typing import Any

from mc.config.bus_bandwidth import bus_factor
from mc.logs.consistency import bandwidth_conflict, bus_conflict
from mc.logs.names import collective_of
from mc.logs.printed import Printed, printed
from mc.logs.records import number, whole
from mc.logs.roles import BANDWIDTH_UNITS, PLAN, Role, role_of, time_of
from mc.logs.sink import Draft, Sink, name_of
from mc.logs.table_reading import Reading

# How the spelling `gbps` can be meant.
_BOTH = (BANDWIDTH_UNITS["GB/s"], BANDWIDTH_UNITS["Gb/s"])
_LABEL = 160


class TableRows:
    """Takes row after row."""

    def __init__(self, reading: Reading, sink: Sink):
        """Args: reading of the columns; sink takes the rows."""
        self._reading = reading
        self._sink = sink
        self._drafts: dict[str | None, Draft] = {}
        self._count = 0
        self._mfu_scale: float | None = None
        self._is_sampled = bool(reading.columns("iteration")) or bool(reading.columns("per-process"))

    def close(self) -> None:
        """Ends the table."""
        for draft in self._drafts.values():
            draft.close()

    def take(self, line: int | None, values: Mapping[str, Any]) -> None:
        """One row of the file, which may hold several measurements."""
        for row in self._measurements(line, values):
            draft = self._draft(row.pop("_collective", None))
            draft.add(row)
            if len(draft.waiting) >= 4096:
                draft.flush()
        self._count += 1

    def _draft(self, name: str | None) -> Draft:
        if name not in self._drafts:
            reading = self._reading
            self._drafts[name] = draft = self._sink.draft(reading.kind, name or "")
            if reading.kind == "collective":
                draft.know("collective", collective_of(name) if name else None, "from the rows")
                draft.know("collective", name_of(self._sink.source), "from the name of the file")
                if draft.facts.get("collective") is None:
                    draft.remark("the collective is not known: say `--collective`")
            draft.know_notes()
        return self._drafts[name]

    def _measurements(self, line: int | None, values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        reading, sink = self._reading, self._sink
        common = self._common(line, values)
        if reading.kind == "collective":
            size = whole(self._one(values, "bytes"))
            if size is None or size == 0:
                sink.skip(
                    "rows of zero bytes" if size == 0 else "rows whose size is no whole number of bytes",
                    line,
                    str(dict(values)),
                )
                return
            common["bytes"] = size
        measured = dict(self._measured(values))
        if not measured:
            sink.skip(
                "rows of other metrics" if reading.is_long else "rows without a figure", line, _shown(values)
            )
            return
        for (role, in_place, process), figure in measured.items():
            if figure is None or (figure.value <= 0 and role.name in ("time", "per-process", "mfu")):
                what = "a time" if role.name != "mfu" else "an MFU"
                kind = "that is zero or negative" if figure is not None else "that is no number"
                sink.skip(f"rows with {what} {kind}", line, _shown(values))
                continue
            row = dict(common)
            if in_place is not None:
                row["in_place"] = in_place
            if process is not None:
                row["process"] = process
            if self._fill(row, role, figure, values):
                yield row
            else:
                sink.skip(
                    "rows whose bandwidth gives no time: collective and ranks must be known",
                    line,
                    _shown(values),
                )

    def _measured(
        self, values: Mapping[str, Any]
    ) -> Iterator[tuple[tuple[Role, bool | None, int | None], Printed | None]]:
        """What is measured in a row: times, or else MFU, or else bandwidths."""
        reading = self._reading
        if reading.is_long:
            metric = str(self._one(values, "metric"))
            timed, other = time_of(metric), role_of(metric)
            role = timed[1] if timed is not None and timed[1].name == "time" else other
            if (
                role is not None
                and role.name in ("time", "mfu", "busbw", "algbw")
                and (role.scale or role.name == "mfu")
            ):
                yield (role, None, None), _figure(self._one(values, "value"))
            return
        names = reading.columns("time") or reading.columns("per-process")
        mfu = [] if reading.kind == "collective" else reading.columns("mfu")
        for name in names or mfu or reading.columns("busbw") or reading.columns("algbw"):
            role = reading.roles[name]
            if values.get(name) in (None, "", "-"):
                continue
            yield (role, role.in_place, role.index), _figure(values.get(name))
        if not any(values.get(name) not in (None, "", "-") for name in names):
            for name in mfu if names else ():
                if values.get(name) not in (None, "", "-"):
                    yield (reading.roles[name], None, None), _figure(values.get(name))

    def _fill(self, row: dict[str, Any], role: Role, figure: Printed, values: Mapping[str, Any]) -> bool:
        """Puts a figure into a row; whether that was possible."""
        reading = self._reading
        if role.name in ("time", "per-process"):
            assert role.scale is not None
            row["time_s"] = figure.value * role.scale
            row["timing"] = "call"
            for name in reading.roles:
                each = reading.roles[name]
                if (
                    each.name.startswith("time_")
                    and each.scale
                    and (found := number(values.get(name))) is not None
                ):
                    row[each.name] = found * each.scale
            mfu = reading.columns("mfu")
            if mfu and (share := _figure(values.get(mfu[0]))) is not None and share.value > 0:
                self._share(row, reading.roles[mfu[0]], share.value)
            if reading.kind == "collective":
                row["conflict"] = self._conflict(row, role, figure, values)
            return True
        if role.name == "mfu":
            self._share(row, role, figure.value)
            return True
        return self._from_bandwidth(row, role, figure)

    def _share(self, row: dict[str, Any], role: Role, value: float) -> None:
        """An MFU between 0 and 1; without a unit a figure above 1 is percent, which is said."""
        if role.scale is None and value > 1:
            self._sink.remark("MFU is read as percent, since it exceeds 1")
        scale = role.scale or (0.01 if value > 1 else 1.0)
        if self._mfu_scale not in (None, scale):
            row["conflict"] = (
                f"mixed units: MFU is {value:g} here, and a share of 1 or percent in rows before"
            )
        else:
            self._mfu_scale = scale
        row["mfu"] = value * scale

    def _from_bandwidth(self, row: dict[str, Any], role: Role, figure: Printed) -> bool:
        scale = role.scale
        if scale is None:
            given = self._sink.hints.bandwidth_unit
            if given is None:
                columns = ", ".join(f"`{name}`" for name in self._reading.columns(role.name))
                raise self._sink.fail(
                    f"expected the unit of the bandwidths: {columns} has none, or `gbps`, which may be GB/s or Gb/s; "
                    "say `--bandwidth-unit`",
                    row["line"],
                )
            scale = BANDWIDTH_UNITS[given]
        collective = row.get("collective") or self._draft(row.get("_collective")).facts.get("collective")
        ranks = row.get("ranks") or self._draft(row.get("_collective")).facts.get("ranks")
        if figure.value <= 0 or collective is None or (role.name == "busbw" and ranks is None):
            return False
        factor = bus_factor(collective, ranks) if role.name == "busbw" and ranks is not None else 1.0
        row["time_s"] = row["bytes"] * factor / (figure.value * scale)
        row["timing"] = "call"
        return factor > 0

    def _conflict(
        self, row: Mapping[str, Any], role: Role, figure: Printed, values: Mapping[str, Any]
    ) -> str | None:
        """Why a row cannot be trusted: its bandwidths disagree with its time, or its results were wrong."""
        assert role.scale is not None
        for name in self._reading.columns("wrong"):
            if self._reading.roles[name].in_place == role.in_place and (wrong := whole(values.get(name))):
                return f"{wrong} elements came out wrong"
        reading, time = self._reading, figure.scaled(role.scale)
        figures = {}
        for kind in ("algbw", "busbw"):
            for name in reading.columns(kind):
                if (
                    reading.roles[name].in_place == role.in_place
                    and (found := _figure(values.get(name))) is not None
                ):
                    figures[kind] = (
                        found,
                        (reading.roles[name].scale,) if reading.roles[name].scale else _BOTH,
                    )
        if "algbw" not in figures:
            return None
        algbw, scales = figures["algbw"]
        conflicts = [bandwidth_conflict(row["bytes"], time, algbw.scaled(scale)) for scale in scales]
        if all(conflicts):
            return conflicts[0]
        collective = row.get("collective") or self._draft(row.get("_collective")).facts.get("collective")
        ranks = row.get("ranks")
        if "busbw" in figures and collective is not None and ranks is not None:
            return bus_conflict(
                collective, ranks, algbw.scaled(_BOTH[0]), figures["busbw"][0].scaled(_BOTH[0])
            )
        return None

    def _common(self, line: int | None, values: Mapping[str, Any]) -> dict[str, Any]:
        """What a row says beside its figures."""
        reading = self._reading
        row: dict[str, Any] = {"line": line, "_collective": None}
        ranks, nodes = whole(self._one(values, "ranks")) or None, whole(self._one(values, "nodes")) or None
        each = whole(self._one(values, "per_node")) or None
        if each is not None:
            ranks = ranks or (nodes * each if nodes else None)
            nodes = nodes or (ranks // each if ranks and ranks % each == 0 else None)
        row.update(
            {
                name: value
                for name, value in (("ranks", ranks), ("nodes", nodes))
                if value is not None and value < 2**31
            }
        )
        for name in ("datatype", "device", "algorithm", "protocol"):
            value = self._one(values, name)
            if value not in (None, ""):
                row[name] = str(value)[:_LABEL]
        if reading.kind == "collective" and (operation := self._one(values, "collective")) not in (None, ""):
            row["_collective"] = str(operation)[:_LABEL]
        if self._is_sampled:
            found = whole(self._one(values, "iteration"))
            row["iteration"] = self._count if found is None else found
            row["iterations"] = 1
        elif (many := whole(self._one(values, "iterations"))) is not None:
            row["iterations"] = many
        if (process := whole(self._one(values, "process"))) is not None and process < 2**31:
            row["process"] = process
        place = str(self._one(values, "place") or "").lower()
        if place:
            row["in_place"] = place in ("in-place", "in_place", "inplace", "1", "true")
        plan = {key: whole(self._one(values, key)) for key in PLAN if reading.columns(key)}
        if stated := " ".join(f"{key}={value}" for key, value in plan.items() if value):
            row["plan"] = stated
        label = ", ".join(
            f"{name}={values[name]}" for name in reading.unused if values.get(name) not in (None, "")
        )
        if label:
            row["section"] = label[:_LABEL]
        return row

    def _one(self, values: Mapping[str, Any], role: str) -> Any:
        return next(
            (values.get(name) for name in self._reading.columns(role) if values.get(name) not in (None, "")),
            None,
        )


def _figure(value: Any) -> Printed | None:
    found = number(value.rstrip("% ") if isinstance(value, str) else value)
    if found is None:
        return None
    return printed(value.strip().rstrip("% ") if isinstance(value, str) else repr(value))


def _shown(values: Mapping[str, Any]) -> str:
    return ", ".join(str(value) for value in list(values.values())[:8])
