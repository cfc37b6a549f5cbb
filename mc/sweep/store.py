"""The folder of a sweep: parts that are there whole or not at all, and a manifest that says what they are parts of.

A part is the table of one batch of cells. It is written under another name, flushed, and renamed, so under its own name it
is always complete; whoever is killed leaves a file with another name, which nobody reads and the next run removes.
A part that is not what it says (cut short by a disk, or of another sweep) counts as missing. So the set of good parts is the
set of finished batches: `--resume` does the others, shards write theirs beside each other, and merging is copying.

One run at a time evaluates the same shard in a folder; the lock is the system's and ends with the process, however it ends.
"""

import contextlib
import fcntl
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mc.errors import InputError
from mc.results.folder import explained

# Of format 1 were folders whose parts were cut otherwise.
KIND, FORMAT = "tailstep sweep", 2
MANIFEST = "manifest.json"
_KEY = b"tailstep_sweep"
_TEMPORARY = ".tailstep-"
_PART = re.compile(r"^cells-(\d{10})-(\d{10})\.parquet$")


@dataclass(frozen=True)
class Batch:
    """Neighbouring cells: from `start` up to, not including, `stop`."""

    start: int
    stop: int

    @property
    def name(self) -> str:
        """Of its part."""
        return f"cells-{self.start:010d}-{self.stop:010d}.parquet"


class Store:
    """A sweep's folder."""

    def __init__(self, folder: str | os.PathLike[str], manifest: Mapping[str, Any]):
        """Args: the folder; the manifest of the sweep, whose `sweep_hash` says which one it is."""
        self.folder = Path(folder)
        self.manifest = dict(manifest)
        self.hash = str(manifest["sweep_hash"])

    def open(self, *, resume: bool) -> None:
        """Makes sure that this sweep may go there; creates the folder and the manifest.

        Raises:
            InputError: it holds something else, or a part of this sweep that nobody asked to resume.
        """
        with explained(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            found = read_manifest(self.folder)
            if found is None:
                _refuse_others(self.folder)
                self._write(MANIFEST, dump(self.manifest))
                return
            if found.get("sweep_hash") != self.hash:
                raise InputError(
                    f"{self.folder}: expected an empty folder or this sweep ({self.hash}); got the sweep "
                    f"{found.get('sweep_hash')} ({found.get('name')}). Choose another folder, or remove this one"
                )
            if not resume and self._parts():
                raise InputError(
                    f"{self.folder}: expected an empty folder; got a part of this sweep. `--resume` goes on with it"
                )

    def done(self, *, retry: bool = True) -> dict[Batch, int]:
        """Batches that are there whole, and how many of their cells failed.

        Args:
            retry: whether batches with cells that failed count as missing.
        """
        found = {}
        for batch, path in self._parts().items():
            failed = check_part(path, batch, self.hash)
            if failed is not None and not (retry and failed):
                found[batch] = failed
        return found

    def write(self, batch: Batch, table: pa.Table) -> None:
        """Keeps the table of a batch; afterwards it is there, whatever happens.

        Raises:
            InputError: the disk is full, or the folder cannot be written to.
        """
        metadata = {
            _KEY: json.dumps({"sweep_hash": self.hash, "start": batch.start, "stop": batch.stop}).encode(),
            b"tailstep_manifest": dump(self.manifest),
        }
        sink = pa.BufferOutputStream()
        pq.write_table(table.replace_schema_metadata(metadata), sink, compression="zstd")
        with explained(self.folder):
            self._write(batch.name, sink.getvalue())

    def copy(self, source: Path, batch: Batch) -> None:
        """Takes over a good part from another folder."""
        with explained(self.folder):
            self._write(batch.name, source.read_bytes())

    def finish(self, **facts: Any) -> None:
        """Adds what is known at the end to the manifest."""
        self.manifest |= facts
        with explained(self.folder):
            self._write(MANIFEST, dump(self.manifest))

    def table(self, batches: Iterable[Batch], columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of batches, in the order of the cells."""
        paths = [self.folder / batch.name for batch in sorted(batches, key=lambda each: each.start)]
        return pa.concat_tables([pq.read_table(path, columns=columns) for path in paths])

    @contextlib.contextmanager
    def locked(self, shard: str) -> Iterator[None]:
        """Holds a shard of the folder for one run."""
        with explained(self.folder):
            handle = os.open(self.folder / f".lock-{shard}", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    f"{self.folder}: another run of this sweep is at work here; wait for it, or choose another folder"
                ) from None
            except OSError:
                pass  # Some network file systems have no locks; parts are whole all the same.
            self._discard_leftovers()
            yield
        finally:
            os.close(handle)

    def _parts(self) -> dict[Batch, Path]:
        return parts_in(self.folder)

    def _write(self, name: str, content: Any) -> None:
        temporary = self.folder / f"{_TEMPORARY}{os.getpid()}-{secrets.token_hex(8)}"
        try:
            with temporary.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.folder / name)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _discard_leftovers(self) -> None:
        """Removes what runs left that were killed; not what others are writing now."""
        for leftover in self.folder.glob(_TEMPORARY + "*"):
            process = leftover.name.removeprefix(_TEMPORARY).partition("-")[0]
            if not process.isdigit() or not Path(f"/proc/{process}").exists():
                leftover.unlink(missing_ok=True)


def parts_in(folder: Path) -> dict[Batch, Path]:
    """Files that look like parts, by batch."""
    found = {}
    for entry in sorted(folder.iterdir()):
        match = _PART.match(entry.name)
        if match is not None:
            found[Batch(int(match[1]), int(match[2]))] = entry
    return found


def check_part(path: Path, batch: Batch, sweep_hash: str) -> int | None:
    """How many cells of a part failed; None if it is not whole, or not of this sweep."""
    try:
        # All of it is read: a disk that lost the middle of a file keeps its end.
        table = pq.read_table(path)
        said = json.loads((table.schema.metadata or {}).get(_KEY, b"null"))
        cells = table.column("cell").to_numpy()
    except (OSError, pa.ArrowException, ValueError, KeyError):
        return None
    wanted = {"sweep_hash": sweep_hash, "start": batch.start, "stop": batch.stop}
    whole = said == wanted and len(cells) == batch.stop - batch.start
    if not whole or (len(cells) and (cells[0] != batch.start or cells[-1] != batch.stop - 1)):
        return None
    return table.num_rows - table.column("status").to_pylist().count("ok")


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of the sweep in a folder; None if there is none."""
    try:
        value = json.loads((folder / MANIFEST).read_bytes())
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError, UnicodeDecodeError):
        return None
    is_ours = isinstance(value, dict) and value.get("kind") == KIND and value.get("format") == FORMAT
    return value if is_ours else None


def dump(manifest: Mapping[str, Any]) -> bytes:
    """The manifest as JSON text."""
    return (json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _refuse_others(folder: Path) -> None:
    others = sorted(
        entry.name for entry in folder.iterdir() if not entry.name.startswith((_TEMPORARY, ".lock-"))
    )
    if others:
        listing = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
        raise InputError(
            f"{folder}: expected an empty folder or a sweep; got a folder with other files in it ({listing}). "
            "Choose another folder"
        )
