"""Mitigations that an experiment cannot have: more dropped than there are, a part of nothing, keys that contradict each other."""

from collections.abc import Iterator
from dataclasses import dataclass

from mc.config.failures import FailuresConfig
from mc.config.mitigations import MitigationsConfig, part_of
from mc.config.noise import NoiseConfig
from mc.config.plan import PlanConfig

# A key of `mitigations`, and what is wrong with it.
_Found = Iterator[tuple[str, str]]


@dataclass(frozen=True)
class Asked:
    """What an experiment says that mitigations have to do with.

    Attributes:
        mitigations: the switches.
        plan: who does what.
        trains_transformer: whether workers are replicas; ranks otherwise.
        has_experts: whether the transformer has.
        noise: of the cluster.
        failures: of chips.
        cluster_size: chips that there are.
        kinds: of chips, among the ranks.
        ranks: that a step is spread over.
        workers: that are needed.
        removed: chips that are taken out.
        backup_ranks: of workers beyond those that are needed.
    """

    mitigations: MitigationsConfig
    plan: PlanConfig
    trains_transformer: bool
    has_experts: bool
    noise: NoiseConfig
    failures: FailuresConfig | None
    cluster_size: int
    kinds: int
    ranks: int
    workers: int
    removed: int
    backup_ranks: int

    @property
    def name(self) -> str:
        """Of the workers, and how many there are."""
        return f"{self.workers} {'replicas (dp)' if self.trains_transformer else 'ranks'}"


def mitigation_problems(asked: Asked) -> list[tuple[tuple[str | int, ...], str]]:
    """What is wrong, by path; of an experiment of training without problems elsewhere."""
    checks = [_chips, _dropped, _removed, _spares, _exchanges]
    checks += [_of_transformers] if asked.trains_transformer else []
    return [(("mitigations", name), text) for check in checks for name, text in check(asked)]


def _chips(asked: Asked) -> _Found:
    taken = {
        "remove_slowest": asked.removed,
        "backup_workers": asked.backup_ranks,
        "hot_spares": asked.mitigations.spares,
    }
    beyond = {name: count for name, count in taken.items() if count}
    needed = asked.ranks + sum(beyond.values())
    if beyond and (needed > asked.cluster_size or asked.ranks < 1):
        terms = " + ".join([f"{asked.ranks} ranks", *(f"{count} `{name}`" for name, count in beyond.items())])
        hint = "" if asked.plan.ranks == "all" else "; `plan.ranks: all` takes what is left"
        yield (
            next(reversed(beyond)),
            f"expected at most the {asked.cluster_size} chips of the cluster; got {terms} = {needed}{hint}",
        )


def _dropped(asked: Asked) -> _Found:
    some = asked.mitigations.drop_slowest
    if some is None:
        return
    dropped = part_of(some, asked.workers)
    if dropped == 0:
        yield "drop_slowest", f"expected one of {asked.name} or more; got {_text(some)}, which is none"
    elif dropped >= asked.workers:
        yield "drop_slowest", f"expected fewer than the {asked.name} that there are; got {dropped}"


def _removed(asked: Asked) -> _Found:
    some, noise = asked.mitigations.remove_slowest, asked.noise
    if some is None:
        return
    if noise.persistent is None and (noise.slow_chips is None or noise.slow_chips.fraction == 0):
        yield (
            "remove_slowest",
            "expected `slow_chips` or `persistent` in `cluster.noise`, since without them no chip is slower than another for good",
        )
    elif asked.removed == 0:
        whole = f"{asked.cluster_size if asked.plan.ranks == 'all' else asked.ranks} chips"
        yield "remove_slowest", f"expected one of {whole} or more; got {_text(some)}, which is none"


def _spares(asked: Asked) -> _Found:
    spares, failures = asked.mitigations.hot_spares, asked.failures
    if spares is None:
        return
    if failures is None:
        yield "hot_spares", "expected `failures` in the experiment, since spares stand by for chips that fail"
    elif failures.spares:
        yield "hot_spares", f"expected none with `failures.spares`; got {spares} beside {failures.spares}"


def _exchanges(asked: Asked) -> _Found:
    for name in ("local_steps", "delayed_sync"):
        if getattr(asked.mitigations, name) and asked.workers == 1:
            yield name, f"expected two workers or more, which exchange; got {asked.name}"


def _of_transformers(asked: Asked) -> _Found:
    told, plan = asked.mitigations, asked.plan
    for name in ("local_steps", "delayed_sync"):
        if getattr(told, name):
            yield from ((name, text) for text in _meeting_in_every_step(asked))
    apart = ("drop_slowest", "backup_workers")
    if (plan.tp * plan.cp) % (plan.etp * plan.ep):
        for name in apart:
            if getattr(told, name):
                yield (
                    name,
                    "expected all experts of a layer within a replica (etp x ep that divides tp x cp), "
                    "since replicas that share them wait for each other in every layer",
                )
    for name in ("remove_slowest", "backup_workers"):
        if getattr(told, name) and asked.kinds > 1:
            yield (
                name,
                f"expected chips of one kind with a `transformer`; the cluster has {asked.kinds} kinds",
            )


def _meeting_in_every_step(asked: Asked) -> Iterator[str]:
    """Why replicas, or the ranks of one, reduce gradients in every step."""
    plan = asked.plan
    if plan.zero:
        yield (
            "expected `plan.zero: 0`, since replicas that shard their optimizer's states meet in every step; "
            f"got {plan.zero}"
        )
    if plan.cp > 1:
        yield (
            "expected `plan.cp: 1`, since ranks that share sequences reduce gradients in every step; "
            f"got {plan.cp}"
        )
    if asked.has_experts and plan.etp * plan.ep != plan.tp * plan.cp:
        yield (
            "expected experts that each replica has once, etp x ep = tp x cp, since their copies reduce gradients in every step; "
            f"got {plan.etp * plan.ep} and {plan.tp * plan.cp}"
        )


def _text(some: int | float) -> str:
    return f"{100 * some:g} %" if isinstance(some, float) else str(some)
