"""Overrides from the command line: `--set tiers.0.fan_out=16`.

The right side is YAML, so it may be a quantity, a list or a mapping. The tree is rebuilt along the path; what
is put in has the flag itself as its position, so a later complaint names the flag. A key that the file leaves
out may be set (the schema decides whether it exists); a list has to have the item.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from mc.document.nodes import Document, Node, Position, key_text
from mc.document.problems import ConfigError, Problem
from mc.document.reader import read_value
from mc.document.walk import MAXIMUM_DEPTH


@dataclass(frozen=True)
class Override:
    """One `a.b=c`: the path, the value, and the flag as the user typed it."""

    path: tuple[str, ...]
    node: Node


def parse_override(text: str) -> Override:
    """Read `a.b=c`; raises ConfigError that names `--set`."""
    position = Position(f"--set {text}")
    path, equals, value = text.partition("=")
    steps = tuple(step.strip() for step in path.split("."))
    if not equals or not value.strip() or not all(steps):
        raise ConfigError(
            [Problem(position, "", "expected KEY=VALUE, such as `run.samples=1000` or `tiers.0.fan_out=16`")]
        )
    if len(steps) > MAXIMUM_DEPTH:
        raise ConfigError([Problem(position, "", f"expected a path of at most {MAXIMUM_DEPTH} keys")])
    return Override(steps, read_value(value.strip(), position))


def apply_overrides(document: Document, overrides: Iterable[str | Override]) -> Document:
    """The document with each override put in, in order.

    Args:
        document: what to change; it stays as it is.
        overrides: `a.b=c` texts; the steps of a path are keys, or indices of lists counted from 0.

    Raises:
        ConfigError: all overrides that are malformed or whose path leads nowhere.
    """
    root, problems = document.root, []
    for each in overrides:
        try:
            override = parse_override(each) if isinstance(each, str) else each
            root = _put(root, override, 0)
        except ConfigError as error:
            problems.extend(error.problems)
    if problems:
        raise ConfigError(problems)
    return Document(document.file, root)


def _put(node: Node, override: Override, depth: int) -> Node:
    if depth == len(override.path):
        return Node(override.node.value, override.node.position, override.node.position)
    step = override.path[depth]
    if isinstance(node.value, list):
        items = list(node.value)
        index = _index(step, items, override, depth)
        items[index] = _put(items[index], override, depth + 1)
        return Node(items, node.position, node.key_position)
    if node.mapping is None and node.value is not None:
        raise _nowhere(
            override,
            depth,
            f"`{key_text(override.path[:depth])}` is the value {node.value!r}, which has no keys",
        )
    entries = dict(node.mapping or {})
    last = depth + 1 == len(override.path)
    if last and override.node.value is None:
        entries.pop(step, None)
    else:
        entries[step] = _put(
            entries.get(step, Node(None, override.node.position, override.node.position)), override, depth + 1
        )
    return Node(entries, node.position, node.key_position)


def _index(step: str, items: list[Node], override: Override, depth: int) -> int:
    index = int(step) if step.isascii() and step.isdigit() and len(step) < 10 else -1
    if not 0 <= index < len(items):
        bounds = f"0 to {len(items) - 1}" if items else "none, since it is empty"
        where = key_text(override.path[:depth])
        raise _nowhere(
            override,
            depth,
            f"`{where}` is a list; expected an index ({bounds}); got `{step}`{_named(step, items)}",
        )
    return index


def _named(step: str, items: list[Node]) -> str:
    """A hint when someone addressed a list item by its name."""
    for index, item in enumerate(items):
        name = item.child("name")
        if name is not None and name.value == step:
            return f"; the item of that name has index {index}"
    return ""


def _nowhere(override: Override, depth: int, message: str) -> ConfigError:
    return ConfigError([Problem(override.node.position, key_text(override.path[: depth + 1]), message)])
