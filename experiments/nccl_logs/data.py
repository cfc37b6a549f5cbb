"""The rows of the logs as a table that the experiment carries: figures, each with its source.

Two files: `logs.csv` says of each part of a log what it was measured on and where it is published, `rows.csv`
has its sizes and times.
"""

import csv
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np

from experiments.nccl_logs.compare import Curve
from experiments.nccl_logs.systems import LEFT_OUT, System, system_of
from mc.logs import Hints, read_logs

DATA = Path(__file__).resolve().parent / "data"
_NOTE = "# all-reduce times of nccl-tests and rccl-tests, out of place, from the published logs named in `source`\n"


def from_logs(folder: Path) -> list[Curve]:
    """Every all-reduce log of a folder whose hardware is known, in parts with one system each."""
    found: list[Curve] = []
    for path in sorted(folder.glob("*.txt")):
        log = path.stem
        if log in LEFT_OUT:
            continue
        # What came out wrong took its time all the same.
        logged = read_logs([path], Hints(keep_conflicts=True))
        notes, parts = logged.files[0].notes, dict[System, list[tuple[int, float]]]()
        if not notes.get("op", "").startswith("all_reduce"):
            continue
        for row in logged.table.where(in_place=False).rows():
            system = system_of(log, row["section"] or "", dict(notes))
            if system is None:
                raise ValueError(
                    f"{log}: expected a log whose system is described in systems.py; got another"
                )
            parts.setdefault(system, []).append((row["bytes"], row["time_s"]))
        for system, each in parts.items():
            sizes, times = np.asarray(each, float).T
            found.append(Curve(log, system, notes.get("source", ""), sizes, times))
    return found


def write(curves: Iterable[Curve], folder: Path) -> None:
    """Both files."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        (folder / "logs.csv").open("w", newline="") as logs,
        (folder / "rows.csv").open("w", newline="") as table,
    ):
        for stream in (logs, table):
            stream.write(_NOTE)
        known, measured = csv.writer(logs), csv.writer(table)
        known.writerow(["part", "log", *(field.name for field in fields(System)), "source"])
        measured.writerow(["part", "size_bytes", "time_us"])
        for part, curve in enumerate(curves):
            known.writerow([part, curve.log, *asdict(curve.system).values(), curve.source])
            measured.writerows(
                (part, int(size), f"{time * 1e6:.6g}")
                for size, time in zip(curve.sizes, curve.measured, strict=True)
            )


def read(folder: Path = DATA) -> list[Curve]:
    """The curves that the experiment carries."""
    times: dict[str, list[tuple[float, float]]] = {}
    for row in _table(folder / "rows.csv"):
        times.setdefault(row["part"], []).append((float(row["size_bytes"]), float(row["time_us"]) * 1e-6))
    found = []
    for row in _table(folder / "logs.csv"):
        sizes, measured = np.asarray(times[row["part"]]).T
        found.append(Curve(row["log"], _system(row), row["source"], sizes, measured))
    return found


def _table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(line for line in stream if not line.startswith("#")))


def _system(row: dict[str, str]) -> System:
    def value(name: str, kind: object) -> str | int | bool:
        text = row[name]
        return text == "True" if kind is bool else int(text) if kind is int else text

    return System(**{field.name: value(field.name, field.type) for field in fields(System)})  # pyright: ignore[reportArgumentType]
