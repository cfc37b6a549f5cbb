"""The walk over the events of a YAML text that builds the nodes.

ruamel.yaml parses (YAML 1.2: `on`, `12:30` and `1e6` are what they look like); the walk takes its stream of
events rather than the objects it would build, because the events carry a position for every scalar, and
because nothing is then expanded before it has been looked at:
anchors, aliases, tags and deep nesting are refused as they come by. The walk is iterative, so depth costs no
stack.
"""

import io
import math

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.reader import ReaderError

from mc.document.nodes import Node, Position, key_text
from mc.document.problems import MAXIMUM_PROBLEMS, Problem

MAXIMUM_DEPTH = 32
# Some seconds of parsing in Python; a hundred times what the largest shipped file has.
MAXIMUM_VALUES = 50_000
# No count is as large; what is computed from several such still fits into a float.
LARGEST_INTEGER = 10**100
# What YAML 1.2 knows beside strings. Dates and `<<` stay text: nothing here takes them.
_TYPED = {f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float")}


class _Open:
    """A collection whose end has not been seen yet."""

    def __init__(self, position: Position, key: tuple[str, Position] | None, *, is_mapping: bool):
        self.position = position
        self.key = key  # of this collection in its parent
        self.entries: dict[str, Node] = {}
        self.items: list[Node] = []
        self.is_mapping = is_mapping
        self.pending: tuple[str, Position] | None = None  # the key that waits for its value


class Walk:
    """One pass over the events of a text, collecting problems on the way."""

    def __init__(self, file: str, fixed: Position | None = None):
        self.file = file
        self.fixed = fixed
        self.problems: list[Problem] = []
        self.stack: list[_Open] = []
        self.root: Node | None = None
        self.values = 0
        # The pure-Python parser: the C one speaks YAML 1.1.
        self.yaml = YAML(typ="safe", pure=True)

    def run(self, text: str) -> Node | None:
        """The root, or None for an empty text; stops at the first error of syntax."""
        documents = 0
        try:
            for event in self.yaml.parse(io.StringIO(text)):
                if isinstance(event, DocumentStartEvent):
                    documents += 1
                    version = getattr(event, "version", None)
                    if documents > 1:
                        self._problem(
                            self._at(event.start_mark),
                            "expected one document per file; got a second one after `---`",
                        )
                        break
                    if version is not None and tuple(version) != (1, 2):
                        self._problem(
                            self._at(event.start_mark), "expected YAML 1.2; leave the %YAML line out"
                        )
                        break
                elif not self._event(event):
                    break
                elif len(self.problems) >= MAXIMUM_PROBLEMS:
                    more = f"these are {MAXIMUM_PROBLEMS} mistakes, and nothing behind them was read"
                    self._problem(self.problems[-1].position, more, key="")
                    break
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            what = (
                " ".join(str(part) for part in (error.problem, error.context) if part)
                or "it cannot be parsed"
            )
            self._problem(
                self._at(mark) if mark else Position(self.file), f"not YAML: {' '.join(what.split())}"
            )
        except ReaderError as error:
            before = text[: error.position]
            line, column = before.count("\n") + 1, error.position - before.rfind("\n")
            position = self.fixed or Position(self.file, line, column)
            self._problem(
                position, f"not YAML: the character U+{error.character:04X} may not stand in a text", key=""
            )
        except (YAMLError, ValueError, OverflowError):
            # ruamel.yaml lets through what Python's `chr` says to an escape beyond Unicode.
            self._problem(self.fixed or Position(self.file), "not YAML: an escape names no character")
        return self.root

    def _at(self, mark) -> Position:
        return self.fixed or Position(self.file, mark.line + 1, mark.column + 1)

    def _problem(self, position: Position, message: str, key: str | None = None) -> None:
        self.problems.append(Problem(position, self._path() if key is None else key, message))

    def _path(self, last: str | None = None) -> str:
        steps: list[str | int] = []
        for level in self.stack:
            if not level.is_mapping:
                steps.append(len(level.items))
            elif level.pending is not None:
                steps.append(level.pending[0])
        return key_text(steps if last is None else [*steps, last])

    def _event(self, event) -> bool:
        """Take one event in; False stops the walk."""
        if isinstance(event, MappingEndEvent | SequenceEndEvent):
            self._close(self.stack.pop())
            return True
        if not isinstance(event, NodeEvent):
            return True
        position = self._at(event.start_mark)
        self.values += 1
        if self.values > MAXIMUM_VALUES:
            self._problem(position, f"expected at most {MAXIMUM_VALUES:,} keys and values; got more", key="")
            return False
        if isinstance(event, AliasEvent) or event.anchor is not None:
            sign = "*" if isinstance(event, AliasEvent) else "&"
            mend = "write the value out or use `extends`"
            self._problem(
                position, f"anchors and aliases are not used here; got `{sign}{event.anchor}`: {mend}"
            )
        if isinstance(event, ScalarEvent) and any("\ud800" <= letter <= "\udfff" for letter in event.value):
            self._problem(position, "not YAML: half of a surrogate pair; write the character itself")
        tag = getattr(event, "tag", None)
        if tag is not None:
            self._problem(position, f"tags are not used here; got `{tag}`: leave it out")
        top = self.stack[-1] if self.stack else None
        if top is not None and top.is_mapping and top.pending is None:
            return self._key(top, event, position)
        if isinstance(event, MappingStartEvent | SequenceStartEvent):
            key = top.pending if top is not None else None
            self.stack.append(_Open(position, key, is_mapping=isinstance(event, MappingStartEvent)))
            if len(self.stack) > MAXIMUM_DEPTH:
                self._problem(position, f"nested more than {MAXIMUM_DEPTH} levels deep", key="")
                return False
            return True
        value = self._scalar(event, position) if isinstance(event, ScalarEvent) else None
        if (
            value is None
            and top is not None
            and top.pending is not None
            and event.start_mark == event.end_mark
        ):
            # A value that is not there is to be looked for at its key; the parser is on another line by now.
            position = top.pending[1]
        self._add(Node(value, position, top.pending[1] if top is not None and top.pending else None))
        return True

    def _key(self, top: _Open, event, position: Position) -> bool:
        if not isinstance(event, ScalarEvent):
            self._problem(position, "expected a word as key; got a collection or an alias")
            return False
        if event.value in top.entries:
            first = top.entries[event.value].key_position
            where = f"in line {first.line}" if first is not None and first.line else "before"
            self._problem(
                position, f"duplicate key; it was given {where} already", key=self._path(event.value)
            )
        top.pending = (event.value, position)
        return True

    def _close(self, done: _Open) -> None:
        value = done.entries if done.is_mapping else done.items
        self._add(Node(value, done.position, done.key[1] if done.key is not None else None))

    def _add(self, node: Node) -> None:
        if not self.stack:
            self.root = node
            return
        top = self.stack[-1]
        if not top.is_mapping:
            top.items.append(node)
        elif top.pending is not None:
            top.entries.setdefault(top.pending[0], node)
            top.pending = None

    def _scalar(self, event: ScalarEvent, position: Position):
        if event.style is not None:
            return event.value
        tag = self.yaml.resolver.resolve(ScalarNode, event.value, (True, False))
        if str(tag) not in _TYPED:
            return event.value
        try:
            value = self.yaml.constructor.construct_object(ScalarNode(tag=tag, value=event.value))
        except (ValueError, OverflowError):
            value = math.inf
        if isinstance(value, float) and not math.isfinite(value):
            self._problem(position, f"expected a finite number; got {event.value[:40]}")
            return 0.0
        if isinstance(value, int) and abs(value) >= LARGEST_INTEGER:
            digits = len(str(LARGEST_INTEGER)) - 1
            self._problem(
                position,
                f"out of range for a number: expected less than 1e{digits}; got {event.value[:40]}...",
            )
            return 0
        return value
