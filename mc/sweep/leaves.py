"""Configurations as trees of leaves, so that many can be evaluated as one.

Configurations that differ in floats alone have one *structure*: what is computed for one is computed for all, on
arrays. The floats are put into the configuration as traced numbers, and the engine builds its modules from it as ever.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mc.config import ExperimentConfig
from mc.document import StrictModel

Path = tuple[str | int, ...]
# What says nothing about a step.
_IDLE = frozenset({"description"})


@dataclass(frozen=True)
class Group:
    """Cells with one structure.

    Attributes:
        cells: their numbers.
        template: one of the configurations.
        paths: leaves that differ.
        values: what they are, [cells, paths].
    """

    cells: NDArray[np.int64]
    template: ExperimentConfig
    paths: tuple[Path, ...]
    values: NDArray[np.float64]


def leaves(config: StrictModel) -> dict[Path, Any]:
    """Every value of a configuration that is no mapping or list, by its path."""
    found: dict[Path, Any] = {}

    def visit(value: Any, path: Path) -> None:
        if isinstance(value, StrictModel):
            for name in type(value).model_fields:
                if name not in _IDLE:
                    visit(getattr(value, name), (*path, name))
        elif isinstance(value, tuple | list):
            for index, item in enumerate(value):
                visit(item, (*path, index))
        else:
            found[path] = value

    visit(config, ())
    return found


def put(config: Any, values: Mapping[Path, Any]) -> Any:
    """The configuration with other leaves; nothing is validated."""
    if () in values:
        return values[()]
    below: dict[str | int, dict[Path, Any]] = {}
    for (step, *rest), value in values.items():
        below.setdefault(step, {})[tuple(rest)] = value
    if isinstance(config, StrictModel):
        update = {str(step): put(getattr(config, str(step)), own) for step, own in below.items()}
        return config.model_copy(update=update)
    items = list(config)
    for step, own in below.items():
        items[int(step)] = put(items[int(step)], own)
    return tuple(items)


def groups_of(configs: Mapping[int, ExperimentConfig]) -> list[Group]:
    """Cells by structure, in the order in which the structures come up."""
    members: dict[Any, list[tuple[int, dict[Path, Any]]]] = {}
    for cell, config in configs.items():
        own = leaves(config)
        structure = tuple(
            (path, float if isinstance(value, float) else (type(value), value)) for path, value in own.items()
        )
        members.setdefault(structure, []).append((cell, own))
    return [_group(configs, each) for each in members.values()]


def _group(configs: Mapping[int, ExperimentConfig], members: Sequence[tuple[int, dict[Path, Any]]]) -> Group:
    first, own = members[0]
    paths = tuple(
        path
        for path, value in own.items()
        if isinstance(value, float) and any(each[path] != value for _, each in members)
    )
    values = [[each[path] for path in paths] for _, each in members]
    cells = np.array([cell for cell, _ in members], np.int64)
    return Group(cells, configs[first], paths, np.array(values, np.float64).reshape(len(cells), len(paths)))
