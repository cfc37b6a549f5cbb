"""Which ranks of a cluster a measurement was taken on, and what the library that was measured chose from.

On the cluster that is fitted these are consecutive ranks where the nodes are full, and axes (`mc.config.axes`) where each has
fewer of the group than it has ranks. What contradicts the cluster is refused.
"""

from collections.abc import Iterable, Sequence

from mc.calibration.errors import CalibrationError
from mc.collectives.candidates import candidates
from mc.fabric import Cluster, FabricError, Ranks, span
from mc.logs import ENGINE_ALGORITHMS

# What NCCL and its kin choose from.
_LIBRARY = ("ring", "tree", "in-network")


def ranks_of(ranks: int | None, where: str) -> int:
    """The number of ranks of a measurement.

    Args:
        ranks: as the file says it.
        where: the measurement is, for what is raised.

    Raises:
        CalibrationError: the file does not say it, or they have nothing to exchange.
    """
    if ranks is None:
        raise CalibrationError(
            f"{where}: expected the number of ranks; the file does not say it, so use --ranks"
        )
    if ranks < 2:
        raise CalibrationError(
            f"{where}: expected two ranks or more; got {ranks}, who have nothing to exchange"
        )
    return ranks


def placed(ranks: int, nodes: int | None) -> str:
    """So many ranks and nodes, in words."""
    return f"{ranks} ranks" + (f" on {nodes} nodes" if nodes is not None else "")


def group_of(cluster: Cluster, ranks: int, nodes: int | None, where: str) -> Ranks:
    """The ranks of a cluster that a measurement on so many nodes used.

    The innermost tier is taken to be the node unless its ranks make more nodes than the measurement had.

    Raises:
        CalibrationError: the cluster has no such group.
    """
    if ranks > cluster.size:
        raise CalibrationError(
            f"{where}: expected at most the {cluster.size} ranks of {cluster.name}; the data have {ranks}"
        )
    if nodes is None or nodes == 1 or ranks % nodes:
        found: Ranks = ranks
    else:
        inside = ranks // nodes
        node = _node(cluster, inside, where)
        found = ranks if inside == node else ((inside, 1), (nodes, node)) if inside > 1 else ((nodes, node),)
    try:
        span(cluster, found)
    except FabricError as error:
        raise CalibrationError(f"{where}: {error}") from None
    return found


def _node(cluster: Cluster, inside: int, where: str) -> int:
    """How many ranks a node has: the innermost unit that holds those of one."""
    size = cluster.tiers[0].fan_out
    if len(cluster.tiers) == 1:
        return 1 if inside == 1 else size
    if inside > size:
        raise CalibrationError(
            f"{where}: expected at most {size} ranks in a node of {cluster.name}; the data have {inside}"
        )
    return size


def chosen_from(
    cluster: Cluster,
    collective: str,
    ranks: Ranks,
    measured: str | None,
    algorithms: Sequence[str] | None,
    where: str,
) -> tuple[str, ...]:
    """What a library chose from.

    Args:
        cluster: the cluster.
        collective: which.
        ranks: of it.
        measured: the algorithm that the file names.
        algorithms: what to take where it names none; NCCL's by default.
        where: the measurement is, for what is raised.

    Raises:
        CalibrationError: an algorithm that nobody knows, or none that these ranks can run.
    """
    if measured is None:
        return usable(cluster, collective, ranks, _LIBRARY if algorithms is None else algorithms)
    if measured not in ENGINE_ALGORITHMS:
        raise CalibrationError(
            f"{where}: expected an algorithm of {', '.join(ENGINE_ALGORITHMS)}; got {measured}"
        )
    return (ENGINE_ALGORITHMS[measured],)


def usable(cluster: Cluster, collective: str, ranks: Ranks, names: Iterable[str]) -> tuple[str, ...]:
    """Those algorithms that a library would choose from on a group.

    Switches reduce for more than two ranks only, who alone have a use for it, and, as NCCL does unasked, within one tier.
    """
    tiers = span(cluster, ranks)
    flat = {name for name, _ in candidates(cluster, collective, ranks).flat}
    alone = len(tiers) == 1 and tiers[0].units > 2
    found = tuple(name for name in names if name in flat and (name != "in-network" or alone))
    if not found:
        raise CalibrationError(
            f"{collective}: expected an algorithm that these ranks can run ({', '.join(sorted(flat))}); "
            f"got {', '.join(names)}"
        )
    return found
