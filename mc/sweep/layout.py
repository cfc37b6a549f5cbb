"""How the cells of a large sweep differ, without validating each of them.

An axis is *numeric* if all its points change the same floats of the resolved configuration and nothing else, such as
bandwidths, sizes and delays; its column of floats is read off configurations in which the other axes stay. All other axes
(rank counts, algorithms, shapes) are structural. For each combination of structural points one configuration is a
template, and the floats of a cell are those of its numeric points. That they do add up so is tested where all numeric
axes are at their last points; where they do not, cells are taken one by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mc.config import ExperimentConfig
from mc.config.load_sweep import Sweep
from mc.config.sweep_axes import numbers_of
from mc.document import Node
from mc.sweep.leaves import Group, Path, leaves

# Points of one axis up to which each is validated to see what it changes.
_MOST_READ = 256


@dataclass(frozen=True)
class Numeric:
    """What an axis changes.

    Attributes:
        paths: floats of the configuration.
        values: [points, paths].
    """

    paths: tuple[Path, ...]
    values: NDArray[np.float64]


@lru_cache(maxsize=4)
def layout_of(sweep: Sweep) -> tuple[Numeric | None, ...]:
    """What each axis changes; None for one that changes more than floats."""
    base = leaves(sweep.experiment(0))
    found = [_numeric(sweep, axis, base) for axis in range(len(sweep.axes))]
    taken: set[Path] = set()
    for axis, each in enumerate(found):
        # Two axes that change one float leave it to their combination.
        if each is not None and taken & set(each.paths):
            found[axis] = None
        elif each is not None:
            taken |= set(each.paths)
    return tuple(found)


def groups_by_layout(sweep: Sweep, start: int, stop: int) -> tuple[list[Group], list[int]]:
    """The cells from `start` to `stop` by structure, and those that have to be taken one by one."""
    layout = layout_of(sweep)
    cells = np.arange(start, stop)
    places = np.stack(np.unravel_index(cells, sweep.shape), axis=1)
    structural = [axis for axis, each in enumerate(layout) if each is None]
    numeric = [(axis, each) for axis, each in enumerate(layout) if each is not None]
    combinations, member = np.unique(places[:, structural], axis=0, return_inverse=True)
    groups: list[Group] = []
    alone: list[int] = []
    for number, combination in enumerate(combinations):
        own = np.flatnonzero(member.ravel() == number)
        template = _template(sweep, structural, combination.tolist(), numeric)
        if template is None:
            alone += cells[own].tolist()
            continue
        paths = tuple(path for _, each in numeric for path in each.paths)
        columns = [each.values[places[own, axis]] for axis, each in numeric]
        groups.append(Group(cells[own], template, paths, np.concatenate(columns, axis=1)))
    return groups, alone


def _template(
    sweep: Sweep,
    structural: Sequence[int],
    combination: Sequence[int],
    numeric: Sequence[tuple[int, Numeric]],
) -> ExperimentConfig | None:
    """The configuration of a structure, if its cells differ as the layout says."""
    place = [0] * len(sweep.axes)
    for axis, point in zip(structural, combination, strict=True):
        place[axis] = point
    first = sweep.experiment(int(np.ravel_multi_index(place, sweep.shape)))
    for axis, _ in numeric:
        place[axis] = sweep.shape[axis] - 1
    last = leaves(sweep.experiment(int(np.ravel_multi_index(place, sweep.shape))))
    wanted = dict(leaves(first))
    for _, each in numeric:
        wanted |= dict(zip(each.paths, each.values[-1].tolist(), strict=True))
    return first if last == wanted else None


def _numeric(sweep: Sweep, axis: int, base: dict) -> Numeric | None:
    points = sweep.shape[axis]
    stride = int(np.prod(sweep.shape[axis + 1 :], dtype=np.int64))
    # Of a long axis, some points; the others are as the file says if these are.
    read = sorted({int(point) for point in np.linspace(0, points - 1, min(points, _MOST_READ))})
    seen = [leaves(sweep.experiment(point * stride)) for point in read]
    if any(each.keys() != base.keys() for each in seen):
        return None
    paths = tuple(path for path, value in base.items() if any(each[path] != value for each in seen))
    if not all(isinstance(each[path], float) for each in seen for path in paths):
        return None
    values = np.array([[each[path] for path in paths] for each in seen], np.float64).reshape(
        len(read), len(paths)
    )
    if len(read) == points:
        return Numeric(paths, values)
    columns = _as_written(sweep.axes[axis].points)
    found = []
    for place in range(len(paths)):
        column = next((each for each in columns if (each[read] == values[:, place]).all()), None)
        if column is None:
            return None
        found.append(column)
    return Numeric(paths, np.stack(found, axis=1).reshape(points, len(paths)))


def _as_written(points: Sequence[tuple[Node, ...]]) -> list[NDArray[np.float64]]:
    """The columns of an axis that are numbers."""
    columns = [numbers_of(column) for column in zip(*points, strict=True)]
    return [np.array(column) for column in columns if column is not None]
