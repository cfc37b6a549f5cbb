"""`tailstep validate`: say whether files can be used, without running anything."""

import sys
from typing import Annotated

import typer

from mc.cli.options import Overrides
from mc.config import ExperimentConfig, FileKind, load_any
from mc.config.calibration import check_calibration, is_calibration
from mc.document import ConfigError
from mc.errors import InputError


def validate(
    files: Annotated[list[str], typer.Argument(help="YAML files of any kind.", show_default=False)],
    kind: Annotated[
        FileKind | None, typer.Option(help="What the files are; by default their keys tell.")
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Check configuration files and list everything that is wrong with them, each at its file:line:column.

    An experiment with a transformer must also fit into the memory of its chips. Exits with 2 if any file cannot be used.
    """
    broken = False
    for file in files:
        try:
            if kind == "calibration" or (kind is None and is_calibration(file)):
                if overrides:
                    raise InputError("--set: expected none with a calibration, which has options of its own")
                check_calibration(file)
                print(f"{file}: ok (calibration)")
                continue
            found, config = load_any(file, overrides or (), kind)
            if isinstance(config, ExperimentConfig) and config.serving is not None:
                # What a replica holds is said by the engine, which brings JAX.
                from mc.experiment.build_serving import server_of

                _ = server_of(config).places
            elif isinstance(config, ExperimentConfig) and config.model.transformer is not None:
                from mc.parallel import checked_plan

                checked_plan(config)
        except ConfigError as error:
            broken = True
            print(error, file=sys.stderr)
        except InputError as error:
            broken = True
            print(f"{file}: {error}", file=sys.stderr)
        else:
            print(f"{file}: ok ({found})")
    if broken:
        raise typer.Exit(2)
