"""Steps without noise as sums of few durations: exact, and a product of matrices for as many sets of them as one likes.

Most parts of a model are alike, so that a step has few different durations d: the passes of each sort of part, and
messages forward and back. The recursion decides for each operation which of those before it is the last to be ready;
these decisions make a tree, and with the tree every time is a sum along a branch, c·d with whole numbers c. A decision
stands as long as no alternative is later,

    (c of what was decided for − c of the alternative)·d >= 0,

so the tree is right in a *cone* of durations. As decisions repeat from one micro-batch to the next, a cone has few
different sides: those that durations, which are not negative, could violate. One run of the recursion finds a cone; what
lies in it then costs no run, and no approximation. (Such are the critical regions of parametric linear programmes:
Gal, Nedoma: Multiparametric linear programming. Management Science 18(7), 1972.)

With all stages alike but for the ends, two cones or so hold all durations of 1F1B; schedules that fill gaps have more.
"""

from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mc.pipeline.durations import by_kind
from mc.pipeline.finish import Finish
from mc.pipeline.levels import Levels
from mc.pipeline.listing import Listing, listed
from mc.pipeline.makespan import makespan_of, run
from mc.pipeline.many import run_many
from mc.pipeline.transfer import Transfer

# Which sort of part each chunk of each stage is.
Sorts = tuple[tuple[int, ...], ...]
# For one set of durations at a time a cone, which costs as much as some runs, is looked for after so many of them; without
# use no more than so many, and one more each so many uses.
_FEW, _FIRST, _WORTH = 3, 2, 16
# So many at most.
_MOST = 24
# What it costs to see whether sets are on the right of one side of a cone, in operations of the recursion.
_SIDE = 5.0
# Multiplications in a product that OpenBLAS leaves to one thread.
_ALONE = 2**18

_Array = NDArray[np.float64]
_Counts = NDArray[np.int32]


@lru_cache(maxsize=512)
def critical(levels: Levels, sorts: Sorts, *, blocking: bool | None = None) -> "Critical":
    """The steps of a schedule whose parts are of some sorts; `blocking` as in `Transfer`, None without messages."""
    return Critical(levels, sorts, blocking=blocking)


class _Cone(NamedTuple):
    """Where one tree is right.

    Attributes:
        sides: [sides, durations]; their products with durations are not negative inside.
        sums: [times, durations], the times of a `Finish` that follow from the tree.
    """

    sides: _Array
    sums: _Array


class Critical:
    """The cones of a schedule that have been needed so far. Make one with `critical`.

    Durations are a vector, or a matrix with a column for each set of them: the forward of each sort, its gradients of the
    inputs, of the weights; and where there are messages, that forward and that back.
    """

    def __init__(self, levels: Levels, sorts: Sorts, *, blocking: bool | None):
        """As `critical`."""
        self._levels, self._blocking = levels, blocking
        sort = np.array(sorts)
        stages, chunks = sort.shape
        number = int(sort.max()) + 1
        self._shape, self._size = (stages, chunks), 3 * number + (0 if blocking is None else 2)
        unit = np.eye(self._size, dtype=np.int32)
        of_passes = (unit[sort + place * number] for place in range(3))
        # Of which durations each operation consists.
        self._made_of: _Counts = by_kind(stages, chunks, *of_passes)
        plan = listed(levels)
        work = (plan.count[..., None] * self._made_of).sum(axis=(0, 2))
        gradients = self._made_of.reshape(-1, self._size)[plan.which[plan.last_gradient].ravel()]
        self._always = np.concatenate([work, gradients]).astype(np.float64)
        # A decision between times of so many operations is not exact in floating point.
        self._rounding = float(np.finfo(np.float64).eps * levels.order.operations)
        self.cones: list[_Cone] = []
        self._hits: list[int] = []
        self._tried: list[int] = []
        self._sides, self._starts = np.zeros((0, self._size)), np.zeros(0, np.int64)
        self._missed = 0

    def finish(self, durations: _Array) -> Finish:
        """The step; with an axis behind for the sets, if there are several."""
        return self._one(durations) if durations.ndim == 1 else self._many(durations)

    def _one(self, durations: _Array) -> Finish:
        place = self._place(durations)
        if place is not None:
            self._hits[place] += 1
            return self._finish(durations, self.cones[place].sums @ durations)
        self._missed += 1
        if self._missed > _FEW and len(self.cones) < min(_FIRST + sum(self._hits) // _WORTH, _MOST):
            return self._finish(durations, self._cone(durations).sums @ durations)
        return makespan_of(self._levels, self._made_of @ durations, transfer=self._transfer(durations))

    def _many(self, durations: _Array) -> Finish:
        found = np.empty((self._shape[0] * (1 + 2 * self._shape[1]), durations.shape[1]))
        slack = -self._rounding * durations.max(axis=0)
        left = np.arange(durations.shape[1])
        for place in sorted(range(len(self.cones)), key=self._hits.__getitem__, reverse=True):
            if left.size and self._pays(place):
                left = self._settle(place, durations, left, slack, found)
        if left.size and len(self.cones) < _MOST and self._place(durations[:, left[0]]) is None:
            self._cone(durations[:, left[0]])
            left = self._settle(-1, durations, left, slack, found)
        if left.size:
            # To put times of all sets in their places would take as long as to find them.
            is_all = left.size == durations.shape[1]
            rest = durations if is_all else durations[:, left]
            operations, rows = self._operations
            took = _product(operations, rest)
            ends = run_many(self._levels, [took[row] for row in rows], self._transfer(rest))
            if is_all:
                found = ends
            else:
                _put(ends, found, left)
        return self._finish(durations, found)

    def _place(self, durations: _Array) -> int | None:
        """In which cone some durations are."""
        if not self.cones:
            return None
        least = np.minimum.reduceat(self._sides @ durations, self._starts)
        place = int(least.argmax())
        return place if least[place] >= -self._rounding * durations.max() else None

    def _pays(self, place: int) -> bool:
        """Whether a cone has held enough of the sets that it was tried on."""
        tried, operations = self._tried[place], self._levels.order.operations * self._shape[0]
        return self._hits[place] * operations >= _SIDE * len(self.cones[place].sides) * tried

    def _settle(
        self, place: int, durations: _Array, left: NDArray[np.int64], slack: _Array, found: _Array
    ) -> NDArray[np.int64]:
        """Fills in what is inside of a cone, and returns what is left."""
        cone = self.cones[place]
        is_all = left.size == durations.shape[1]
        mine = durations if is_all else durations[:, left]
        inside = np.min(_product(cone.sides, mine), axis=0) >= slack[left]
        count = int(np.count_nonzero(inside))
        self._hits[place] += count
        self._tried[place] += left.size
        if is_all and count == left.size:
            found[:] = _product(cone.sums, durations)
        elif count:
            _put(_product(cone.sums, mine[:, inside]), found, left[inside])
        return left[~inside]

    def _finish(self, durations: _Array, found: _Array) -> Finish:
        stages, chunks = self._shape
        always = _product(self._always, durations)
        parts = (stages, chunks, *durations.shape[1:])
        end, starts, ends = found[:stages], *np.split(found[stages:], 2)
        return Finish(
            makespan=end.max(axis=0),
            end=end,
            busy=always[:stages],
            first_start=starts.reshape(parts),
            gradient_end=ends.reshape(parts),
            gradient_duration=always[stages:].reshape(parts),
        )

    @cached_property
    def _operations(self) -> tuple[_Array, NDArray[np.int64]]:
        """Operations that differ, and which of them each kind on each stage by each chunk is."""
        made_of = self._made_of.reshape(-1, self._size).astype(np.float64)
        return np.unique(made_of, axis=0, return_inverse=True)

    def _transfer(self, durations: _Array) -> Transfer | None:
        blocking = self._blocking
        return None if blocking is None else Transfer(durations[-2], durations[-1], blocking)

    def _cone(self, durations: _Array) -> _Cone:
        """The cone in which some durations are; it is kept."""
        plan = listed(self._levels)
        ends, _ = run(plan, self._made_of @ durations, self._transfer(durations))
        none, free = ends.size, self._size
        before, edges = _candidates(plan, self._shape[0], free, blocking=self._blocking)
        ready = np.append(ends, -np.inf)[before] + np.append(durations, 0.0)[edges]
        each, decided = np.arange(none), ready.argmax(axis=0)
        parent, edge = before[decided, each], edges[decided, each]
        # What messages that cost nothing would count goes into one more column.
        own = np.zeros((none, free + 1), np.int32)
        own[:, :free] = self._made_of.reshape(-1, free)[plan.which]
        counts = np.zeros((none + 1, free + 1), np.int32)
        counts[:none] = own
        counts[each, edge] += parent < none
        # Sums along branches of 2, 4, 8, … operations.
        jump = np.append(parent, none)
        while (jump < none).any():
            counts += counts[jump]
            jump = jump[jump]
        begun = counts[:none] - own
        alternatives = [
            begun[rest] - counts[before[row, rest]] - np.eye(free + 1, dtype=np.int32)[edges[row, rest]]
            for row in range(len(before))
            for rest in (np.flatnonzero((decided != row) & (before[row] < none)),)
        ]
        times = (counts[plan.last], begun[plan.first_forward.ravel()], counts[plan.last_gradient.ravel()])
        sums = np.concatenate(times)[:, :free].astype(np.float64)
        cone = _Cone(_sides(np.concatenate(alternatives)[:, :free]), sums)
        self.cones.append(cone)
        self._hits.append(0)
        self._tried.append(0)
        self._starts = np.append(self._starts, len(self._sides))
        self._sides = np.concatenate([self._sides, cone.sides])
        return cone


def _put(times: _Array, found: _Array, sets: NDArray[np.int64]) -> None:
    """Puts the times of some sets among those of all; row by row, which NumPy does in a tenth of the time."""
    for row, each in zip(found, times, strict=True):
        row[sets] = each


def _product(matrix: _Array, durations: _Array) -> _Array:
    """The product of both, in pieces so small that none is handed to several threads, which would wait for each other."""
    width = max(1, _ALONE // matrix.size)
    if durations.ndim == 1 or durations.shape[1] <= width:
        return matrix @ durations
    found = np.empty((len(matrix), durations.shape[1]))
    for start in range(0, durations.shape[1], width):
        found[:, start : start + width] = matrix @ durations[:, start : start + width]
    return found


def _candidates(
    plan: Listing, stages: int, free: int, *, blocking: bool | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """[candidates, operations]: what operations may wait for, and what is added to its end, by the number of the duration.

    Operations that wait for nothing have one beyond the last there.
    """
    stage = np.array(plan.stage)
    place = np.argsort(stage, kind="stable")
    follows = stage[place[1:]] == stage[place[:-1]]
    previous = np.full(stage.size, stage.size)
    previous[place[1:][follows]] = place[:-1][follows]

    def duration_of(route: NDArray[np.int64]) -> NDArray[np.int64]:
        if blocking is None:
            return np.full_like(route, free)
        return np.select([route < stages, route < 2 * stages], [free - 2, free - 1], free)

    before, edges = [], []
    # A stage that sends is held until the longer of its messages is over.
    held = duration_of(plan.sent) if blocking else np.full((1, stage.size), free)
    for own in held:
        before.append(previous)
        edges.append(np.append(own, free)[previous])
    for waits, route in zip(plan.waits, plan.route, strict=True):
        waited = np.array(waits)
        before.append(np.where(waited > 0, waited - 1, stage.size))
        edges.append(duration_of(route))
    return np.stack(before), np.stack(edges)


def _sides(rows: _Counts) -> _Array:
    """Those that say something of durations that are not negative, without those that others imply."""
    rows = _distinct(rows[(rows < 0).any(axis=1)])
    rows = rows[np.argsort(rows.sum(axis=1))]
    # Rows differ, so that one that is nowhere less than an other has a larger sum.
    kept: list[NDArray[np.int32]] = []
    while len(rows):
        kept.append(rows[0])
        rows = rows[(rows < rows[0]).any(axis=1)]
    # One that always holds, so that none is empty.
    return np.array([*kept, np.zeros(rows.shape[1])], np.float64)


def _distinct(rows: _Counts) -> _Counts:
    # Whole numbers that stand for rows are sorted in a fraction of the time that rows are.
    weights = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, rows.shape[1])
    _, first, place = np.unique(rows @ weights, return_index=True, return_inverse=True)
    found = rows[first]
    return found if np.array_equal(found[place], rows) else np.unique(rows, axis=0)
