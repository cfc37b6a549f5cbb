"""From the `sweep:` block to its points: values with the places they were written at."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from mc.config.sweep import DrawsConfig, RangeConfig, SweepConfig
from mc.document import ConfigError, Document, Node, Problem, key_text, validate
from mc.units import Dimension, UnitError, format_quantity, parse

Path = tuple[str, ...]


@dataclass(frozen=True)
class Axis:
    """Paths that change together.

    Attributes:
        paths: which.
        points: their values, point by point.
    """

    paths: tuple[Path, ...]
    points: tuple[tuple[Node, ...], ...]


def axes_of(config: SweepConfig, node: Node, file: str) -> tuple[Axis, ...]:
    """The axes of a sweep, slowest first.

    Args:
        config: the block, validated.
        node: the same block, with places.
        file: that it is in, for messages.

    Raises:
        ConfigError: an empty axis, values that make no range, axes that repeat a path.
    """
    reader = _Reader(file)
    axes: list[Axis] = []
    for key, child in _entries(node, "grid"):
        values = reader.values(child, f"sweep.grid.{key}")
        axes.append(Axis((_path(key),), tuple((value,) for value in values)))
    together = _entries(node, "zip")
    if together:
        axes.append(reader.zipped(together))
    if config.cells is not None:
        axes.append(reader.listed(node.child("list")))
    for name, draws in (("random", config.random), ("sobol", config.sobol)):
        own = node.child(name)
        if draws is not None and own is not None:
            axes.append(reader.drawn(draws, own, name))
    reader.refuse_repeats(node)
    if reader.problems:
        raise ConfigError(reader.problems)
    return tuple(axes)


def _entries(node: Node, key: str) -> list[tuple[str, Node]]:
    child = node.child(key)
    return [] if child is None or child.mapping is None else list(child.mapping.items())


def _path(key: str) -> Path:
    return tuple(step.strip() for step in key.split("."))


class _Reader:
    """Reads values and collects what is wrong with them."""

    def __init__(self, file: str):
        self.file = file
        self.problems: list[Problem] = []

    def wrong(self, node: Node, key: str, text: str) -> None:
        self.problems.append(Problem(node.position, key, text))

    def values(self, node: Node, key: str) -> list[Node]:
        """The values of one path."""
        if isinstance(node.value, list):
            if not node.value:
                self.wrong(node, key, "expected at least one value; got an empty list")
            return list(node.value)
        found = self.range(node, key)
        if found is None:
            return []
        points = found.points
        if (points is None) != (found.powers_of_two is not None):
            self.wrong(node, key, "expected `points`, for `linear` and `log` and for them alone")
            return []
        interval = self.interval(node, found, key)
        if interval is None:
            return []
        low, high, at = interval
        if found.powers_of_two is not None:
            count = 1 + math.floor(math.log2(high / low) + 1e-9)
            numbers = [low * 2.0**power for power in range(count)]
        else:
            steps = np.linspace(0.0, 1.0, points or 1)
            numbers = [at(float(step)) for step in steps]
        return [self.made(node, found, number) for number in self.rounded(numbers, found)]

    def range(self, node: Node, key: str) -> RangeConfig | None:
        if node.mapping is None:
            text = "expected a list of values, or a range such as `{powers of two: [8, 1024]}`"
            self.wrong(node, key, text)
            return None
        try:
            return validate(Document(self.file, node), RangeConfig)
        except ConfigError as error:
            for each in error.problems:
                position = each.position if each.position.line else node.position
                own = key if not each.key else f"{key}.{each.key}"
                self.problems.append(Problem(position, own, each.message))
            return None

    def interval(
        self, node: Node, found: RangeConfig, key: str
    ) -> tuple[float, float, Callable[[float], float]] | None:
        """First, last, and what lies a part of the way between."""
        ends = found.powers_of_two or found.linear or found.log or []
        read = _common(ends)
        if read is None:
            self.wrong(node, key, f"expected two numbers, or two quantities of one kind; got {ends}")
            return None
        low, high = read[0]
        if low > high or (low <= 0 and found.linear is None):
            what = "rising ends" if found.linear is not None else "rising ends above 0"
            self.wrong(node, key, f"expected {what}; got {ends[0]} to {ends[1]}")
            return None

        def at(part: float) -> float:
            # The ends are themselves, whatever rounding says.
            if part in (0.0, 1.0):
                return high if part else low
            between = low + (high - low) * part if found.linear is not None else low * (high / low) ** part
            # To 12 digits, so that whole numbers and tenths are what they should be.
            return float(f"{between:.12g}")

        return low, high, at

    def rounded(self, numbers: list[float], found: RangeConfig) -> list[float]:
        if not found.whole:
            return numbers
        rounded = [float(round(number)) for number in numbers]
        return rounded[:1] + [after for before, after in pairwise(rounded) if after != before]

    def made(self, node: Node, found: RangeConfig, number: float) -> Node:
        """A value of a range, as the file would spell it."""
        ends = found.powers_of_two or found.linear or found.log or []
        read = _common(ends)
        assert read is not None
        dimension = read[1]
        value: Any = number
        if dimension is not None:
            value = format_quantity(number, dimension)
        elif number.is_integer() and (found.whole or all(isinstance(each, int) for each in ends)):
            value = int(number)
        return Node(value, node.position, node.key_position)

    def zipped(self, entries: list[tuple[str, Node]]) -> Axis:
        columns = [self.values(child, f"sweep.zip.{key}") for key, child in entries]
        first = entries[0]
        for (key, child), column in zip(entries, columns, strict=True):
            if len(column) != len(columns[0]) and column and columns[0]:
                text = f"expected {len(columns[0])} values, as `{first[0]}` has; got {len(column)}"
                self.wrong(child, f"sweep.zip.{key}", text)
        return Axis(tuple(_path(key) for key, _ in entries), tuple(zip(*columns, strict=False)))

    def listed(self, node: Node | None) -> Axis:
        items = node.value if node is not None and isinstance(node.value, list) else []
        keys = list(items[0].mapping or {}) if items else []
        points = []
        for place, item in enumerate(items):
            entries = item.mapping or {}
            if set(entries) != set(keys):
                text = f"expected the same paths in each, {', '.join(keys)}; got {', '.join(entries)}"
                self.wrong(item, f"sweep.list.{place}", text)
                continue
            points.append(tuple(entries[key] for key in keys))
        return Axis(tuple(_path(key) for key in keys), tuple(points))

    def drawn(self, draws: DrawsConfig, node: Node, name: str) -> Axis:
        over = _entries(node, "over")
        levels = _levels(draws, name, len(over))
        columns = [
            self.drawn_column(child, f"sweep.{name}.over.{key}", levels[:, place])
            for place, (key, child) in enumerate(over)
        ]
        return Axis(tuple(_path(key) for key, _ in over), tuple(zip(*columns, strict=False)))

    def drawn_column(self, node: Node, key: str, levels: np.ndarray) -> list[Node]:
        if isinstance(node.value, list):
            if not node.value:
                self.wrong(node, key, "expected at least one value; got an empty list")
                return []
            return [node.value[int(level * len(node.value))] for level in levels]
        found = self.range(node, key)
        if found is None:
            return []
        if found.points is not None or found.powers_of_two is not None:
            self.wrong(node, key, "expected `linear` or `log` without `points`, or a list to choose from")
            return []
        interval = self.interval(node, found, key)
        if interval is None:
            return []
        numbers = [interval[2](float(level)) for level in levels]
        if found.whole:
            numbers = [float(round(number)) for number in numbers]
        return [self.made(node, found, number) for number in numbers]

    def refuse_repeats(self, node: Node) -> None:
        seen: set[Path] = set()
        for section, key, child in _all_paths(node):
            path = _path(key)
            where = f"sweep.{section}.{key}"
            position = child.key_position or child.position
            if not all(path):
                self.problems.append(
                    Problem(position, where, "expected a path such as `plan.ranks` or `cluster.tiers.0.link`")
                )
            elif path[0] in ("sweep", "extends"):
                self.problems.append(Problem(position, where, "expected a path of the experiment itself"))
            elif path in seen:
                text = f"expected each path once; `{key_text(path)}` is an axis already"
                self.problems.append(Problem(position, where, text))
            seen.add(path)


def _all_paths(node: Node) -> Iterator[tuple[str, str, Node]]:
    for section in ("grid", "zip"):
        for key, child in _entries(node, section):
            yield section, key, child
    listed = node.child("list")
    if listed is not None and isinstance(listed.value, list) and listed.value:
        for key, child in (listed.value[0].mapping or {}).items():
            yield "list", key, child
    for section in ("random", "sobol"):
        own = node.child(section)
        for key, child in [] if own is None else _entries(own, "over"):
            yield section, key, child


def _common(ends: list[Any]) -> tuple[tuple[float, float], Dimension | None] | None:
    """Two ends as numbers, and what they are quantities of; None where they have nothing in common."""
    if any(isinstance(each, bool) for each in ends):
        return None
    if all(isinstance(each, int | float) for each in ends):
        return (float(ends[0]), float(ends[1])), None
    if not all(isinstance(each, str) for each in ends):
        return None
    for dimension in Dimension:
        try:
            return (parse(ends[0], dimension), parse(ends[1], dimension)), dimension
        except UnitError:
            continue
    return None


def _levels(draws: DrawsConfig, name: str, width: int) -> np.ndarray:
    """Points in the unit cube, [count, width]."""
    if name == "random":
        return np.random.default_rng(draws.seed).random((draws.count, width))
    from scipy.stats import qmc

    # `seed` is the name that all versions of SciPy know.
    sobol = qmc.Sobol(width, scramble=True, seed=draws.seed)  # pyright: ignore[reportCallIssue]
    return sobol.random(draws.count)


def numbers_of(nodes: Sequence[Node]) -> list[float] | None:
    """Values in SI units, if all are numbers, or quantities of one kind."""
    found = quantities_of(nodes)
    return None if found is None else found[0]


def quantities_of(nodes: Sequence[Node]) -> tuple[list[float], Dimension | None] | None:
    """Values in SI units and what they are quantities of (None for plain numbers); None if they have nothing in common."""
    values = [node.value for node in nodes]
    if all(isinstance(each, int | float) and not isinstance(each, bool) for each in values):
        return [float(each) for each in values if isinstance(each, int | float)], None
    if not all(isinstance(each, str) for each in values):
        return None
    for dimension in Dimension:
        try:
            return [parse(each, dimension) for each in values if isinstance(each, str)], dimension
        except UnitError:
            continue
    return None
