"""YAML files whose every value remembers where it was written.

A file becomes a tree of `Node`s (`nodes.py`, `reader.py`); inheritance and command-line overrides rewrite
that tree without losing positions (`extends.py`, `overrides.py`); at the end it is handed to a pydantic model
as plain data, and whatever the model objects to is traced back to `file:line:column` (`validation.py`). This
package knows nothing of what the files are about.
"""

from mc.document.extends import Finder as Finder
from mc.document.extends import is_file as is_file
from mc.document.extends import resolve_extends as resolve_extends
from mc.document.files import UnusableFile as UnusableFile
from mc.document.files import read_bytes as read_bytes
from mc.document.nodes import Document as Document
from mc.document.nodes import Node as Node
from mc.document.nodes import Position as Position
from mc.document.nodes import key_text as key_text
from mc.document.overrides import Override as Override
from mc.document.overrides import apply_overrides as apply_overrides
from mc.document.overrides import parse_override as parse_override
from mc.document.problems import ConfigError as ConfigError
from mc.document.problems import Problem as Problem
from mc.document.reader import read as read
from mc.document.reader import read_text as read_text
from mc.document.suggestions import did_you_mean as did_you_mean
from mc.document.validation import StrictModel as StrictModel
from mc.document.validation import located as located
from mc.document.validation import validate as validate
