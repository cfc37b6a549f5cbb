"""The tables: rows of `experiments/data/published`, each a plan and the measured seconds of a step.

Rows are told apart into those that efficiencies are fitted on and those that are held out. In each table what was run is
put in an order by a fixed seed, and every second is fitted on; what was run several times, for one release of the
software after the other, is on one side. A table is held out as a whole where the experiment says so.
"""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from experiments.published import models, software, systems
from mc.config import ExperimentConfig
from mc.config.plan import PlanConfig
from mc.config.recompute import RECOMPUTE_PARTS
from mc.config.workload import ModelConfig

DATA = Path(__file__).resolve().parents[1] / "data" / "published"
SEED = 4
# Columns that a table may leave out, where all of its rows agree.
_COMMON: dict[str, dict[str, str]] = {
    "vtrain_single_node": {
        "system": "vtrain",
        "software": "megatron-deepspeed",
        "math": "bf16",
        "sequence": "1024",
    }
}
# Columns that two runs of the same may differ in.
_OF_ONE_RUN = ("row", "software", "step_s", "as_printed")
_SIZES = ("tp", "cp", "pp", "ep", "etp", "dp", "chunks", "micro_batch", "global_batch")


@dataclass(frozen=True)
class Row:
    """One published step.

    Attributes:
        table: where it stands.
        name: its own.
        system: what it ran on.
        gpus: how many.
        config: the experiment.
        step: measured seconds.
        fitted: whether efficiencies are fitted on it.
    """

    table: str
    name: str
    system: str
    gpus: int
    config: ExperimentConfig
    step: float
    fitted: bool

    @property
    def chip(self) -> str:
        """The catalog's id of the chip."""
        return systems.SYSTEMS[self.system].chip


def rows(table: str) -> list[Row]:
    """The rows of a table, in its order."""
    with (DATA / f"{table}.csv").open(encoding="utf-8", newline="") as stream:
        raw = list(csv.DictReader(line for line in stream if not line.startswith("#")))
    what = [tuple(each[key] for key in each if key not in _OF_ONE_RUN) for each in raw]
    runs = list(dict.fromkeys(what))
    chosen = {runs[place] for place in np.random.default_rng(SEED).permutation(len(runs))[::2]}
    return [
        _row(table, _COMMON.get(table, {}) | each, fitted=key in chosen)
        for each, key in zip(raw, what, strict=True)
    ]


def notes(table: str) -> list[str]:
    """What the table says of itself: its sources, and what is assumed or left out."""
    with (DATA / f"{table}.csv").open(encoding="utf-8") as stream:
        return [line[1:].strip() for line in stream if line.startswith("#")]


def _row(table: str, raw: dict[str, str], *, fitted: bool) -> Row:
    gpus = int(raw["gpus"])
    config = ExperimentConfig(
        name=f"{table} {raw['row']}",
        cluster=systems.cluster(raw["system"], gpus),
        model=_model(raw["model"], int(raw["layers"]) if raw.get("layers") else None),
        plan=PlanConfig.model_validate(plan(raw)),
    )
    return Row(table, raw["row"], raw["system"], gpus, config, float(raw["step_s"]), fitted)


@cache
def _model(name: str, layers: int | None) -> ModelConfig:
    return ModelConfig(name=name, transformer=models.shape(name, layers))


def plan(raw: dict[str, str]) -> dict[str, Any]:
    """The plan of a row: what the software does, sizes, formats, and the row's own settings on top."""
    found: dict[str, Any] = dict(software.SOFTWARE[raw["software"]])
    found |= {key: int(raw[key]) for key in _SIZES if raw.get(key)}
    found["sequence_length"] = int(raw["sequence"])
    found["formats"] = {"math": raw["math"], **found.get("formats", {})}
    if found["tp"] == 1:
        found.pop("sequence_parallel", None)
    for setting in (raw.get("settings") or "").split():
        path, _, value = setting.partition("=")
        *outer, last = path.split(".")
        into = found
        for key in outer:
            into[key] = dict(into.get(key, {}))
            into = into[key]
        into[last] = _value(value)
    return found


def _value(text: str) -> Any:
    """A word, a truth value, a number, a list of numbers such as `0,126x1,0`, or parts that are computed again."""
    words = tuple(text.split(","))
    if set(words) <= set(RECOMPUTE_PARTS):
        return words
    if "," not in text:
        number = int(text) if text.isdigit() else float(text) if text.replace(".", "").isdigit() else text
        return {"true": True, "false": False}.get(text, number)
    found: list[int] = []
    for each in text.split(","):
        count, _, number = each.rpartition("x")
        found += [int(number)] * int(count or 1)
    return tuple(found)
