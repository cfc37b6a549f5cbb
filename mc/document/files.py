"""Files as a user names them: regular, and no larger than they should be, before anything is made of them.

A path may be anything: a folder, a pipe that nobody writes into, a device without an end. Opening must not wait and
reading must not fill memory, so only regular files are read, and of them only so much. Which file it is, is the
user's business: paths may be absolute, lead through `..` and through symbolic links, as those of any program.
"""

import os
import stat

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class UnusableFile(Exception):
    """Why a file cannot be used, to follow its name in a message."""


class TooLarge(UnusableFile):
    """It has more bytes than it may."""


def read_bytes(path: str | os.PathLike[str], most: int) -> bytes:
    """The content of a regular file.

    Args:
        path: any path, also one that no file can have.
        most: bytes it may have.

    Raises:
        FileNotFoundError: there is none.
        UnusableFile: it is no regular file, too large (`TooLarge`), or cannot be read; the text says which.
    """
    try:
        # Without O_NONBLOCK opening a pipe waits for a writer.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise UnusableFile(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            kind = next((text for is_kind, text in _KINDS if is_kind(mode)), "something else")
            raise UnusableFile(f"expected a file; got {kind}")
        with open(handle, "rb", closefd=False) as stream:
            data = stream.read(most + 1)
    except OSError as error:
        raise UnusableFile(f"cannot be read: {error.strerror or error}") from None
    finally:
        os.close(handle)
    if len(data) > most:
        size = f"{most // 10**6} MB" if most >= 10**6 else f"{most:,} bytes"
        raise TooLarge(f"expected at most {size}; got more")
    return data
