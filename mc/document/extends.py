"""Inheritance between files: `extends: base.yaml` at the top of a mapping.

The file that says it wins, key by key: mappings merge deeply, lists and values replace, and a null takes an
inherited key away. Every value keeps the position of the file it was written in, so a mistake in a base is
reported there.

One refinement: where a mapping names its kind with a key such as `family` and the kind changes, the
parameters of the old kind make no sense any more, so the mapping is replaced as a whole (`kinds`).
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from mc.document.messages import shown
from mc.document.nodes import Document, Node, Position, Removed
from mc.document.problems import ConfigError, Problem
from mc.document.reader import read

KEY = "extends"
KINDS = ("family",)
MAXIMUM_FILES = 32

# From the text of a reference and the place it stands at, to a file. Raises ConfigError where there is none.
Finder = Callable[[str, Position], Path]


def beside(reference: str, position: Position) -> Path:
    """The finder for plain relative paths: they start from the folder of the file that says them."""
    folder = Path(position.file).parent if position.line else Path()
    path = Path(os.path.normpath(folder / reference))
    if not is_file(path):
        raise ConfigError([Problem(position, KEY, f"no such file: `{reference}` (looked for {path})")])
    return path


def is_file(path: Path) -> bool:
    """Whether there is such a file; False also for a name that no file can have."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def resolve_extends(document: Document, find: Finder = beside, kinds: Sequence[str] = KINDS) -> Document:
    """Merge a document with all that it extends.

    Args:
        document: as read.
        find: turns a reference into a file.
        kinds: keys whose change of value replaces their mapping.

    Returns:
        A document without `extends` at its root.

    Raises:
        ConfigError: a base is missing, not a text, broken, or extends its own heir (the cycle is shown).
    """
    chain: list[tuple[Path, Node]] = [(Path(document.file).resolve(), document.root)]
    names = [document.file]
    while (said := (chain[-1][1].mapping or {}).get(KEY)) is not None:
        if not isinstance(said.value, str) or not said.value:
            raise ConfigError(
                [Problem(said.position, KEY, f"expected the path of one file; got {shown(said)}")]
            )
        path = find(said.value, said.position)
        names.append(os.path.normpath(path))
        if path.resolve() in [seen for seen, _ in chain]:
            raise ConfigError(
                [
                    Problem(
                        said.position, KEY, f"the files extend each other in a circle: {' -> '.join(names)}"
                    )
                ]
            )
        if len(chain) >= MAXIMUM_FILES:
            raise ConfigError(
                [Problem(said.position, KEY, f"expected at most {MAXIMUM_FILES} files in a row")]
            )
        chain.append((path.resolve(), read(path).root))
    merged = without(chain.pop()[1], KEY)
    while chain:
        merged = merge(merged, without(chain.pop()[1], KEY), kinds)
    return Document(document.file, merged)


def without(node: Node, key: str) -> Node:
    """The mapping less one key."""
    entries = {name: child for name, child in _entries(node).items() if name != key}
    return Node(entries, node.position, node.key_position)


def merge(base: Node, heir: Node, kinds: Sequence[str] = KINDS) -> Node:
    """The heir laid over the base; keys come in the base's order, new ones last."""
    if base.mapping is None or heir.mapping is None or _other_kind(base, heir, kinds):
        return heir
    entries = _entries(base)
    for key, child in _entries(heir).items():
        if child.value is None and key in entries:
            entries[key] = Node(Removed.REMOVED, child.position, child.key_position)
        else:
            entries[key] = merge(entries[key], child, kinds) if key in entries else child
    return Node(entries, heir.position, heir.key_position)


def _entries(node: Node) -> dict[str, Node]:
    """A copy of a mapping with the keys that were removed."""
    return dict(node.value) if isinstance(node.value, dict) else {}


def _other_kind(base: Node, heir: Node, kinds: Sequence[str]) -> bool:
    pairs = [(base.child(kind), heir.child(kind)) for kind in kinds]
    return any(old is not None and new is not None and old.value != new.value for old, new in pairs)
