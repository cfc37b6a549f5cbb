"""A file as numbered lines of text, whatever it is wrapped in, in bounded memory.

Compressed files (gzip) and UTF-16 (what PowerShell writes) are unwrapped, and said so; anything that is no
text is refused by what it is. A line beyond `MAXIMUM_LINE` is passed over in pieces, never held, and a file
beyond `MAXIMUM_BYTES` of text is refused, so that a bomb ends. Nothing is ever unpickled.
"""

import contextlib
import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mc.logs.errors import LogError

MAXIMUM_LINE = 1 << 20
MAXIMUM_BYTES = 4 << 30
MAXIMUM_DOCUMENT = 256 << 20
_HEAD = 1 << 16
_BLOCK = 1 << 20

# What files begin with that people hand over by mistake.
_MAGIC = (
    (b"PAR1", "a Parquet file"),
    (b"PK\x03\x04", "a zip archive (also .npz, .xlsx, .pt): unpack it"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive: unpack it"),
    (b"\xfd7zXZ\x00", "an xz archive: unpack it"),
    (b"BZh", "a bzip2 archive: unpack it"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x93NUMPY", "a numpy array"),
    (b"%PDF", "a PDF"),
    (b"\x7fELF", "a program"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x89PNG", "a picture"),
    *(
        (bytes((0x80, version)), "a pickle, which is never loaded: write it as JSON or CSV")
        for version in range(2, 6)
    ),
)


@dataclass(frozen=True)
class Source:
    """A file to import.

    Attributes:
        path: where it is.
        name: what messages and the table call it.
        size: bytes on disk.
        encoding: of the text.
        compressed: whether it is unpacked on the way.
        wrapping: what was unwrapped, in words.
        advance: is told how many more bytes of the file have been read.
    """

    path: Path
    name: str
    size: int
    encoding: str
    compressed: bool
    wrapping: tuple[str, ...]
    advance: Callable[[int], None] = field(compare=False)

    def lines(self) -> Iterator[tuple[int, str | None]]:
        """Number and text of every line, without its end; None for one that is too long to be of any log."""
        with self._text() as stream:
            number = done = 0
            while text := self._guarded(stream.readline, MAXIMUM_LINE):
                number += 1
                done += len(text)
                if len(text) >= MAXIMUM_LINE and not text.endswith("\n"):
                    while (more := self._guarded(stream.readline, _BLOCK)) and not more.endswith("\n"):
                        done += len(more)
                        self._bounded(done)
                    yield number, None
                    continue
                self._bounded(done)
                yield number, text.rstrip("\n")

    def blocks(self) -> Iterator[str]:
        """The text in large pieces, each beginning with the end of the one before."""
        with self._text() as stream:
            tail, done = "", 0
            while block := self._guarded(stream.read, _BLOCK):
                done += len(block)
                self._bounded(done)
                yield tail + block
                tail = block[-4096:]

    def text(self) -> str:
        """All of it; raises LogError where that would be too much to hold."""
        with self._text() as stream:
            found = self._guarded(stream.read, MAXIMUM_DOCUMENT + 1)
        if len(found) > MAXIMUM_DOCUMENT:
            raise LogError(
                f"{self.name}: expected a JSON document of at most {MAXIMUM_DOCUMENT >> 20} MiB; got a larger one"
            )
        return found

    def _bounded(self, done: int) -> None:
        if done > MAXIMUM_BYTES:
            raise LogError(f"{self.name}: expected at most {MAXIMUM_BYTES >> 30} GiB of text; got more")

    def _guarded(self, read: Callable[[int], str], count: int) -> str:
        try:
            return read(count)
        except (OSError, EOFError, zlib.error) as error:
            raise LogError(f"{self.name}: cannot be read: {_reason(error)}") from None

    @contextlib.contextmanager
    def _text(self) -> Iterator[io.TextIOWrapper]:
        try:
            raw = _Counted(self.path, self.advance)
        except OSError as error:
            raise LogError(f"{self.name}: cannot be read: {_reason(error)}") from None
        # What unpacks a file leaves it open.
        with raw:
            stream = gzip.GzipFile(fileobj=raw) if self.compressed else raw
            buffered = io.BufferedReader(stream, _BLOCK)  # pyright: ignore[reportArgumentType]
            with io.TextIOWrapper(buffered, self.encoding, errors="replace") as text:
                yield text


class _Counted(io.FileIO):
    """A file that says how much of it has been read."""

    def __init__(self, path: Path, advance: Callable[[int], None]):
        super().__init__(path, "rb")
        self._advance = advance

    def readinto(self, buffer, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        count = super().readinto(buffer) or 0
        self._advance(count)
        return count

    def read(self, size: int = -1, /) -> bytes:  # pyright: ignore[reportIncompatibleMethodOverride]
        found = super().read(size) or b""
        self._advance(len(found))
        return found


def open_source(path: str | os.PathLike[str], advance: Callable[[int], None] | None = None) -> Source:
    """Looks at how a file begins.

    Args:
        path: the file.
        advance: is told how many more bytes have been read, as they are.

    Raises:
        LogError: it is missing, empty, or no text.
    """
    name = os.fspath(path)
    size, head = _beginning(name, Path(path))
    wrapping: list[str] = []
    compressed = head.startswith(b"\x1f\x8b")
    if compressed:
        wrapping.append("unpacked from gzip")
        head = _unpacked(name, Path(path))
    if not head.strip():
        raise LogError(f"{name}: the file is empty; expected a log or table of measurements")
    encoding = _encoding(name, head)
    if encoding != "utf-8-sig":
        wrapping.append("decoded from UTF-16")
    return Source(Path(path), name, size, encoding, compressed, tuple(wrapping), advance or _ignore)


def _ignore(count: int) -> None:
    del count


def _beginning(name: str, path: Path) -> tuple[int, bytes]:
    """Size and first bytes of a plain file."""
    problem = None
    try:
        if path.is_dir():
            problem = "expected a file of measurements; got a directory"
        elif not path.exists():
            problem = "no such file"
        elif not path.is_file():
            problem = "expected a plain file; got a device or pipe"
        else:
            with path.open("rb") as stream:
                return path.stat().st_size, stream.read(_HEAD)
    except (OSError, ValueError) as error:
        problem = f"cannot be read: {_reason(error)}"
    raise LogError(f"{name}: {problem}")


def _unpacked(name: str, path: Path) -> bytes:
    try:
        with gzip.open(path) as stream:
            return stream.read(_HEAD)
    except (OSError, EOFError, zlib.error) as error:
        raise LogError(f"{name}: expected a whole gzip file; got a damaged one: {_reason(error)}") from None


def _encoding(name: str, head: bytes) -> str:
    """The encoding of a text that begins so; raises LogError if it is none."""
    for magic, what in _MAGIC:
        if head.startswith(magic):
            raise LogError(f"{name}: expected text; got {what}")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    nul = head.count(0)
    if len(head) // 3 < nul < len(head) and not (any(head[1::2]) and any(head[::2])):
        raise LogError(
            f"{name}: expected UTF-8 text; got what looks like UTF-16 without its mark: save it as UTF-8"
        )
    text = head.decode("utf-8", errors="replace")
    strange = sum(text.count(each) for each in _STRANGE)
    # Torn writes leave runs of NUL bytes in logs; those lines are skipped, and the log is read.
    if strange - nul > max(4, len(text) // 20) or nul > 0.9 * len(head):
        raise LogError(f"{name}: expected text; got binary data")
    return "utf-8-sig"


_PLAIN_CONTROLS = "\t\n\r\x0b\x0c\x1b\x08\x07"
_STRANGE = (*(chr(code) for code in range(32) if chr(code) not in _PLAIN_CONTROLS), "\ufffd", "\x7f")


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
