"""How the columns of a table are read: what each is, what the table is about, and that in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mc.document import did_you_mean
from mc.logs.roles import PLAN, TIME_UNITS, Role, role_of, time_of
from mc.logs.sink import Sink

# Columns whose meaning a metric's name gives.
_LONG = ("metric", "value")


@dataclass(frozen=True)
class Reading:
    """The columns of a table.

    Attributes:
        kind: `collective` or `step`.
        roles: what each column is, by its name; those without a use are left out.
        unused: the other columns.
        chosen: the columns that the user named.
    """

    kind: str
    roles: dict[str, Role]
    unused: tuple[str, ...]
    chosen: tuple[str, ...]

    @cached_property
    def is_long(self) -> bool:
        """Whether what is measured is named in each row."""
        return {role.name for role in self.roles.values()} >= set(_LONG)

    @cached_property
    def _by_role(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, each in self.roles.items():
            found.setdefault(each.name, []).append(name)
        return found

    def columns(self, role: str) -> list[str]:
        """The columns of a role."""
        return self._by_role.get(role, [])

    @staticmethod
    def of(names: Sequence[str], sink: Sink) -> "Reading":
        """Reads the names of the columns; raises LogError if they cannot be a table of measurements."""
        hints = sink.hints
        chosen: list[str] = []
        roles: dict[str, Role] = {}
        for name in names:
            role = role_of(name)
            if role is not None:
                roles[name] = role
        if not {role.name for role in roles.values()} & {"collective", "busbw", "algbw"}:
            # `size` alone may be that of a model, a batch or a cluster.
            roles = {name: role for name, role in roles.items() if name.strip().lower() != "size"}
        if hints.ranks_column is not None:
            _checked(hints.ranks_column, names, "--ranks-column", sink)
            roles = {name: role for name, role in roles.items() if role.name != "ranks"}
            roles[hints.ranks_column] = Role("ranks")
            chosen.append(hints.ranks_column)
        per_process = [name for name, role in roles.items() if role.name == "per-process"]
        if hints.step_column is not None:
            _checked(hints.step_column, names, "--step-column", sink)
            roles = {name: role for name, role in roles.items() if role.name != "per-process"}
            found = time_of(hints.step_column)
            roles[hints.step_column] = Role("time", found[1].scale if found else None)
            chosen.append(hints.step_column)
        elif len(per_process) < 2:
            roles = {name: role for name, role in roles.items() if role.name != "per-process"}
            _guess_times(names, roles, sink)
        kind = "collective" if any(role.name == "bytes" for role in roles.values()) else "step"
        if kind == "collective":
            roles = {name: role for name, role in roles.items() if role.name not in PLAN}
        reading = Reading(
            kind,
            roles,
            tuple(name for name in names if name not in roles),
            tuple(chosen),
        )
        return reading._with_units(names, sink)

    def _with_units(self, names: Sequence[str], sink: Sink) -> "Reading":
        """The same, with the unit that the user gave where a name has none."""
        has = {role.name for role in self.roles.values()}
        measured = has & {"time", "per-process", "mfu", "busbw", "algbw"}
        if not measured and not self.is_long:
            wanted = "a time, a bandwidth or MFU"
            raise sink.fail(
                f"expected a column of {wanted}, with a unit in its name such as step_time_s or time_us; "
                f"got the columns {', '.join(names[:12])}{', ...' if len(names) > 12 else ''} "
                "(`--step-column` and `--step-unit` name one)"
            )
        roles = dict(self.roles)
        for name, role in roles.items():
            if role.name in ("time", "per-process") and (role.scale is None or name in self.chosen):
                given = sink.hints.step_unit
                if given is None and role.scale is None:
                    raise sink.fail(
                        f"expected the unit of the column `{name}`; say `--step-unit` s, ms, us or ns"
                    )
                scale = role.scale if given is None else TIME_UNITS[given]
                roles[name] = Role(role.name, scale, role.in_place, role.index)
        return Reading(self.kind, roles, self.unused, self.chosen)

    def said(self) -> str:
        """How the columns are read, in words."""
        parts = []
        for name, role in self.roles.items():
            unit = f" in {_unit(role.scale)}" if role.name in ("time", "per-process") and role.scale else ""
            how = ", as told" if name in self.chosen else ""
            if role.name != "per-process":
                parts.append(
                    f"`{name}` is {role.name.replace('time_', 'time ').removesuffix('_s')}{unit}{how}"
                )
        processes = self.columns("per-process")
        if processes:
            unit = _unit(self.roles[processes[0]].scale)
            parts.append(f"`{processes[0]}` to `{processes[-1]}` are processes, times in {unit}")
        unused = f"; not used as figures: {', '.join(self.unused)}" if self.unused else ""
        return f"columns by their names: {', '.join(parts)}{unused}"


def _unit(scale: float | None) -> str:
    return next((unit for unit in ("s", "ms", "us", "ns") if TIME_UNITS[unit] == scale), "?")


def _checked(column: str, names: Sequence[str], option: str, sink: Sink) -> None:
    if column not in names:
        raise sink.fail(
            f"{option}: there is no column `{column}`; {did_you_mean(column, names, most=len(names))}"
        )


def _guess_times(names: Sequence[str], roles: dict[str, Role], sink: Sink) -> None:
    """Adds the columns of times: the one that is most likely measured, of each placement, and its statistics."""
    found = {name: each for name in names if name not in roles and (each := time_of(name)) is not None}
    statistics = {name: role for name, (priority, role) in found.items() if priority == 0}
    likely = {name: each for name, each in found.items() if each[0] > 0}
    if likely:
        best = max(priority for priority, _ in likely.values())
        chosen = [name for name, (priority, _) in likely.items() if priority == best]
        places = [likely[name][1].in_place for name in chosen]
        if len(set(places)) < len(places):
            raise sink.fail(
                f"expected one column of times; got {', '.join(chosen)}: say which is meant by `--step-column`"
            )
        roles.update({name: likely[name][1] for name in chosen})
    elif len(statistics) == 1 or any(role.name == "time_p50_s" for role in statistics.values()):
        # A median alone stands for the time.
        median = next((name for name, role in statistics.items() if role.name == "time_p50_s"), None)
        if median is not None:
            roles[median] = Role("time", statistics.pop(median).scale)
    roles.update(statistics)
