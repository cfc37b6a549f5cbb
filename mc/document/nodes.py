"""The tree that a file becomes: plain values, each with the place it was written at."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any


@dataclass(frozen=True, order=True)
class Position:
    """A place in a file, counted from one.

    With `line` 0 it is the file as a whole, or the command-line flag that `file` spells.
    """

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


class Removed(Enum):
    """The value of a key that an heir took away.

    It stays in the tree, so that a base still to come cannot bring the key back.
    """

    REMOVED = "removed"


@dataclass(frozen=True)
class Node:
    """A value and its place.

    Attributes:
        value: a mapping of nodes, a list of nodes, or a scalar (str, int, float, bool, None).
        position: where the value starts.
        key_position: where its key starts, for a value in a mapping.
    """

    value: "dict[str, Node] | list[Node] | str | int | float | bool | Removed | None"
    position: Position
    key_position: Position | None = None

    @property
    def mapping(self) -> "dict[str, Node] | None":
        """The entries less those removed, if the value is a mapping."""
        if not isinstance(self.value, dict):
            return None
        return {key: child for key, child in self.value.items() if child.value is not Removed.REMOVED}

    def plain(self) -> Any:
        """The value without positions, newly built."""
        if self.mapping is not None:
            return {key: child.plain() for key, child in self.mapping.items()}
        if isinstance(self.value, list):
            return [child.plain() for child in self.value]
        return self.value

    def child(self, step: str | int) -> "Node | None":
        """The entry of a mapping or the item of a list, None where there is none."""
        if self.mapping is not None and isinstance(step, str):
            return self.mapping.get(step)
        if isinstance(self.value, list) and isinstance(step, int) and 0 <= step < len(self.value):
            return self.value[step]
        return None


@dataclass(frozen=True)
class Document:
    """A file that has been read.

    Attributes:
        file: its name as messages show it; also the path that its relative references start from.
        root: its top-level mapping.
    """

    file: str
    root: Node


def key_text(path: Sequence[str | int]) -> str:
    """A path as messages and `--set` spell it: `tiers.0.link`."""
    steps = [str(step) for step in path]
    return ".".join(step if len(step) <= 60 else f"{step[:57]}..." for step in steps)
