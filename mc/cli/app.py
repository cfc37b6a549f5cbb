"""The command line: one verb per file, wired together here.

The file of a verb is imported when the verb is called: the list of all verbs, which is what most calls of `--help` want,
needs one line of each, and that is read from its docstring. So adding a verb is a file and a name in `VERBS`.

Nothing imported by this module or on top of a verb's file may import JAX: `tailstep --help`, `validate`, `show`, `catalog`
and `schema` have to answer at once. A verb that samples imports the engine inside its function.

Exit codes: 0 done, 1 the run failed, 2 bad usage or bad input, 3 some cells of a sweep failed, 130 interrupted.
"""

import ast
import importlib
import sys
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from mc.errors import InputError, printable

# verb -> its file in mc/cli, and the function there
VERBS = {
    "init": ("init", "init"),
    "run": ("run", "run"),
    "scale": ("scale", "scale"),
    "sensitivity": ("sensitivity", "sensitivity"),
    "advise": ("advise", "advise"),
    "mitigations": ("mitigations", "mitigations"),
    "sweep": ("sweep", "sweep"),
    "merge": ("sweep", "merge"),
    "diff": ("diff", "diff"),
    "report": ("report", "report"),
    "trace": ("trace", "trace"),
    "explain": ("explain", "explain"),
    "collective": ("collective", "collective"),
    "ridge": ("ridge", "ridge"),
    "optics": ("optics", "optics"),
    "energy": ("energy", "energy"),
    "import": ("import_logs", "import_logs"),
    "calibrate": ("calibrate", "calibrate"),
    "catalog": ("catalog", "catalog"),
    "validate": ("validate", "validate"),
    "show": ("show", "show"),
    "schema": ("schema", "schema"),
    "doctor": ("doctor", "doctor"),
}


class Verbs(TyperGroup):
    """The group of all verbs; imports the file of the one that is called."""

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        # Names only: what a misspelt verb may have meant.
        self.commands.update({verb: TyperCommand(verb) for verb in VERBS})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The verb with its options, or None where there is none of that name."""
        return command(cmd_name) if cmd_name in VERBS else None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The list of the verbs, of which it needs no more than a line each."""
        listed = [TyperCommand(verb, help=summary(verb)) for verb in VERBS]
        TyperGroup(name=self.name, help=self.help, params=self.params, commands=listed).format_help(
            ctx, formatter
        )


app = typer.Typer(
    name="tailstep",
    cls=Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def tailstep() -> None:
    """How long does a step take when thousands of chips wait for the slowest of them?"""


def command(verb: str) -> Any:
    """A verb of `VERBS` as a command, with its options; imports its file."""
    file, function = VERBS[verb]
    alone = typer.Typer(add_completion=False)
    alone.command(verb)(getattr(importlib.import_module(f"mc.cli.{file}"), function))
    return typer.main.get_command(alone)


def summary(verb: str) -> str:
    """The first line of a verb's docstring, without importing its file."""
    file, function = VERBS[verb]
    source = ast.parse(Path(__file__).with_name(f"{file}.py").read_bytes())
    (found,) = (node for node in source.body if isinstance(node, ast.FunctionDef) and node.name == function)
    return (ast.get_docstring(found) or "").partition("\n")[0]


def main() -> None:
    """Entry point of the `tailstep` command and of `python -m mc`."""
    try:
        app()
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # The reader of a pipe (`| head`) left; there is nobody to tell.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        # A name on the command line that no system call takes (too long, no permission), or a disk that is full.
        if error.filename is None:
            print(f"failed: {error.strerror or error}", file=sys.stderr)
            sys.exit(1)
        print(printable(f"{error.filename}: {error.strerror}"), file=sys.stderr)
        sys.exit(2)
