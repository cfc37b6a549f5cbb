"""From a YAML file to a document, or to the list of what is wrong with it."""

import difflib
import os
from pathlib import Path

from mc.document.files import TooLarge, UnusableFile, read_bytes
from mc.document.nodes import Document, Node, Position
from mc.document.problems import ConfigError, Problem
from mc.document.walk import Walk

MAXIMUM_BYTES = 2_000_000


def read(path: str | os.PathLike[str]) -> Document:
    """Read a YAML file.

    Args:
        path: the file, relative to the working directory.

    Returns:
        Its document; the root is a mapping.

    Raises:
        ConfigError: it cannot be read, is not YAML, or is not one mapping; all that was found is listed.
    """
    name = os.path.normpath(path)
    whole = Position(name)
    try:
        data = read_bytes(path, MAXIMUM_BYTES)
    except FileNotFoundError:
        raise ConfigError([Problem(whole, "", f"no such file{_neighbour(Path(path))}")]) from None
    except TooLarge:
        limit = f"expected a configuration of at most {MAXIMUM_BYTES // 10**6} MB"
        raise ConfigError(
            [Problem(whole, "", f"{limit}; measured samples belong into a CSV file beside it")]
        ) from None
    except UnusableFile as error:
        text = str(error).replace("expected a file", "expected a YAML file")
        raise ConfigError([Problem(whole, "", text)]) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        message = f"expected UTF-8 text; got the byte 0x{data[error.start]:02x}: save the file as UTF-8"
        raise ConfigError([Problem(Position(name, line, column), "", message)]) from None
    return read_text(text, name)


def read_text(text: str, file: str) -> Document:
    """Read YAML text; `file` is what messages call it. Raises ConfigError as `read` does."""
    walk = Walk(file)
    root = walk.run(text)
    if not walk.problems and root is None:
        walk.problems.append(
            Problem(Position(file), "", "the file is empty; expected a mapping of keys to values")
        )
    elif root is not None and root.mapping is None and not walk.problems:
        found = "a list" if isinstance(root.value, list) else f"the value {str(root.value)[:40]!r}"
        walk.problems.append(Problem(root.position, "", f"expected a mapping of keys to values; got {found}"))
    if walk.problems or root is None:
        raise ConfigError(walk.problems)
    return Document(file, root)


def read_value(text: str, position: Position) -> Node:
    """Read one YAML value, such as the right side of an override; every node in it gets `position`."""
    walk = Walk(position.file, fixed=position)
    root = walk.run(text)
    if walk.problems:
        raise ConfigError(walk.problems)
    return root or Node(None, position)


def _neighbour(path: Path) -> str:
    """A hint at a file of nearly this name, if the folder has one."""
    try:
        stems = {
            entry.stem: entry.name for entry in path.parent.iterdir() if entry.suffix in (".yaml", ".yml")
        }
    except (OSError, ValueError):
        return ""
    near = difflib.get_close_matches(path.stem, stems, n=1)
    return f"; did you mean `{stems[near[0]]}`?" if near else ""
