"""NCCL's double binary tree: all-reduce with half of the buffer on each of two trees, in pieces.

The first tree has rank 0 on top, odd ranks as leaves, and a rank's parent differs from it in its lowest one
and the bit above; the second is the first mirrored (n even) or shifted by one (n odd), so that inner ranks of
one are leaves of the other, and all send equally much (NCCL, src/graph/trees.cc; P. Sanders, J. Speck, J. L.
Träff, Parallel Computing 35 (2009)).

Both trees run at once. Piece p leaves a rank at depth d for its parent in round D − d + p, one round after it
arrived from the rank's children, and comes down to depth d in round D + d − 1 + p. Up and down of each tree
are four lanes: a piece on its way down does not wait for a later one on its way up. At the root the data
change from one to the other.
"""

import numpy as np

from mc.schedules.options import Options
from mc.schedules.rows import Block, assemble, rows
from mc.schedules.schedule import Schedule


def double_tree_all_reduce(options: Options) -> Schedule:
    """2·⌈log₂ n⌉ rounds, and one more per further piece."""
    n, pieces = options.ranks, options.pieces
    blocks: list[Block] = []
    for tree, parents in enumerate(parents_of_both(n) if n > 1 else ()):
        blocks += _up_and_down(tree, parents, pieces)
    return assemble(
        blocks,
        collective="all-reduce",
        algorithm="tree",
        ranks=n,
        chunks=2 * pieces,
        lanes=4,
        rendezvous=False,
    )


def parents_of_both(n: int) -> tuple[np.ndarray, np.ndarray]:
    """int64[n] each: the parent of every rank in either tree, −1 at the top; n at least 2."""
    rank = np.arange(n)
    low = rank & -rank
    parent = (rank ^ low) | (low << 1)
    parent = np.where(parent >= n, rank ^ low, parent)
    parent[0] = -1
    moved = n - 1 - rank if n % 2 == 0 else (rank + 1) % n
    second = np.full(n, -1)
    second[moved] = np.where(parent < 0, -1, moved[parent])
    return parent, second


def depths(parent: np.ndarray) -> np.ndarray:
    """int64[n]: edges between each rank and the top."""
    depth = np.zeros(parent.size, np.int64)
    above = parent.copy()
    while np.any(above >= 0):
        depth += above >= 0
        above = np.where(above >= 0, parent[above], -1)
    return depth


def _up_and_down(tree: int, parent: np.ndarray, pieces: int) -> list[Block]:
    depth = depths(parent)
    deepest = int(depth.max())
    child = np.flatnonzero(parent >= 0)
    above, level = parent[child], depth[child]
    # A parent has at most two children, whose messages it takes in one after the other; ports serve what goes
    # up first.
    order = np.argsort(above, kind="stable")
    second = np.zeros(child.size, np.int64)
    second[order[1:]] = above[order[1:]] == above[order[:-1]]
    slot = 2 * tree + second
    piece = np.arange(pieces)[:, None]
    chunk = tree * pieces + piece
    up, down = 2 * tree, 2 * tree + 1
    return [
        rows(
            round=deepest - level + piece,
            slot=slot,
            source=child,
            target=above,
            first=chunk,
            combine=True,
            source_lane=up,
            target_lane=up,
        ),
        rows(
            round=deepest + level - 1 + piece,
            slot=4 + slot,
            source=above,
            target=child,
            first=chunk,
            combine=False,
            source_lane=np.where(parent[above] < 0, up, down),
            target_lane=down,
        ),
    ]
