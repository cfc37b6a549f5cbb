"""A small part of what `python -m tests.hostile.fuzz` tries."""

from tests.hostile.fuzz import run


def test_nothing_escapes():
    found, wrong = run(150, first=10**6)
    assert wrong == []
    assert found["refused"] > 50
    assert found["read"] > 5
