"""A link's state as a Markov chain in time, and the number of links in each state.

Links of a tier are alike and independent, so how many are in each state is all that the slowest of them depends
on. The counts are a Markov chain themselves: those that leave a state for each other one are multinomial, and the
next counts are sums of them. A step costs a handful of binomials, whether there are ten links or a million.

References:
    J. G. Kemeny, J. L. Snell, "Finite Markov Chains", Van Nostrand 1960 (stationary law, lumping).
"""

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import PRNGKeyArray
from numpy.typing import ArrayLike, NDArray

from mc.errors import InputError
from mc.random import draw_levels, multinomial_counts

_TOLERANCE = 1e-9
# Compositions of paths into states; each is a state of its own to the counts.
MOST_STATES = 128


class LinkStateError(InputError):
    """A chain of link states cannot be."""


@dataclass(frozen=True, eq=False)
class MarkovChain:
    """A chain with a stationary law from which it starts.

    Attributes:
        transition: row i has the probabilities of the next state after state i.
        stationary: share of the time in each state, π = π·P.
    """

    transition: NDArray[np.float64]
    stationary: NDArray[np.float64]

    @staticmethod
    def of(transition: ArrayLike) -> "MarkovChain":
        """The chain of a transition matrix.

        Raises:
            LinkStateError: no square matrix, a row that is no law, or more than one stationary law.
        """
        matrix = np.asarray(transition, np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
            raise LinkStateError(
                f"transition: expected a square matrix, one row per state; got shape {matrix.shape}"
            )
        for index, row in enumerate(matrix):
            if not (np.isfinite(row).all() and (row >= 0).all() and abs(math.fsum(row) - 1) <= _TOLERANCE):
                raise LinkStateError(
                    "transition: expected rows of probabilities that add up to 1; "
                    f"got row {index}: {row.tolist()}, which adds up to {math.fsum(row):.12g}"
                )
        return MarkovChain(matrix, _stationary(matrix))

    @staticmethod
    def memoryless(probabilities: ArrayLike, persistence: float = 0.0) -> "MarkovChain":
        """P = ρ·I + (1 − ρ)·1π: with probability ρ a link keeps its state, else it draws one anew.

        ρ is the autocorrelation of anything that depends on the state, from one step to the next.
        """
        law = np.asarray(probabilities, np.float64)
        if law.ndim != 1 or law.size == 0 or (law < 0).any() or abs(math.fsum(law) - 1) > _TOLERANCE:
            raise LinkStateError(f"expected probabilities that add up to 1; got {law.tolist()}")
        if not 0 <= persistence < 1:
            raise LinkStateError(f"persistence: expected a number in [0, 1); got {persistence!r}")
        anew = np.broadcast_to(law, (law.size, law.size))
        return MarkovChain(persistence * np.eye(law.size) + (1 - persistence) * anew, law)

    @staticmethod
    def episodes(probabilities: ArrayLike, holding: Sequence[float]) -> "MarkovChain":
        """Episodes of the later states, each between two stays in the first one.

        A link leaves state k ≥ 1 with probability 1/h_k, for state 0; it enters from there with π_k/(π₀·h_k).

        Args:
            probabilities: π, of all states.
            holding: h, mean length of an episode of each state but the first, in steps, at least 1.
        """
        law = MarkovChain.memoryless(probabilities).stationary
        leave = 1 / np.asarray(holding, np.float64)
        if leave.shape != (law.size - 1,) or not ((leave > 0) & (leave <= 1)).all():
            raise LinkStateError(
                f"holding: expected {law.size - 1} times of at least one step; got {list(holding)}"
            )
        starts = law[1:] * leave
        if starts.sum() > law[0]:
            raise LinkStateError(
                "holding: expected episodes with the first state between them; "
                f"they begin in {starts.sum():.4g} of the steps, and it holds in {law[0]:.4g}"
            )
        matrix = np.diag(np.append(0.0, 1 - leave))
        matrix[1:, 0] = leave
        matrix[0, 1:] = starts / law[0] if law[0] > 0 else 0.0
        matrix[0, 0] = 1 - matrix[0, 1:].sum()
        return MarkovChain(matrix, law)

    @property
    def states(self) -> int:
        """How many states there are."""
        return self.stationary.size

    @property
    def remembers(self) -> bool:
        """Whether the next state depends on the present one."""
        return bool(np.abs(self.transition - self.stationary).max() > 1e-12)

    def loaded(self, log_odds: float) -> "MarkovChain":
        """The chain under a load that raises the odds of not being in the first state by e^`log_odds`.

        The shares of the other states among themselves stay, and so do their episodes. A link leaves the first
        state e^`log_odds` times as often; where that were more often than always, all moves are slowed alike,
        which leaves the stationary law as it is.
        """
        if log_odds == 0 or self.states == 1:
            return self
        factor = math.exp(log_odds)
        law = self.stationary * np.append(1.0, np.full(self.states - 1, factor))
        law = law / law.sum()
        if not self.remembers:
            return MarkovChain.memoryless(law)
        moves = self.transition - np.eye(self.states)
        moves[0] *= factor
        moves /= max(1.0, -moves[0, 0])
        return MarkovChain(np.eye(self.states) + moves, law)

    def counts(self, key: PRNGKeyArray, links: int, realisations: int, steps: int) -> NDArray[np.float64]:
        """How many of `links` links are in each state, step after step.

        Realisation r depends on the key and on r alone, and more steps keep the first ones. Under one key more
        links mean at least as many in every state.

        Returns:
            Shape (realisations, steps, states); each sequence starts from the stationary law.
        """
        states = self.states
        # Likely moves first: an order per row, and the way back.
        order = np.argsort(-self.transition, axis=1, kind="stable")
        rows = np.take_along_axis(self.transition, order, axis=1)
        back = np.argsort(order, axis=1)
        keys = jax.vmap(lambda index: jax.random.fold_in(key, index))(np.arange(realisations))
        moving = self.remembers
        per_step = (states if moving else 1) * max(states - 1, 1)
        counts = np.empty((realisations, steps, states))
        levels = _levels(keys, 0, max(states - 1, 1))[:, : states - 1]
        first = np.argsort(-self.stationary, kind="stable")
        now = multinomial_counts(levels, np.full(realisations, float(links)), self.stationary[first])
        now = now[:, np.argsort(first)]
        counts[:, 0] = now
        length = max(1, _BLOCK // per_step)
        for start in range(1, steps, length):
            block = _levels(keys, 1 + start // length, length * per_step)
            block = block.reshape(realisations, length, -1, max(states - 1, 1))[..., : states - 1]
            for step in range(start, min(start + length, steps)):
                drawn = block[:, step - start]
                if moving:
                    flows = multinomial_counts(drawn, now, rows)
                    now = np.take_along_axis(flows, back[None], axis=2).sum(axis=1)
                else:
                    now = multinomial_counts(
                        drawn[:, 0], np.full(realisations, float(links)), self.stationary[first]
                    )[:, np.argsort(first)]
                counts[:, step] = now
        return counts


# Levels of one realisation that are drawn in one call: part of what a seed means.
_BLOCK = 1 << 10


def _levels(keys: PRNGKeyArray, block: int, count: int) -> NDArray[np.float64]:
    return np.asarray(_draw_block(keys, block, count), np.float64)


@functools.partial(jax.jit, static_argnums=2)
def _draw_block(keys: PRNGKeyArray, block: int, count: int) -> jax.Array:
    return jax.vmap(lambda key: draw_levels(jax.random.fold_in(key, block), (count,)))(keys)


def compositions(states: int, paths: int) -> NDArray[np.int64]:
    """All ways in which `paths` paths may be in `states` states: rows of counts, the first state's descending.

    Raises:
        LinkStateError: there are too many to be told apart.
    """
    total = math.comb(paths + states - 1, states - 1)
    if total > MOST_STATES:
        raise LinkStateError(
            f"expected at most {MOST_STATES} ways for the paths of a group to be in their states; "
            f"got {total} for {paths} paths of {states} states: take fewer paths or states"
        )
    found = [
        np.diff([-1, *bars, paths + states - 1]) - 1
        for bars in itertools.combinations(range(paths + states - 1), states - 1)
    ]
    return np.asarray(sorted(found, key=lambda row: [-count for count in row]), np.int64)


def on_paths(chain: MarkovChain, paths: int) -> MarkovChain:
    """The chain of the composition of `paths` independent copies, in the order of `compositions`.

    Lumping is exact, since the copies are alike (Kemeny and Snell 1960, section 6.3).
    """
    rows = compositions(chain.states, paths)
    index = {tuple(row): place for place, row in enumerate(rows.tolist())}
    law = np.array([_multinomial(row, chain.stationary) for row in rows])
    if not chain.remembers:
        return MarkovChain.memoryless(law / law.sum())
    matrix = np.zeros((len(rows), len(rows)))
    for place, row in enumerate(rows):
        # The law of where the copies go: one state's leavers after the other.
        reached = {(0,) * chain.states: 1.0}
        for state, count in enumerate(row.tolist()):
            if count:
                moves = [
                    (tuple(m), _multinomial(m, chain.transition[state]))
                    for m in compositions(chain.states, count).tolist()
                ]
                then: dict[tuple[int, ...], float] = {}
                for (so_far, p), (move, q) in itertools.product(reached.items(), moves):
                    total = tuple(a + b for a, b in zip(so_far, move, strict=True))
                    then[total] = then.get(total, 0.0) + p * q
                reached = then
        for target, probability in reached.items():
            matrix[place, index[target]] = probability
    matrix /= matrix.sum(axis=1, keepdims=True)
    return MarkovChain(matrix, law / law.sum())


def _multinomial(counts: Sequence[int] | NDArray[np.int64], law: NDArray[np.float64]) -> float:
    value, left = 1.0, int(sum(counts))
    for count, p in zip(counts, law, strict=True):
        value *= math.comb(left, int(count)) * float(p) ** int(count)
        left -= int(count)
    return value


def _stationary(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """π with π·P = π: by elimination without subtractions (Grassmann, Taksar, Heyman 1985), so to full relative precision."""
    size = matrix.shape[0]
    # Which states lead to which; a state is returned to for ever if all that it leads to lead back.
    closed = (matrix > 0) | np.eye(size, dtype=bool)
    for _ in range(max(1, size.bit_length())):
        closed = (closed.astype(np.int64) @ closed.astype(np.int64)) > 0
    recurrent = [i for i in range(size) if all(closed[j, i] for j in range(size) if closed[i, j])]
    first = recurrent[0]
    strangers = [i for i in recurrent if not closed[first, i]]
    if strangers:
        raise LinkStateError(
            "transition: expected states that a link can get out of; "
            f"got states {first} and {strangers[0]}, which never lead to each other"
        )
    members = np.array([i for i in recurrent if closed[first, i]])
    part = matrix[np.ix_(members, members)].copy()
    for last in range(len(members) - 1, 0, -1):
        part[:last, last] /= part[last, :last].sum()
        part[:last, :last] += np.outer(part[:last, last], part[last, :last])
    law = np.zeros(len(members))
    law[0] = 1.0
    for state in range(1, len(members)):
        law[state] = law[:state] @ part[:state, state]
    result = np.zeros(size)
    result[members] = law / law.sum()
    return result
