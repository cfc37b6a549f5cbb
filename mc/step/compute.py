"""The compute phase: a step's synchronisation begins when the slowest rank is done.

Two kinds of slowness are kept apart, because measurements show both and no single law fits them. *Transient*: in each
step each rank draws its own time (`rank`), and each unit of a tier, and the job, what its ranks see together
(`shared`). *Persistent*: chips, nodes and racks have factors that stay for a realisation of the cluster. From the
rank outwards, at each scope first the transient noise and then the persistent factor:

    X_unit = persistent · (factor · max of the units inside + delay)

Three ways follow from how the scopes lie, and a step takes the cheapest one that is exact:

- nothing persistent inside a shared transient scope: units are alike up to a factor. The law of one unit
  is composed once; a step draws the slowest of each class of units. Cost independent of the number of ranks.
- the noise of a unit that holds the whole job is common to all, comes last, and is applied to the draw.
- something persistent inside a shared transient scope (slow chips, and nodes that pause as a whole): units
  differ in how many slow ones they hold, and every rank is drawn.
"""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mc.delays import AbstractDelay, Method, ParameterError, Scaled, Slowest, SlowestOf, sampler, with_inverse
from mc.delays.checks import scalar
from mc.random import draw_levels, stream
from mc.step.persistent import Classes, Persistent, factors, innermost_first, place_factors
from mc.step.shared_noise import SharedNoise

# Up to here classes are handed to the delays as one law, which can also be put on a grid.
_FEW_CLASSES = 8
# Steps that are drawn side by side where every rank is drawn.
_SIDE_BY_SIDE = 16


class Compute(eqx.Module):
    """Compute times of `ranks` ranks.

    Attributes:
        rank: one healthy rank's compute time in one step, seconds.
        ranks: how many ranks there are.
        persistent: factors that stay, innermost scope first.
        shared: transient noise that units share, innermost scope first.
        job: transient noise that all ranks share, applied in this order.
        kinds: (ranks, factor on all times) of kinds of chips; none if all are alike.
        every_rank: how many ranks, where each has to be drawn (`needs_every_rank`); None elsewhere.
        unit_law: the law of a unit of the outermost shared scope, tabulated; set by `prepared`.
    """

    rank: AbstractDelay
    ranks: Float[Array, ""] = eqx.field(converter=scalar("ranks", minimum=1.0))
    persistent: tuple[Persistent, ...] = eqx.field(converter=innermost_first, default=())
    shared: tuple[SharedNoise, ...] = ()
    job: tuple[SharedNoise, ...] = ()
    every_rank: int | None = eqx.field(static=True, default=None)
    kinds: tuple[tuple[int, float], ...] = eqx.field(static=True, default=())
    unit_law: AbstractDelay | None = None

    def __check_init__(self):
        """Shared scopes grow, and ranks are numbered where each is drawn."""
        units = [noise.unit for noise in self.shared]
        if any(outer <= inner for inner, outer in itertools.pairwise([0, *units])):
            raise ParameterError(f"expected shared scopes innermost first; got units of {units} ranks")
        if self.kinds and self.every_rank is not None:
            raise ParameterError(
                "expected chips of one kind where something persistent lies inside a shared scope"
            )
        if needs_every_rank(self.persistent, self.shared) and self.every_rank is None:
            raise ParameterError(
                "expected `every_rank`, the number of ranks, where something persistent lies inside a shared scope"
            )

    @property
    def unit(self) -> int:
        """Ranks per unit of the outermost shared scope; 1 if nothing is shared."""
        return self.shared[-1].unit if self.shared else 1

    def mean_of_one(self) -> Float[Array, ""]:
        """Mean compute time of one rank that waits for nobody, over healthy and slow units."""
        mean = self.rank.mean()
        for _, persistent, noise in scopes_of(self.persistent, self.shared):
            mean = mean if noise is None else noise.mean(mean)
            for entry in persistent:
                mean = mean * entry.mean()
        if self.kinds:
            ranks = sum(count for count, _ in self.kinds)
            mean = mean * sum(count * factor for count, factor in self.kinds) / ranks
        for noise in self.job:
            mean = noise.mean(mean)
        return mean

    def law_of_unit(self) -> AbstractDelay:
        """The slowest rank of one unit of the outermost shared scope, transient noise included."""
        law, inner = self.rank, 1
        for noise in self.shared:
            law = noise.law(Slowest(law, -(-noise.unit // inner)))
            inner = noise.unit
        return law

    def law_of_one(self) -> AbstractDelay:
        """One rank, without what is persistent and what the job has in common; what units share as if it were its own."""
        law = self.rank
        for noise in self.shared:
            law = noise.law(law)
        return law

    def slowest(self, classes: Classes | None = None) -> AbstractDelay:
        """The law of the slowest rank, without the job's own noise, given the classes of a realisation."""
        law = self.law_of_unit() if self.unit_law is None else self.unit_law
        if classes is None:
            return Slowest(law, jnp.ceil(self.ranks / self.unit))
        own = factors(self.persistent, classes)
        counts = jnp.asarray(classes.counts)
        return SlowestOf(jax.vmap(lambda f, n: Slowest(Scaled(law, f), n))(own, counts))

    def prepared(self) -> "Compute":
        """The same with the tables that the exact method reads, built once per parameter set."""
        job = tuple(noise.prepared() for noise in self.job)
        compute = eqx.tree_at(lambda self: (self.rank, self.job), self, (with_inverse(self.rank), job))
        if not self.shared or self.every_rank is not None:
            return compute
        law = with_inverse(compute.law_of_unit())
        return eqx.tree_at(lambda self: self.unit_law, compute, law, is_leaf=lambda leaf: leaf is None)

    def draw(
        self,
        key: PRNGKeyArray,
        size: int,
        *,
        classes: Classes | None = None,
        realisation: PRNGKeyArray | None = None,
        method: Method = "exact",
    ) -> Float[Array, " size"]:
        """`size` draws of the slowest rank's compute time in one realisation.

        Args:
            key: for these steps.
            size: how many.
            classes: of the realisation, where something is persistent.
            realisation: a key for the realisation, where every rank is drawn.
            method: how slowest ranks are drawn.
        """
        if self.every_rank is not None:
            assert realisation is not None
            slowest = self._draw_every_rank(key, size, realisation, self.every_rank)
        elif classes is None or method != "exact" or jnp.shape(classes.counts)[0] <= _FEW_CLASSES:
            slowest = sampler(self.slowest(classes), method)(key, size)
        else:
            slowest = self._draw_classes(key, size, classes)
        return self.with_job_noise(slowest, key, method)

    def with_job_noise(
        self, times: Float[Array, " size"], key: PRNGKeyArray, method: Method = "exact"
    ) -> Float[Array, " size"]:
        """Times with what all ranks have in common, drawn from the key of `draw`."""
        for place, noise in enumerate(self.job):
            times = noise.apply(times, stream(key, f"job {place}"), method)
        return times

    def common_to_all(
        self, key: PRNGKeyArray, size: int, method: Method = "exact"
    ) -> tuple[Float[Array, " size"], Float[Array, " size"]]:
        """What the job's noise does in `size` steps, drawn as in `draw`: the factor and the seconds that it adds."""
        nothing, unit = jnp.zeros(size), jnp.ones(size)
        for place, noise in enumerate(self.job):
            own = stream(key, f"job {place}")
            nothing, unit = noise.apply(nothing, own, method), noise.apply(unit, own, method)
        return unit - nothing, nothing

    def _draw_classes(self, key: PRNGKeyArray, size: int, classes: Classes) -> Float[Array, " size"]:
        # The slowest of each class is one draw; their maximum needs no law of its own.
        law = with_inverse(self.law_of_unit() if self.unit_law is None else self.unit_law)
        own = factors(self.persistent, classes)

        def one(slowest, indexed):
            index, factor, count = indexed
            levels = draw_levels(jax.random.fold_in(key, index), (size,))
            return jnp.maximum(slowest, factor * Slowest(law, count).quantile(levels)), None

        start = jnp.zeros(size, jnp.result_type(float))
        return jax.lax.scan(one, start, (jnp.arange(own.shape[0]), own, jnp.asarray(classes.counts)))[0]

    def _draw_every_rank(
        self, key: PRNGKeyArray, size: int, realisation: PRNGKeyArray, ranks: int
    ) -> Float[Array, " size"]:
        law = with_inverse(self.rank)
        scopes = [
            (
                unit,
                [place_factors(entry, ranks, realisation) for entry in persistent],
                None if noise is None else noise.prepared(),
            )
            for unit, persistent, noise in scopes_of(self.persistent, self.shared)
        ]

        def one_step(index):
            own = jax.random.fold_in(key, index)
            times, inner = law.quantile(draw_levels(stream(own, "rank"), (ranks,))), 1
            for unit, placed, noise in scopes:
                times, inner = _slowest_inside(times, -(-unit // inner)), unit
                if noise is not None:
                    times = noise.apply(times, stream(own, f"shared {unit}"))
                for each in placed:
                    times = times * each
            return jnp.max(times)

        return jax.lax.map(one_step, jnp.arange(size), batch_size=min(_SIDE_BY_SIDE, size))


def needs_every_rank(persistent: tuple[Persistent, ...], shared: tuple[SharedNoise, ...]) -> bool:
    """Whether units of a shared scope differ in what is persistent inside them."""
    return bool(persistent and shared) and min(entry.unit for entry in persistent) < shared[-1].unit


def scopes_of(
    persistent: tuple[Persistent, ...], shared: tuple[SharedNoise, ...]
) -> list[tuple[int, list[Persistent], SharedNoise | None]]:
    """Ranks per unit, the persistent entries and the shared noise of each scope, innermost first."""
    noises = {noise.unit: noise for noise in shared}
    units = sorted({entry.unit for entry in persistent} | set(noises))
    return [(unit, [entry for entry in persistent if entry.unit == unit], noises.get(unit)) for unit in units]


def _slowest_inside(times: Float[Array, " units"], inside: int) -> Float[Array, " outer"]:
    # The last unit may be filled in part only; nobody waits for who is not there.
    missing = -times.shape[0] % inside
    return jnp.max(jnp.pad(times, (0, missing)).reshape(-1, inside), axis=1)
