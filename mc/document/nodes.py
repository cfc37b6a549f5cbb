"""The tree that a file becomes: plain values, each with the place it was written at."""

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Node:
    """A value and its place.

    Attributes:
        value: a mapping of nodes, a list of nodes, or a scalar (str, int, float, bool, None).
        position: where the value starts.
        key_position: where its key starts, for a value in a mapping.
    """

    value: "dict[str, Node] | list[Node] | str | int | float | bool | None"
    position: Position
    key_position: Position | None = None

    @property
    def mapping(self) -> "dict[str, Node] | None":
        """The entries, if the value is a mapping."""
        return self.value if isinstance(self.value, dict) else None

    def plain(self) -> Any:
        """The value without positions, newly built."""
        if isinstance(self.value, dict):
            return {key: child.plain() for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.plain() for child in self.value]
        return self.value

    def child(self, step: str | int) -> "Node | None":
        """The entry of a mapping or the item of a list, None where there is none."""
        if isinstance(self.value, dict) and isinstance(step, str):
            return self.value.get(step)
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
    return ".".join(str(step) for step in path)
