"""What a plan means on a cluster: groups and tiers, messages and their prices, memory, other placements.

Prices are those of idle links, one message at a time; what is hidden behind computing is marked, not subtracted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group as Lines
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from mc.parallel import Group, Memory, Message, Plan
from mc.report.times import duration
from mc.transformer import Flops, Parameters
from mc.units import Dimension, format_quantity

_SHOWN_ORDERS = 3


@dataclass(frozen=True)
class GroupLine:
    """A dimension.

    Attributes:
        name: of the dimension.
        group: of its ranks.
        tiers: that it spans, innermost first, each with how many of its units.
    """

    name: str
    group: Group
    tiers: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class MessageLine:
    """A kind of message.

    Attributes:
        message: what it is.
        tier: the outermost that it crosses.
        seconds: of one, with idle links.
    """

    message: Message
    tier: str
    seconds: float

    @property
    def total(self) -> float:
        """Seconds in a step, one after the other."""
        return self.seconds * self.message.count


@dataclass(frozen=True)
class Placement:
    """An order of dimensions.

    Attributes:
        order: innermost first; those of one rank are left out.
        seconds: of all messages of a step, one after the other; None where the cluster cannot carry them.
        waiting: of those that computing waits for.
    """

    order: tuple[str, ...]
    seconds: float | None
    waiting: float | None


@dataclass(frozen=True)
class Explanation:
    """All that is said about a plan.

    Attributes:
        name: of the experiment.
        cluster: its name.
        model: its name.
        plan: the plan.
        parameters: of the model.
        flops: of a step.
        memory: of the stage that needs the most.
        available: bytes that the plan may take; None where the chip's memory is not known.
        problem: why it does not fit; None if it does.
        groups: the dimensions of more than one rank.
        messages: of a step.
        orders: every order of the dimensions of more than one rank, the cheapest first.
        outermost: by dimension, the order that has it outermost and leaves the others as they are.
    """

    name: str
    cluster: str
    model: str
    plan: Plan
    parameters: Parameters
    flops: Flops
    memory: Memory
    available: float | None
    problem: str | None
    groups: tuple[GroupLine, ...]
    messages: tuple[MessageLine, ...]
    orders: tuple[Placement, ...]
    outermost: Mapping[str, Placement]

    @property
    def given(self) -> tuple[str, ...]:
        """The plan's own order, without dimensions of one rank."""
        return tuple(name for name in self.plan.order if getattr(self.plan, name) > 1)

    @property
    def seconds(self) -> float:
        """Of all messages, one after the other."""
        return sum(line.total for line in self.messages)

    @property
    def waiting(self) -> float:
        """Of messages that computing waits for."""
        return sum(line.total for line in self.messages if line.message.blocking)


def explain_json(found: Explanation) -> dict[str, Any]:
    """The explanation as plain data, SI units in the keys."""
    plan, memory = found.plan, found.memory
    sizes = ("ranks", "tp", "cp", "pp", "dp", "ep", "etp", "edp", "chunks", "micro_batch", "micro_batches")
    work = ("global_batch", "sequence_length", "schedule", "recompute", "zero", "zero_group")
    return {
        "name": found.name,
        "cluster": found.cluster,
        "model": {
            "name": found.model,
            "parameters": found.parameters.total,
            "active_parameters": found.parameters.active,
            "flop_per_step": found.flops.model,
            "executed_flop_per_step": found.flops.hardware,
        },
        "plan": {
            **{name: getattr(plan, name) for name in (*sizes, *work)},
            "order": list(plan.order),
            "sequence_parallel": plan.sequence_parallel,
            "layers": [[len(part) for part in stage] for stage in plan.layers],
        },
        "memory_bytes": {
            **{name: getattr(memory, name) for name in (*_MEMORY, "total")},
            "available": found.available,
            "stage": memory.stage,
            "in_flight": memory.in_flight,
            "problem": found.problem,
        },
        "groups": [
            {
                "dimension": line.name,
                "ranks": line.group.size,
                "axes": [list(axis) for axis in line.group.axes],
                "tiers": [{"name": name, "units": units} for name, units in line.tiers],
            }
            for line in found.groups
        ],
        "messages": [_message_json(line, found.seconds) for line in found.messages],
        "seconds": found.seconds,
        "waiting_seconds": found.waiting,
        "orders": [_placement_json(each) for each in found.orders],
        "outermost": {name: _placement_json(each) for name, each in found.outermost.items()},
    }


def _aside(message: Message) -> str:
    """What goes on while it is sent."""
    computing = [] if message.behind is None else [f"behind {message.behind}"]
    return ", ".join([*computing, "as others arrive"] if message.beside else computing)


def _message_json(line: MessageLine, whole: float) -> dict[str, Any]:
    message = line.message
    return {
        "dimension": message.dimension,
        "what": message.what,
        "segment": message.segment,
        "where": message.where,
        "collective": message.collective,
        "bytes": message.bytes,
        "ranks": message.group.size,
        "axes": [list(axis) for axis in message.group.axes],
        "tier": line.tier,
        "count": message.count,
        "stages": message.stages,
        "behind": message.behind,
        "beside_nodes": message.beside,
        "again": message.again,
        "seconds_each": line.seconds,
        "seconds": line.total,
        "share": line.total / whole if whole else 0.0,
    }


def _placement_json(placement: Placement) -> dict[str, Any]:
    return {
        "order": list(placement.order),
        "seconds": placement.seconds,
        "waiting_seconds": placement.waiting,
    }


_MEMORY = ("weights", "gradients", "optimizer", "activations", "buffers")


def explain_table(found: Explanation) -> RenderableType:
    """The explanation for a terminal."""
    parts: list[RenderableType] = [_header(found), Text()]
    if found.groups:
        parts += [_groups(found), Text()]
    if found.messages:
        parts += [_messages(found), Text()]
    parts += [_memory(found)]
    if len(found.orders) > 1:
        parts += [Text(), _orders(found)]
    return Lines(*parts)


def _header(found: Explanation) -> RenderableType:
    plan, flops, count = found.plan, found.flops, found.parameters
    active = f", {_count(count.active)} active" if count.active != count.total else ""
    again = f", {flops.hardware / flops.model:.3g} times as many with what is computed again"
    tokens = plan.global_batch * plan.sequence_length
    chunks = f", {plan.chunks} chunks" if plan.chunks > 1 else ""
    pipeline = f" by {plan.schedule}{chunks}" if plan.pp > 1 else ""
    return Lines(
        Text(found.name, style="bold"),
        Text(f"{found.model}: {_count(count.total)} parameters{active}"),
        Text(
            f"{tokens:,} tokens a step: {plan.global_batch:,} sequences of {plan.sequence_length:,}, "
            f"{plan.micro_batches:,} micro-batches of {plan.micro_batch} on each of {plan.dp:,} replicas{pipeline}"
        ),
        Text(
            f"{_quantity(flops.model, Dimension.COMPUTE)} a step"
            + (again if flops.hardware > 1.001 * flops.model else "")
        ),
    )


def _groups(found: Explanation) -> RenderableType:
    table = _table("dimension", "spans")
    table.add_column("ranks", justify="right")
    table.add_column("apart", justify="right")
    for line in found.groups:
        spans = " x ".join(f"{name} ({units})" for name, units in line.tiers)
        apart = ", ".join(f"{stride:,}" for _, stride in line.group.axes)
        table.add_row(Text(line.name), Text(spans), f"{line.group.size:,}", apart)
    return Lines(Text(f"{found.plan.ranks:,} ranks of {found.cluster}", style="italic"), table)


def _messages(found: Explanation) -> RenderableType:
    table = _table("", "what", "collective")
    for name in ("size", "times", "ranks"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("tier", no_wrap=True)
    for name in ("each", "a step", "share"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for line in found.messages:
        message = line.message
        segment = "" if message.segment is None else f"{message.segment}: "
        where = f" ({message.where})" if message.segment is not None else ""
        table.add_row(
            message.dimension,
            f"{segment}{message.what}{where}",
            message.collective,
            _quantity(message.bytes, Dimension.SIZE),
            f"{message.count:,.0f}",
            f"{message.group.size:,}",
            Text(line.tier),
            duration(line.seconds),
            duration(line.total),
            f"{100 * line.total / found.seconds:.1f} %" if found.seconds else "",
            _aside(message),
        )
    table.add_section()
    table.add_row("", "all, one after the other", *[""] * 6, duration(found.seconds), "100.0 %", "")
    share = f"{100 * found.waiting / found.seconds:.1f} %" if found.seconds else ""
    table.add_row("", "of that, computing waits for", *[""] * 6, duration(found.waiting), share, "")
    return Lines(Text("messages, links idle", style="italic"), table)


def _memory(found: Explanation) -> RenderableType:
    memory, plan = found.memory, found.plan
    title = f"memory of a rank, stage {memory.stage}" if plan.pp > 1 else "memory of a rank"
    table = _table("")
    table.add_column("", justify="right")
    for name in _MEMORY:
        if value := getattr(memory, name):
            flying = f" of {memory.in_flight} micro-batches" if memory.in_flight > 1 else ""
            table.add_row(
                f"{name}{flying}" if name == "activations" else name, _quantity(value, Dimension.SIZE)
            )
    table.add_section()
    table.add_row("all", _quantity(memory.total, Dimension.SIZE))
    if found.available is not None:
        table.add_row(
            f"there is, less {100 * plan.memory_reserve:.3g} %", _quantity(found.available, Dimension.SIZE)
        )
    problem = () if found.problem is None else (Text(found.problem, style="bold red"),)
    return Lines(Text(title, style="italic"), table, *problem)


def _orders(found: Explanation) -> RenderableType:
    table = _table("")
    for name in ("messages", "waiting"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    shown: dict[tuple[str, ...], list[str]] = {}
    for place, each in enumerate(found.orders[:_SHOWN_ORDERS]):
        shown.setdefault(each.order, []).append("cheapest" if place == 0 else "")
    shown.setdefault(found.given, []).insert(0, "this plan")
    for name, each in found.outermost.items():
        if each.order != found.given:
            shown.setdefault(each.order, []).append(f"{name} outermost")
    by_order = {each.order: each for each in (*found.outermost.values(), *found.orders)}
    least = found.orders[0].seconds
    for order, notes in sorted(shown.items(), key=lambda item: _cost(by_order[item[0]])):
        each = by_order[order]
        more = f"{each.seconds / least:.2f} times" if each.seconds and least and each.seconds > least else ""
        note = ", ".join(each for each in (*notes, more) if each)
        if each.seconds is None or each.waiting is None:
            table.add_row(", ".join(order), "", "", f"{note}; the cluster cannot carry it".lstrip("; "))
        else:
            table.add_row(", ".join(order), duration(each.seconds), duration(each.waiting), note)
    return Lines(Text("orders of the dimensions, innermost first", style="italic"), table)


def _cost(placement: Placement) -> float:
    return float("inf") if placement.seconds is None else placement.seconds


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def _quantity(value: float, dimension: Dimension) -> str:
    return format_quantity(value, dimension, digits=3)


def _count(number: float) -> str:
    for size, name in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if number >= size:
            return f"{number / size:.4g} {name}"
    return f"{number:,.0f}"


def orders_by_cost(placements: Sequence[Placement]) -> tuple[Placement, ...]:
    """The cheapest first."""
    return tuple(sorted(placements, key=_cost))
