"""Checks that look at several keys of a mapping at once."""

import math
from collections.abc import Sequence

from pydantic import BaseModel

from mc.document import located

PROBABILITY_TOLERANCE = 1e-9


def require_one_of(model: BaseModel, *groups: tuple[str, ...]) -> None:
    """Object unless exactly one group of keys is given, and given whole."""
    given = [name for group in groups for name in group if getattr(model, name) is not None]
    if any(sorted(given) == sorted(group) for group in groups):
        return
    expected = " or ".join(_listed(group) for group in groups)
    raise located(
        type(model).__name__, [((), f"expected either {expected}; got {_listed(given) or 'neither'}")]
    )


def _listed(names: Sequence[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]]) if len(quoted) > 1 else "".join(quoted)


def require_sum_of_one(model: BaseModel, key: str, probabilities: Sequence[float]) -> None:
    """Object to probabilities that do not add up to 1."""
    total = math.fsum(probabilities)
    if abs(total - 1) > PROBABILITY_TOLERANCE:
        terms = " + ".join(f"{each:g}" for each in probabilities[:8]) + (
            " + ..." if len(probabilities) > 8 else ""
        )
        message = f"expected probabilities that add up to 1; got {terms} = {total:.12g}"
        raise located(type(model).__name__, [((key,), message)])


def repeats(names: Sequence[str]) -> list[int]:
    """The indices at which a name comes up again."""
    return [index for index, name in enumerate(names) if name in names[:index]]
