"""Reads texts as files."""

import pytest

from mc.logs import Hints, read_logs


@pytest.fixture
def read(tmp_path):
    """Reads a text (or bytes) as a file of this name, with hints; returns what was imported."""

    def of(content, name="job.log", *, format=None, **hints):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_logs([path], Hints(**hints), format=format)

    return of
