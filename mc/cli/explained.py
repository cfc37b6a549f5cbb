"""What `tailstep explain` says: built apart, since it needs all of a plan's arithmetic."""

import itertools

import jax

from mc.config import ExperimentConfig
from mc.errors import InputError
from mc.fabric import Cluster, Switched, build_cluster, span, tier_of
from mc.parallel import (
    Group,
    Plan,
    PlanError,
    build_plan,
    checked_plan,
    make_plan,
    memory,
    messages,
    recomputed_share,
)
from mc.report.explain import Explanation, GroupLine, MessageLine, Placement, orders_by_cost
from mc.training.prices import NCCL, ClusterPrices, TabulatedPrices
from mc.transformer import Transformer, build_transformer, flops, parameters

_DIMENSIONS = ("tp", "cp", "dp", "pp")


def explained(experiment: ExperimentConfig) -> Explanation:
    """What an experiment's plan means on its cluster.

    Raises:
        PlanError: the model is no transformer.
        InputError: the cluster cannot carry a message.
    """
    plan = build_plan(experiment)
    assert experiment.model.transformer is not None
    shape = build_transformer(experiment.model.transformer)
    problem = None
    try:
        checked_plan(experiment)
    except PlanError as error:
        problem = str(error)
    sizes = [chip.memory_size for _, chip, _ in experiment.cluster.chips(plan.ranks) if chip.memory_size]
    pricer = _Pricer(experiment)
    given = tuple(name for name in plan.order if getattr(plan, name) > 1)
    placed = {order: pricer.placement(shape, plan, order) for order in itertools.permutations(given)}
    outermost = {name: placed[*(each for each in given if each != name), name] for name in given}
    count = plan.sequence_length, plan.global_batch, plan.config.recompute
    return Explanation(
        experiment.name,
        experiment.cluster.name,
        experiment.model.name,
        plan,
        parameters(shape),
        flops(shape, *count, recomputed=recomputed_share(shape, plan)),
        memory(shape, plan),
        (1 - plan.memory_reserve) * min(sizes) if sizes else None,
        problem,
        tuple(pricer.groups(plan)),
        tuple(pricer.messages(shape, plan)),
        orders_by_cost([each for each in placed.values() if each is not None]),
        {name: each for name, each in outermost.items() if each is not None},
    )


class _Pricer:
    """A cluster with idle links."""

    def __init__(self, experiment: ExperimentConfig):
        with jax.enable_x64(True):
            self._cluster: Cluster = build_cluster(experiment.cluster)
        # Links with protocols are those of NCCL, which has not every algorithm.
        names = dict(NCCL) if any(tier.protocols for tier in self._cluster.tiers) else {}
        source = ClusterPrices(self._cluster, names, experiment.plan.protocol)
        self._prices = TabulatedPrices(source)
        self._alike: dict[tuple, Group] = {}

    def groups(self, plan: Plan) -> list[GroupLine]:
        """The dimensions of more than one rank."""
        found = plan.groups
        named = [("tp", found.tp), ("cp", found.cp), ("dp", found.dp), ("pp", found.pp)]
        named = [pair for name in plan.order for pair in named if pair[0] == name]
        if plan.cp > 1:
            named.append(("gradients (cp x dp)", found.gradient))
        if plan.ep * plan.etp > 1:
            named += [("etp", found.etp), ("ep", found.ep), ("edp", found.edp)]
        if plan.zero and found.replica.size > 1:
            named += [("zero group", found.shard), ("zero copies", found.replica)]
        return [
            GroupLine(
                name, group, tuple((each.tier.name, each.units) for each in span(self._cluster, group.axes))
            )
            for name, group in named
            if group.axes
        ]

    def messages(self, shape: Transformer, plan: Plan) -> list[MessageLine]:
        """The messages of a plan with their prices; raises InputError where the cluster cannot carry one."""
        found = []
        with jax.enable_x64(True):
            for message in messages(shape, plan):
                group = self._representative(message.group)
                price = self._prices.price(message.collective, group, message.bytes)
                found.append(MessageLine(message, self._tier(message.group), float(price.seconds)))
        return found

    def placement(self, shape: Transformer, plan: Plan, order: tuple[str, ...]) -> Placement | None:
        """A plan with its dimensions in another order; None if there is no such plan."""
        rest = tuple(name for name in _DIMENSIONS if name not in order)
        try:
            ordered = plan.config.model_copy(update={"order": order + rest})
            other = make_plan(ordered, shape, plan.ranks, plan.node)
        except PlanError:
            return None
        try:
            lines = self.messages(shape, other)
        except InputError:
            return Placement(order, None, None)
        waiting = sum(line.total for line in lines if line.message.blocking)
        return Placement(order, sum(line.total for line in lines), waiting)

    def _tier(self, group: Group) -> str:
        tier = tier_of(self._cluster, group.axes)
        return "" if tier is None else tier.name

    def _representative(self, group: Group) -> Group:
        """A group that costs the same: on switches it does not matter which units it spans."""
        key = tuple(
            (
                each.index,
                each.units,
                each.ranks_per_unit,
                each.even,
                each.fewest_ranks,
                each.units_in_all,
                each.kinds,
                each.most_ranks,
                () if isinstance(each.tier.shape, Switched) else each.axes,
            )
            for each in span(self._cluster, group.axes)
        )
        return self._alike.setdefault(key, group)
