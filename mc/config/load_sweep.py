"""Loading a sweep: the experiment below it, its axes, and every cell as a configuration of its own.

What is shared is read once: files, references, imported shapes. A cell is that document with its values put in, then
validated as any experiment, so a cell can be wrong in all the ways in which a file can, at the line of its value.
"""

import itertools
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from mc.config import shipped
from mc.config.experiment import ExperimentConfig
from mc.config.load import PathLike, document_of, experiment_of
from mc.config.references import REFERENCES, splice_references
from mc.config.sweep import KEY, SweepConfig, split_sweep
from mc.config.sweep_axes import Axis, Path, axes_of
from mc.document import (
    ConfigError,
    Document,
    Node,
    Override,
    Position,
    Problem,
    apply_overrides,
    is_file,
    key_text,
    parse_override,
    resolve_extends,
)

# Up to here every cell is validated before anything runs.
FULLY_CHECKED = 1024
_MOST_PROBLEMS = 20


@dataclass(frozen=True, eq=False)
class Sweep:
    """A sweep as a file describes it.

    Attributes:
        config: the block.
        document: the experiment without it, references resolved.
        axes: slowest first.
    """

    config: SweepConfig
    document: Document
    axes: tuple[Axis, ...]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Points of each axis."""
        return tuple(len(axis.points) for axis in self.axes)

    def __len__(self) -> int:
        """How many cells there are."""
        return math.prod(self.shape)

    @property
    def name(self) -> str:
        """Of the experiment."""
        node = self.document.root.child("name")
        return "" if node is None else str(node.value)

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Every path that changes, as text."""
        return tuple(key_text(path) for axis in self.axes for path in axis.paths)

    def place(self, cell: int) -> tuple[int, ...]:
        """The point of each axis."""
        found = []
        for points in reversed(self.shape):
            cell, point = divmod(cell, points)
            found.append(point)
        return tuple(reversed(found))

    def values(self, cell: int) -> list[tuple[Path, Node]]:
        """What is put in, path by path."""
        return [
            pair
            for axis, point in zip(self.axes, self.place(cell), strict=True)
            for pair in zip(axis.paths, axis.points[point], strict=True)
        ]

    def experiment(self, cell: int) -> ExperimentConfig:
        """The configuration of one cell.

        Raises:
            ConfigError: the cell cannot be.
        """
        values = sorted(self.values(cell), key=lambda pair: len(pair[0]))
        return experiment_of(self.document, [Override(path, node) for path, node in values])

    def text(self, cell: int) -> str:
        """A cell in words: `plan.ranks=8, plan.algorithm=ring`."""
        return ", ".join(f"{key_text(path)}={_shown(node)}" for path, node in self.values(cell))


def load_sweep(path: PathLike, overrides: Sequence[str] = ()) -> Sweep:
    """Load an experiment file with a `sweep:` block; its cells are not looked at yet.

    Args:
        path: a file, or the bare name of a shipped sweep or experiment.
        overrides: `a.b=c` texts, as after `--set`; `sweep.` keys too.

    Raises:
        ConfigError: with what is wrong, each at its place.
    """
    document = resolve_extends(document_of("experiment", _shipped(path)), shipped.finder("experiment"))
    document = apply_overrides(
        document, [each for each in map(parse_override, overrides) if each.path[0] == KEY]
    )
    rest, node, config = split_sweep(document)
    if node is None or config is None:
        text = "expected a `sweep` block, such as `sweep: {grid: {plan.ranks: [8, 64]}}`"
        raise ConfigError([Problem(Position(document.file), "", text)])
    axes = axes_of(config, node, document.file)
    others = [each for each in map(parse_override, overrides) if each.path[0] != KEY]
    whole = [each for each in others if len(each.path) == 1 and each.path[0] in REFERENCES]
    swept = {path[0] for axis in axes for path in axis.paths if len(path) == 1}
    rest = apply_overrides(rest, whole)
    if not swept & set(REFERENCES):
        rest, failed = splice_references(rest)
        if failed:
            raise ConfigError([each for problems in failed.values() for each in problems])
    rest = apply_overrides(rest, [each for each in others if each not in whole])
    sweep = Sweep(config, rest, axes)
    _refuse_too_many(sweep, node)
    return sweep


def check_cells(sweep: Sweep) -> None:
    """Validates the cells of a sweep before anything runs.

    All of them up to `FULLY_CHECKED`. Of more, every point of every axis with the others at their first point and at
    their last, and every combination of first and last points: rules that join two values ask which is larger, so
    they break at an end. With `impossible: list` one of them has to be possible.

    Raises:
        ConfigError: with what is wrong with them, each at its place.
    """
    problems: dict[tuple[Position, str], Problem] = {}
    is_listed = sweep.config.impossible == "list"
    for cell in _to_check(sweep):
        try:
            sweep.experiment(cell)
            if is_listed:
                return
        except ConfigError as error:
            for each in error.problems:
                text = f"{each.message} (cell {cell}: {sweep.text(cell)})"
                problems.setdefault((each.position, each.key), Problem(each.position, each.key, text))
            if len(problems) >= _MOST_PROBLEMS and not is_listed:
                break
    if problems:
        raise ConfigError(list(problems.values())[:_MOST_PROBLEMS])


def _to_check(sweep: Sweep) -> Iterator[int]:
    if len(sweep) <= FULLY_CHECKED:
        yield from range(len(sweep))
        return
    ends = [(0, points - 1) if points > 1 else (0,) for points in sweep.shape]
    seen: set[int] = set()
    lines = (
        [*before, point, *after]
        for axis, points in enumerate(sweep.shape)
        for before, after in (
            ([0] * axis, [0] * (len(ends) - axis - 1)),
            ([each[-1] for each in ends[:axis]], [each[-1] for each in ends[axis + 1 :]]),
        )
        for point in range(points)
    )
    for place in itertools.chain(itertools.islice(itertools.product(*ends), FULLY_CHECKED), lines):
        cell = 0
        for point, points in zip(place, sweep.shape, strict=True):
            cell = cell * points + point
        if cell not in seen:
            seen.add(cell)
            yield cell


def _refuse_too_many(sweep: Sweep, node: Node) -> None:
    count, limit = len(sweep), sweep.config.limit
    if count <= limit:
        return
    arithmetic = " x ".join(f"{points:,}" for points in sweep.shape)
    said = node.child("limit")
    position = node.key_position or node.position if said is None else said.position
    text = f"expected at most {limit:,} cells; got {arithmetic} = {count:,}. `sweep.limit` raises the limit"
    raise ConfigError([Problem(position, "sweep.limit", text)])


def _shipped(path: PathLike) -> PathLike:
    name = os.fspath(path)
    own = shipped.directory() / "sweeps" / f"{name}.yaml"
    return path if name.endswith((".yaml", ".yml")) or os.path.exists(name) or not is_file(own) else own


def _shown(node: Node) -> str:
    text = str(node.plain())
    return text if len(text) <= 40 else text[:37] + "..."
