r"""A command line that can be copied from the report, however narrow the terminal.

A terminal's own line breaks fall inside words and get copied. This one breaks only between arguments, and
ends each line but the last with a backslash, which a shell reads as "goes on".
"""

import re

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

_ARGUMENT = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:\\.|[^"\\])*")+""")
_INDENT = "  "


class CommandLine:
    """A shell command, broken between its arguments where it does not fit."""

    def __init__(self, command: str) -> None:
        self.command = command

    def lines(self, width: int) -> list[str]:
        """The command in lines of at most `width`; an argument that is longer by itself stays whole."""
        lines: list[str] = []
        for argument in _ARGUMENT.findall(self.command):
            # Two columns are kept for the backslash.
            if lines and len(lines[-1]) + 1 + len(argument) + 2 <= width:
                lines[-1] += " " + argument
            else:
                lines.append((_INDENT if lines else "") + argument)
        return [line + " \\" for line in lines[:-1]] + lines[-1:]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text("\n".join(self.lines(options.max_width)), no_wrap=True, overflow="fold")
