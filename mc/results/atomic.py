"""A file that is there whole or not at all: it is written under another name, flushed, and renamed."""

import os
import secrets
from pathlib import Path

from mc.errors import InputError


def write_atomically(target: Path, text: str) -> None:
    """Writes a text where it belongs; what was there before stays until that is done.

    Raises:
        InputError: the place cannot be written to.
    """
    temporary = target.with_name(f".tailstep-{secrets.token_hex(8)}")
    try:
        try:
            with temporary.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(
            f"{target}: expected a place that can be written to; got: {error.strerror or error}"
        ) from error
