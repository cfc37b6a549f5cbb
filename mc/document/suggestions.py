"""The nearest name to one that is not known."""

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], *, most: int = 12) -> str:
    """What to add to a message about an unknown name.

    Args:
        name: what was written.
        known: what would do.
        most: how many names to list when none is near.

    Returns:
        "did you mean `x`?", or "expected one of a, b, c" when nothing is near.
    """
    names = list(known)
    folded = {each.casefold().replace("_", "-"): each for each in reversed(names)}
    wanted = name.casefold().replace("_", "-")
    near = difflib.get_close_matches(wanted, folded, n=1, cutoff=0.6) or [
        each for each in folded if wanted and each.startswith(wanted)
    ]
    if near:
        return f"did you mean `{folded[near[0]]}`?"
    if not names:
        return "there are none"
    more = f" (and {len(names) - most} more)" if len(names) > most else ""
    return f"expected one of {', '.join(names[:most])}{more}"
