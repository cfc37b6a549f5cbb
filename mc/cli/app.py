"""The command line: one verb per file, wired together here.

Nothing imported by this module may import JAX: `tailstep --help`, `validate`, `show`, `catalog` and `schema`
have to answer at once. A verb that samples imports the engine inside its function.

Exit codes: 0 done, 1 the run failed, 2 bad usage or bad input, 3 some cells of a sweep failed, 130 interrupted.
"""

import sys

import typer

from mc.cli.advise import advise
from mc.cli.calibrate import calibrate
from mc.cli.catalog import catalog
from mc.cli.collective import collective
from mc.cli.diff import diff
from mc.cli.doctor import doctor
from mc.cli.energy import energy
from mc.cli.explain import explain
from mc.cli.import_logs import import_logs
from mc.cli.init import init
from mc.cli.mitigations import mitigations
from mc.cli.optics import optics
from mc.cli.report import report
from mc.cli.ridge import ridge
from mc.cli.run import run
from mc.cli.scale import scale
from mc.cli.schema import schema
from mc.cli.sensitivity import sensitivity
from mc.cli.show import show
from mc.cli.sweep import merge, sweep
from mc.cli.trace import trace
from mc.cli.validate import validate
from mc.errors import InputError, printable

app = typer.Typer(
    name="tailstep",
    help="How long does a step take when thousands of chips wait for the slowest of them?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(init)
app.command()(run)
app.command()(scale)
app.command()(sensitivity)
app.command()(advise)
app.command()(mitigations)
app.command()(sweep)
app.command()(merge)
app.command()(diff)
app.command()(report)
app.command()(trace)
app.command()(explain)
app.command()(collective)
app.command()(ridge)
app.command()(optics)
app.command()(energy)
app.command("import")(import_logs)
app.command()(calibrate)
app.command()(catalog)
app.command()(validate)
app.command()(show)
app.command()(schema)
app.command()(doctor)


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
