"""Which ranks work in lockstep, and where they are.

Ranks that share matrices (tp), sequences (cp) or the experts of a layer (ep) wait for each other several times in every
layer: during an operation they are one. So a stage falls into groups of ranks in lockstep, and a pipeline runs through
the groups with the same number on all stages. There are `replicas` of these pipelines, which meet when gradients are reduced.
Without experts that is one per data-parallel replica; with ep over several of them, fewer.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from mc.parallel import Plan

Members = NDArray[np.int64]


@dataclass(frozen=True)
class Lockstep:
    """Groups of ranks in lockstep.

    Attributes:
        members: ranks of each group, [stages, replicas, ranks of a group].
    """

    members: Members

    @property
    def stages(self) -> int:
        """How many stages."""
        return self.members.shape[0]

    @property
    def replicas(self) -> int:
        """How many pipelines."""
        return self.members.shape[1]

    @property
    def ranks(self) -> int:
        """In each group."""
        return self.members.shape[2]

    def units(self, unit_of_rank: NDArray[np.integer]) -> Members:
        """The units that each group lies in, [stages, replicas, most of them]; the last is repeated where there are fewer."""
        found = np.sort(unit_of_rank[self.members].astype(np.int64), axis=2)
        is_new = np.diff(found, axis=2, prepend=-1) > 0
        place = np.cumsum(is_new, axis=2) - 1
        most = int(place[..., -1].max()) + 1
        # Later ranks of a unit overwrite with the same number; what is beyond the last unit keeps that one.
        units = np.repeat(found[..., -1:], most, axis=2)
        np.put_along_axis(units, place, found, axis=2)
        return units


def lockstep(plan: Plan) -> Lockstep:
    """The groups of a plan."""
    sizes = {"tp": plan.tp, "cp": plan.cp, "dp": plan.dp, "pp": plan.pp}
    shape = [sizes[name] for name in reversed(plan.order)]
    axis = {name: len(shape) - 1 - place for place, name in enumerate(plan.order)}
    ranks = np.arange(plan.ranks).reshape(shape)
    # [stages, ranks of a stage], in the order in which experts number them.
    stages = np.moveaxis(ranks, axis["pp"], 0).reshape(plan.pp, -1)
    replica = np.moveaxis(np.broadcast_to(_along(shape, axis["dp"]), shape), axis["pp"], 0).reshape(
        plan.pp, -1
    )
    labels = _joined(replica[0], plan.etp * plan.ep)
    order = np.argsort(labels, kind="stable")
    return Lockstep(stages[:, order].reshape(plan.pp, int(labels.max()) + 1, -1))


def _along(shape: list[int], axis: int) -> Members:
    index = np.arange(shape[axis])
    return index.reshape([-1 if place == axis else 1 for place in range(len(shape))])


def _joined(replica: Members, experts: int) -> Members:
    """The group of each rank of a stage: those of one replica, and those of one group of experts, belong together."""
    if experts == 1:
        return replica
    ranks = replica.size
    block = replica.max() + 1 + np.arange(ranks) // experts
    links = coo_array((np.ones(ranks), (replica, block)), shape=(int(block.max()) + 1,) * 2)
    _, component = connected_components(links, directed=False)
    return np.unique(component[replica], return_inverse=True)[1]
