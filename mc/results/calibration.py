"""What a calibration found, in a folder: its figures, curves and scores, the cluster that it wrote, and where that is from."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mc.errors import InputError
from mc.results.atomic import write_atomically
from mc.results.provenance import commit, software, without_home

KIND, FORMAT = "tailstep calibration", 1
_NAME = "calibration.json"


def check_calibration_folder(folder: Path) -> None:
    """Makes sure, before the fit, that it may go there; creates the folder.

    Raises:
        InputError: it is a file, or a folder with anything else in it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: expected a folder for the results; got: {error.strerror}") from None
    if is_calibration(folder):
        return
    others = sorted(each.name for each in folder.iterdir())
    if others:
        raise InputError(
            f"{folder}: expected an empty folder or a calibration; got one with other files in it ({others[0]}). "
            "Choose another folder"
        )


def write_calibration(
    folder: Path, found: Mapping[str, Any], command: str, cluster: str, data: Sequence[str]
) -> None:
    """Keeps a calibration.

    Args:
        folder: as `check_calibration_folder` has made sure of it.
        found: the report as plain data.
        command: that repeats it.
        cluster: the calibrated cluster as a file.
        data: files of measurements.
    """
    sources = [
        {"file": str(each), "sha256": hashlib.sha256(Path(each).read_bytes()).hexdigest()} for each in data
    ]
    content = {
        "kind": KIND,
        "format": FORMAT,
        "command": command,
        "config": cluster,
        "data": sources,
        "software": software(),
        "checkout": commit(),
        "calibration": found,
    }
    text = json.dumps(without_home(content), indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(folder / _NAME, text + "\n")


def is_calibration(folder: Path) -> bool:
    """Whether there is one in a folder."""
    return _read(folder) is not None


def read_calibration(folder: Path) -> dict[str, Any]:
    """Reads what `write_calibration` wrote.

    Raises:
        InputError: there is none.
    """
    found = _read(folder)
    if found is None:
        raise InputError(f"{folder}: expected the folder of a calibration; got no readable {_NAME} in it")
    return found


def _read(folder: Path) -> dict[str, Any] | None:
    try:
        found = json.loads((folder / _NAME).read_bytes())
    except (OSError, ValueError):
        return None
    is_ours = isinstance(found, dict) and found.get("kind") == KIND and found.get("format") == FORMAT
    return found if is_ours else None
