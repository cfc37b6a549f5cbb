"""A short run of the fuzzer, and that it would notice."""

import dataclasses

import pytest

from mc.logs import MeasurementTable, read_logs
from mc.logs.columns import SCHEMA
from tests.logs import fuzz


def test_mutated_files_are_read_or_refused_in_words(tmp_path):
    assert list(fuzz.run(1000, 20261202, tmp_path)) == []


def test_a_reader_that_fails_is_noticed(tmp_path, monkeypatch):
    def broken(paths, *rest, **options):
        found = read_logs(paths, *rest, **options)
        return dataclasses.replace(found, table=MeasurementTable(SCHEMA.empty_table()))

    monkeypatch.setattr(fuzz, "read_logs", broken)
    assert next(fuzz.run(50, 20261202, tmp_path))[1].rstrip().endswith("AssertionError")
    monkeypatch.setattr(fuzz, "read_logs", lambda *rest, **options: 1 / 0)
    with pytest.raises(StopIteration):
        next(fuzz.run(0, 20261202, tmp_path))
    assert "ZeroDivisionError" in next(fuzz.run(50, 20261202, tmp_path))[1]
