"""The names a file may use and the names the engine knows are the same, though the files are checked without the engine."""

from typing import get_args

from mc.collectives import ALGORITHMS, algorithms, known_names
from mc.config.names import ALGORITHMS as NAMES
from mc.config.names import COLLECTIVES, Method
from mc.delays import Method as EngineMethod


def test_algorithms():
    # `auto` is a choice among the others, `hierarchical` a composition of them.
    known = {name for collective in ALGORITHMS for name in known_names(collective)}
    assert set(NAMES) == known | {"auto", "hierarchical"}


def test_every_collective_has_an_algorithm():
    assert all(algorithms(collective) for collective in COLLECTIVES)


def test_methods():
    assert get_args(Method) == get_args(EngineMethod)
