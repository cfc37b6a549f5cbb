"""The run folder: three files that change together, whatever happens in between.

Files are written under temporary names in the folder itself, flushed to the disk, and renamed. One rename is
atomic; three are not, so the set commits through a log: every new file is first renamed to `.next-<name>`,
the manifest last. With `.next-manifest.json` in place the new run is complete; what remains is to rename each
`.next-` file to its own name, again the manifest last, and that can be finished by anybody at any later time.
Before that moment the old run stands untouched. A reader takes the `.next-` files where a commit is pending
and needs no right to write.

Who may write where:

- a missing or an empty folder: yes;
- a finished run with the *same* configuration hash: yes, it is replaced as a whole, since running a command
  again must give the same samples again;
- a finished run with another configuration hash, or a folder with anything else in it: no. Nobody's result is
  lost silently.
"""

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mc.errors import InputError
from mc.results.manifest import is_manifest

STEPS, SUMMARY, MANIFEST = "steps.parquet", "summary.parquet", "manifest.json"
NAMES = (STEPS, SUMMARY, MANIFEST)
"""The files of a run, in the order of commitment."""
_NEXT, _TEMPORARY = ".next-", ".tailstep-"


def check_folder(folder: str | os.PathLike[str], config_hash: str) -> None:
    """Makes sure, before any sampling, that this configuration's run may go to `folder`; creates it.

    Raises:
        InputError: if it is a file, cannot be written to, or holds something that must not be overwritten.
    """
    path = Path(folder)
    with explained(path):
        path.mkdir(parents=True, exist_ok=True)
        _refuse_foreign(path, config_hash)
        probe = path / (_TEMPORARY + secrets.token_hex(8))
        probe.touch(exist_ok=False)
        probe.unlink()


def commit_files(
    folder: str | os.PathLike[str], config_hash: str, contents: Mapping[str, bytes]
) -> dict[str, Path]:
    """Puts the files of one run in place, all or none.

    Args:
        folder: the run folder.
        config_hash: hash of the run's configuration.
        contents: bytes of each file of `NAMES`.

    Returns:
        The path of each file.
    """
    path = Path(folder)
    check_folder(path, config_hash)
    with explained(path), _locked(path):
        _finish_commit(path)
        _discard_leftovers(path)
        # Again, now that nobody else can change it.
        _refuse_foreign(path, config_hash)
        try:
            for name in NAMES:
                _write(path / (_NEXT + name), contents[name])
            _flush(path)
        except BaseException:
            # A pending commit is only ever left behind by a crash.
            _discard_leftovers(path)
            raise
        _finish_commit(path)
    return {name: path / name for name in NAMES}


def current(folder: Path, name: str) -> Path:
    """Where the newest committed version of a run's file lies."""
    pending = folder / (_NEXT + name)
    return pending if (folder / (_NEXT + MANIFEST)).exists() and pending.exists() else folder / name


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of the run in `folder`; None if there is none that this version can read."""
    try:
        value = json.loads(current(folder, MANIFEST).read_bytes())
    except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError):
        return None
    return value if is_manifest(value) else None


def _refuse_foreign(folder: Path, config_hash: str) -> None:
    manifest = read_manifest(folder)
    if manifest is not None:
        found = manifest.get("config_hash")
        if found == config_hash:
            return
        raise InputError(
            f"{folder}: expected an empty folder or a run of configuration {config_hash}; got a finished run "
            f"of configuration {found} ({manifest.get('name')}). Choose another folder, or remove this one"
        )
    others = sorted(
        entry.name for entry in folder.iterdir() if not entry.name.startswith((_NEXT, _TEMPORARY))
    )
    if others:
        listing = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
        raise InputError(
            f"{folder}: expected an empty folder or a tailstep run; got a folder with other files in it "
            f"({listing}). Choose another folder"
        )


def _write(target: Path, content: bytes) -> None:
    # Not tempfile, which makes files private: a result is as readable as any other file of its user.
    temporary = target.with_name(_TEMPORARY + secrets.token_hex(8))
    with temporary.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, target)


def _finish_commit(folder: Path) -> None:
    if not (folder / (_NEXT + MANIFEST)).exists():
        return
    for name in NAMES:
        pending = folder / (_NEXT + name)
        if pending.exists():
            os.replace(pending, folder / name)
    _flush(folder)


def _discard_leftovers(folder: Path) -> None:
    """Removes what a crash left; the marker first, so that no half can be taken for a whole."""
    for leftover in sorted(folder.glob(_NEXT + "*"), key=lambda path: path.name != _NEXT + MANIFEST):
        leftover.unlink()
    for leftover in folder.glob(_TEMPORARY + "*"):
        leftover.unlink()


def _flush(folder: Path) -> None:
    """Makes renames in `folder` last through a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Holds the folder for one writer; the system lets go of it when the process ends, however it ends."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{folder}: another run is being written here; choose another folder") from None
        except OSError:
            pass  # Some network file systems have no locks; one writer at a time is then up to the user.
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Says in words why a folder cannot be written to."""
    try:
        yield
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{folder}: expected a folder for the results; got a file") from None
    except OSError as error:
        raise InputError(
            f"{folder}: expected a folder that can be written to; got: {error.strerror or error}"
        ) from error
