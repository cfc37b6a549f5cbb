"""Random link states: what the links of a tier may be in, who sees it together, and how long it lasts.

Without more, a link's state is drawn anew in each step. It lasts where the file says so in one of three ways:
`persistence` (a share of the links keeps its state from step to step), `holding` on each state but the first
(how many steps an episode lasts), or `transition` (the matrix itself, in which case the probabilities follow
from it). `growth` raises the load with the number of ranks, `spread` sends a group's traffic over several
paths, and `incast` is what many senders to one receiver cost.
"""

import math
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from mc.config.checks import PROBABILITY_TOLERANCE, repeats, require_sum_of_one
from mc.config.delay import TimeDelay
from mc.config.quantities import PositiveSize, Probability, Ratio, Slowdown, Time
from mc.document import StrictModel, located

Name = Annotated[str, Field(min_length=1)]

# A plain time, or a law of times: told apart by what stands there, so that mistakes are reported for what was meant.
QueueingDelay = Annotated[
    Annotated[Time, Tag("time")] | Annotated[TimeDelay, Tag("law")],
    Discriminator(lambda value: "time" if isinstance(value, str | int | float) else "law"),
]


class LinkStateConfig(StrictModel):
    """One state that a tier's links may be in.

    Attributes:
        name: unique among the states.
        probability: share of the steps in which a link is in this state; not with a `transition` matrix.
        slowdown: factor on transfer times.
        load: instead of a slowdown, what others send: a share of the bandwidth that the tier would have
            without oversubscription. It leaves 1 − load × oversubscription of the link.
        delay: queueing, seconds or a law of seconds; a group that shares the link waits together.
        holding: mean length of an episode of this state, in steps.
    """

    name: Name
    probability: Probability | None = None
    slowdown: Slowdown = 1.0
    load: Annotated[Probability, Field(lt=1)] | None = None
    delay: QueueingDelay = 0.0
    holding: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _one_slowness(self) -> "LinkStateConfig":
        if self.load is not None and self.slowdown != 1:
            raise located(
                "LinkStateConfig",
                [(("load",), "expected either `slowdown` or `load`; got `slowdown` and `load`")],
            )
        return self


class GrowthConfig(StrictModel):
    """Background load that grows with scale.

    At `at_ranks` ranks the states have the probabilities of the file. With each doubling, the logarithm of the
    odds of *not* finding a link in its first state rises by `per_doubling`: bounded by 1, and monotone.

    Attributes:
        per_doubling: rise of the log-odds for each doubling of the ranks.
        at_ranks: where the stated probabilities hold.
        of: whose ranks count: the job's (those of the plan), or all of the cluster's.
    """

    per_doubling: Ratio
    at_ranks: Annotated[int, Field(ge=1)]
    of: Literal["job", "cluster"] = "job"


class SpreadConfig(StrictModel):
    """A group's traffic takes several paths at once, each in a state of its own.

    Attributes:
        paths: how many.
        routing: `adaptive` sends more over the faster paths, so their bandwidths add up; `oblivious` gives each
            the same share, so the slowest decides.
    """

    paths: Annotated[int, Field(ge=1)]
    routing: Literal["adaptive", "oblivious"] = "adaptive"


class IncastConfig(StrictModel):
    """What it costs when many send to one at a time: the port's buffer overflows, and what is lost is sent again.

    Attributes:
        buffer: bytes that a receiver's port can hold.
        window: bytes that one sender has under way.
        penalty: of the bytes that do not fit, the share that costs its transfer time once more. 0 for a network
            with credits, which holds senders back instead.
    """

    buffer: PositiveSize
    window: PositiveSize
    penalty: Ratio


class CongestionConfig(StrictModel):
    """Random link states.

    Attributes:
        shared_by: whose ranks see one state together: `rank` (each its own), the name of this or an inner
            tier, or `all`.
        states: with probabilities that add up to 1.
        persistence: probability that a link keeps its state for the next step instead of drawing it anew.
        transition: row i has the probabilities of the states in the next step, after state i.
        growth: of the load, with scale.
        spread: of a group's traffic over several paths.
    """

    shared_by: Name
    states: Annotated[tuple[LinkStateConfig, ...], Field(strict=False, min_length=1)]
    persistence: Annotated[Probability, Field(lt=1)] | None = None
    transition: (
        Annotated[
            tuple[Annotated[tuple[Probability, ...], Field(strict=False)], ...],
            Field(strict=False, min_length=1),
        ]
        | None
    ) = None
    growth: GrowthConfig | None = None
    spread: SpreadConfig | None = None

    @property
    def remembers(self) -> bool:
        """Whether the file gives the states a memory from step to step."""
        return (
            bool(self.persistence)
            or self.transition is not None
            or any(state.holding is not None for state in self.states)
        )

    @model_validator(mode="after")
    def _check_states(self) -> "CongestionConfig":
        again = repeats([state.name for state in self.states])
        if again:
            raise located(
                "CongestionConfig",
                [(("states", index, "name"), "this name is taken already") for index in again],
            )
        if self.transition is None:
            missing = [index for index, state in enumerate(self.states) if state.probability is None]
            if missing:
                expected = "expected a `probability` for each state, or a `transition` matrix for all"
                raise located("CongestionConfig", [(("states", index), expected) for index in missing])
            probabilities = [state.probability or 0.0 for state in self.states]
            require_sum_of_one(self, "states", probabilities)
        found = [*_two_memories(self), *_not_stochastic(self), *_episodes(self), *_random_paths(self)]
        if found:
            raise located("CongestionConfig", found)
        return self


_Found = list[tuple[tuple[str | int, ...], str]]


def _two_memories(config: CongestionConfig) -> _Found:
    given = [name for name in ("persistence", "transition") if getattr(config, name) is not None]
    if any(state.holding is not None for state in config.states):
        given.append("holding")
    if len(given) < 2:
        return []
    quoted = " and ".join(f"`{name}`" for name in given)
    return [((), f"expected one of `persistence`, `transition` and `holding`; got {quoted}")]


def _not_stochastic(config: CongestionConfig) -> _Found:
    if config.transition is None:
        return []
    count = len(config.states)
    if len(config.transition) != count:
        return [(("transition",), f"expected a row for each of {count} states; got {len(config.transition)}")]
    found: _Found = []
    for index, row in enumerate(config.transition):
        total = math.fsum(row)
        if len(row) != count:
            found.append(
                (("transition", index), f"expected {count} probabilities, one per state; got {len(row)}")
            )
        elif abs(total - 1) > PROBABILITY_TOLERANCE:
            text = f"expected a row that adds up to 1; row {index} adds up to {total:.12g}"
            found.append((("transition", index), text))
    for index, state in enumerate(config.states):
        if state.probability is not None:
            text = "expected no probability beside a `transition` matrix, which determines it"
            found.append((("states", index, "probability"), text))
    return found


def _episodes(config: CongestionConfig) -> _Found:
    first, *others = config.states
    if all(state.holding is None for state in config.states):
        return []
    if first.holding is not None:
        text = "expected no `holding` on the first state, whose stays follow from the others'"
        return [(("states", 0, "holding"), text)]
    missing = [index for index, state in enumerate(others, 1) if state.holding is None]
    if missing:
        return [(("states", index), "expected a `holding` on each state but the first") for index in missing]
    quiet = first.probability or 0.0
    starts = math.fsum((state.probability or 0.0) / (state.holding or 1.0) for state in others)
    if starts > quiet:
        text = (
            "expected episodes that are long or rare enough for the first state to lie between them; "
            f"they begin in {starts:.4g} of the steps, and it holds in {quiet:.4g}"
        )
        return [(("states",), text)]
    return []


def _random_paths(config: CongestionConfig) -> _Found:
    if config.spread is None or config.spread.paths == 1:
        return []
    return [
        (
            ("states", index, "delay"),
            "expected a fixed time where traffic is spread over several paths; got a law",
        )
        for index, state in enumerate(config.states)
        if not isinstance(state.delay, float)
    ]
