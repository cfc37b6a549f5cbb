"""Laying out rows: blocks of messages by broadcasting, put one after the other and into order.

A builder states a whole phase at once, such as `rows(round=steps[:, None], source=ranks, ...)`, and never
loops over ranks.
"""

from typing import Any

import numpy as np

from mc.schedules.schedule import Schedule

Block = dict[str, np.ndarray]

_KINDS: dict[str, Any] = {
    **dict.fromkeys(("round", "slot", "source", "target", "first", "count"), np.int32),
    **dict.fromkeys(("combine", "cut_through", "attached"), np.bool_),
    **dict.fromkeys(("source_lane", "target_lane", "port"), np.int8),
    "piece_shares": np.float64,
}
_FALLBACK = {"slot": 0, "first": 0, "count": 1}


def rows(**columns: Any) -> Block:
    """A block of rows; columns are broadcast against each other and flattened in C order."""
    columns = _FALLBACK | columns
    arrays = {name: np.asarray(value, _KINDS[name]) for name, value in columns.items()}
    shape = np.broadcast_shapes(*(each.shape for each in arrays.values()))
    return {name: np.broadcast_to(each, shape).reshape(-1) for name, each in arrays.items()}


def size(block: Block) -> int:
    """How many rows a block has."""
    return block["round"].size


def join(blocks: list[Block]) -> Block:
    """Blocks one after the other; what a block does not say is 0 or False."""
    names = [name for name in _KINDS if any(name in each for each in blocks)]
    return {
        name: np.concatenate([each.get(name, np.zeros(size(each), _KINDS[name])) for each in blocks])
        for name in names
    }


def assemble(blocks: list[Block], **structure: Any) -> Schedule:
    """A schedule of blocks; rows are sorted by round, slot and source, those of a message stay in order.

    Args:
        blocks: the rows; none for a single rank.
        structure: the other fields of `Schedule`.
    """
    empty = rows(round=np.zeros(0), source=0, target=0, combine=False)
    block = join(blocks) if blocks else empty
    key = block["round"].astype(np.int64)
    if key.size:
        key = key * (int(block["slot"].max()) + 1) + block["slot"]
        key = key * (int(block["source"].max()) + 1) + block["source"]
        if np.any(key[1:] < key[:-1]):
            order = np.argsort(key, kind="stable")
            block = {name: each[order] for name, each in block.items()}
    columns: dict[str, Any] = dict(block)
    return Schedule(**columns, **structure)
