"""What `build` refuses, and how it says so."""

import math
import operator
from typing import Any, Literal

import numpy as np

from mc.schedules.schedule import ScheduleError


def at_least(name: str, value: Any, least: int) -> int:
    """A whole number that is large enough."""
    try:
        # To Python, True is 1.
        whole = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        whole = None
    if whole is None or whole < least:
        raise ScheduleError(f"{name}: expected a whole number >= {least}; got {value!r}")
    return whole


def product(name: str, factors: tuple[int, ...], ranks: int, *, uneven: Literal["no", "yes"] = "no") -> None:
    """Factors whose product is the number of ranks, or holds them with only the last one incomplete."""
    whole = math.prod(factors)
    shown = " x ".join(map(str, factors))
    if uneven == "no" and whole != ranks:
        raise ScheduleError(f"{name}: expected a product of {ranks} ranks; got {shown} = {whole}")
    if uneven == "yes" and whole < ranks:
        raise ScheduleError(f"{name}: expected room for {ranks} ranks; got {shown} = {whole}")


def matrix_of(collective: str, ranks: int, value: Any) -> np.ndarray:
    """A matrix of bytes as float64[n, n]."""
    if collective != "all-to-all":
        raise ScheduleError(f"byte_matrix: expected none for {collective}, only for all-to-all; got one")
    try:
        matrix = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise ScheduleError(f"byte_matrix: expected numbers; got {value!r}") from None
    if matrix.shape != (ranks, ranks):
        raise ScheduleError(
            f"byte_matrix: expected shape [{ranks}, {ranks}], bytes from each rank to each; got {list(matrix.shape)}"
        )
    for what, wrong in (("finite numbers", ~np.isfinite(matrix)), ("numbers >= 0", matrix < 0)):
        if np.any(wrong):
            i, j = (int(each) for each in np.argwhere(wrong)[0])
            raise ScheduleError(f"byte_matrix: expected {what}; got {matrix[i, j]} from rank {i} to rank {j}")
    return matrix
