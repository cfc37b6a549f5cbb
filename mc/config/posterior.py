"""What a calibration leaves unknown of the figures of a cluster or an experiment: a normal law in spaces without borders.

    x = mean + factor · z,   z standard normal,

one x for each parameter, one row of `factor` (for instance of the covariance's Cholesky factor; shorter rows go on with zeros), and
each x a figure by its space:

- `positive`: the logarithm of the figure; `factor`: that of what is beyond 1;
- `share`: the log-odds of the figure over its limit;
- `simplex`: log(pₖ/p₀) of shares of a group whose `rest` is p₀;
- `ordered`: the logarithm of a step up from the one before in its group, the first from 1.

A figure that `--set` fixes loses its row, which leaves the law of the others as it was, and is listed in `fixed`. Not conditioned
on: who sets a figure asks what if, and has not measured it.

A cluster's block has paths below the cluster, an experiment's below the experiment; what both say is independent (`joined`).
"""

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from mc.config.figures import PathError, figure_at, item_place, parent_of
from mc.document import Node, Override, StrictModel

Model = TypeVar("Model", bound=StrictModel)
Text = Annotated[str, Field(min_length=1)]
Real = Annotated[float, Field(allow_inf_nan=False)]
CLUSTER = "cluster."
"""What paths below a cluster begin with below an experiment."""
Space = Literal["positive", "share", "factor", "simplex", "ordered"]
# Between the mean and the figure in the file, which is rounded.
_TOLERANCE = 1e-4


class UncertainConfig(StrictModel):
    """A figure that is known to some extent.

    Attributes:
        paths: where it stands, below what the block is of; all places share one value.
        space: of its values.
        mean: in that space, of the figure in SI units.
        factor: its row: standard deviations by independent causes.
        group: of a simplex or of states in order, its name.
        rest: of a simplex, the path of what the others leave.
        limit: of a share: what it is a share of, in SI units.
        over: path of a factor, another of the parameters: x is that of the figure times the factor, or of a share over it, which
            is what steps that wait for slow chips tell.
    """

    paths: Annotated[tuple[Text, ...], Field(strict=False, min_length=1)]
    space: Space
    mean: Real
    factor: Annotated[tuple[Real, ...], Field(strict=False, min_length=1)]
    group: Text | None = None
    rest: Text | None = None
    limit: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    over: Text | None = None


class PosteriorConfig(StrictModel):
    """Figures that are known to some extent, and together.

    Attributes:
        source: of it, for people.
        parameters: the figures.
        fixed: paths that were set by hand since, and are known.
    """

    source: Text
    parameters: Annotated[tuple[UncertainConfig, ...], Field(strict=False)]
    fixed: Annotated[tuple[Text, ...], Field(strict=False)] = ()

    @property
    def causes(self) -> int:
        """How many numbers z it takes."""
        return max((len(each.factor) for each in self.parameters), default=0)

    def figures(self, coordinates: Sequence[float]) -> dict[str, float]:
        """Figures by path, for one x of each parameter."""
        found: dict[str, float] = {}
        above: dict[str, float] = {}
        for each, x in zip(self.parameters, coordinates, strict=True):
            if each.space == "positive":
                value = math.exp(x)
            elif each.space == "share":
                value = each.limit / (1 + math.exp(-x))
            elif each.space == "simplex":
                rest = self._rest(each.group, coordinates)
                value = math.exp(x) * rest
                if each.rest is not None:
                    found[each.rest] = rest
            else:
                value = above.get(each.group or "", 1.0) + math.exp(x)
                if each.group is not None:
                    above[each.group] = value
            found |= dict.fromkeys(each.paths, value)
        for each in self.parameters:
            if each.over is not None:
                value, factor = found[each.paths[0]], found[each.over]
                value = min(value * factor, each.limit) if each.space == "share" else value / factor
                found |= dict.fromkeys(each.paths, value)
        return found

    def draw(self, z: Sequence[float]) -> dict[str, float]:
        """Figures by path, for independent standard normal z, as many as there are causes."""
        return self.figures(
            [
                each.mean + math.fsum(a * b for a, b in zip(each.factor, z, strict=False))
                for each in self.parameters
            ]
        )

    def _rest(self, group: str | None, coordinates: Sequence[float]) -> float:
        pairs = zip(self.parameters, coordinates, strict=True)
        return 1 / (1 + math.fsum(math.exp(x) for each, x in pairs if each.group == group))


def joined(cluster: PosteriorConfig | None, experiment: PosteriorConfig | None) -> PosteriorConfig | None:
    """What is not known of an experiment and of its cluster, independently, with paths below the experiment; None if all is known."""
    if cluster is not None:
        cluster = PosteriorConfig(
            source=cluster.source,
            parameters=tuple(_below_experiment(each) for each in cluster.parameters),
            fixed=tuple(f"{CLUSTER}{path}" for path in cluster.fixed),
        )
    return both(cluster, experiment)


def both(first: PosteriorConfig | None, second: PosteriorConfig | None) -> PosteriorConfig | None:
    """Two posteriors of different figures that are independent of each other as one; None if neither is."""
    if first is None or second is None:
        return first or second
    before = (0.0,) * first.causes
    own = [each.model_copy(update={"factor": (*before, *each.factor)}) for each in second.parameters]
    return PosteriorConfig(
        source="; ".join(dict.fromkeys((first.source, second.source))),
        parameters=(*first.parameters, *own),
        fixed=(*first.fixed, *second.fixed),
    )


def _below_experiment(parameter: UncertainConfig) -> UncertainConfig:
    def at(path: str | None) -> str | None:
        return None if path is None else f"{CLUSTER}{path}"

    paths = tuple(f"{CLUSTER}{path}" for path in parameter.paths)
    moved = {
        "paths": paths,
        "group": at(parameter.group),
        "rest": at(parameter.rest),
        "over": at(parameter.over),
    }
    return parameter.model_copy(update=moved)


def known_anew(config: Model, paths: Collection[str]) -> Model:
    """A cluster or an experiment whose posteriors leave out figures that are fitted anew."""
    changes: dict[str, Any] = {}
    posterior, cluster = getattr(config, "posterior", None), getattr(config, "cluster", None)
    if posterior is not None:
        changes["posterior"] = _leaving_out(posterior, set(paths))
    if isinstance(cluster, StrictModel):
        below = [path.removeprefix(CLUSTER) for path in paths if path.startswith(CLUSTER)]
        changes["cluster"] = known_anew(cluster, below)
    return config.model_copy(update=changes) if changes else config


def _leaving_out(posterior: PosteriorConfig, paths: set[str]) -> PosteriorConfig | None:
    rows = tuple(each for each in posterior.parameters if not {*each.paths, each.rest, each.over} & paths)
    fixed = tuple(path for path in posterior.fixed if path not in paths)
    return posterior.model_copy(update={"parameters": rows, "fixed": fixed}) if rows else None


_Found = Iterator[tuple[tuple[str | int, ...], str]]


def posterior_problems(
    config: StrictModel, posterior: PosteriorConfig, elsewhere: Collection[str] = ()
) -> _Found:
    """Objections to a posterior: (path below the posterior, message).

    Args:
        config: what its paths start at.
        posterior: the block.
        elsewhere: paths that another block has.
    """
    known: set[str] = set()
    wrong = False
    factors = {path for each in posterior.parameters if each.over is None for path in each.paths}
    for place, each in enumerate(posterior.parameters):
        where = ("parameters", place)
        if (each.space in ("simplex", "ordered")) != (each.group is not None):
            needs = "a `group`" if each.group is None else f"no `group` with `{each.space}`"
            yield (*where, "space"), f"expected {needs}; got {each.group or 'none'}"
            wrong = True
        if each.over is not None and (each.over not in factors or each.space not in ("positive", "share")):
            yield (*where, "over"), f"expected none, or another of the parameters; got `{each.over}`"
            wrong = True
        for number, path in enumerate(each.paths):
            at = (*where, "paths", number)
            if path in known:
                yield at, f"expected each figure once; got `{path}` twice"
                wrong = True
            if path in elsewhere:
                yield at, f"expected a figure that the cluster's own `posterior` lacks; got `{path}`"
                wrong = True
            known.add(path)
            try:
                figure_at(config, path)
                if _is_count(config, path):
                    yield at, "expected the path of a figure; got that of a count"
                    wrong = True
            except PathError as error:
                yield at, str(error)
                wrong = True
        if not any(each.factor):
            yield (*where, "factor"), "expected a row that is not all 0: leave a figure out that is known"
    if wrong:
        return
    try:
        means = posterior.figures([each.mean for each in posterior.parameters])
    except OverflowError:
        yield ("parameters",), "expected means of figures; got some beyond all numbers"
        return
    for place, each in enumerate(posterior.parameters):
        for path in each.paths:
            stated = figure_at(config, path)
            if abs(means[path] - stated) > _TOLERANCE * abs(stated):
                yield (
                    ("parameters", place, "mean"),
                    f"expected the mean of the figure at `{path}`, {stated:.6g}; got that of {means[path]:.6g}: leave out "
                    "a figure that was changed",
                )


def _is_count(config: StrictModel, path: str) -> bool:
    """Whether a whole number is there, which nothing is a little more of."""
    model, key = parent_of(config, path)
    return isinstance(getattr(model, key, None), int)


def without_fixed(cluster: Node, overrides: Sequence[Override], depth: int) -> Node:
    """The tree of a cluster, or of an experiment, without uncertainty of what overrides set.

    Args:
        cluster: the tree, with the overrides put in.
        overrides: all that there are.
        depth: of it in their paths: 0, or 1 for a cluster below an experiment.
    """
    posterior = cluster.child("posterior")
    parameters = None if posterior is None else posterior.child("parameters")
    if posterior is None or parameters is None or not isinstance(parameters.value, list):
        return cluster
    own = [each.path[depth:] for each in overrides if depth == 0 or each.path[:depth] == ("cluster",)]
    kept: list[Node] = []
    fixed: list[Node] = []
    for each in parameters.value:
        paths = each.child("paths")
        if paths is None or not isinstance(paths.value, list):
            kept.append(each)
            continue
        over = each.child("over")
        # What is known by its product with a figure is not known without it.
        whole = over is not None and isinstance(over.value, str) and _is_set(cluster, over.value, own)
        is_set = [whole or _is_set(cluster, str(path.value), own) for path in paths.value]
        fixed += [path for path, found in zip(paths.value, is_set, strict=True) if found]
        left = [path for path, found in zip(paths.value, is_set, strict=True) if not found]
        if left:
            entries = {**(each.mapping or {}), "paths": Node(left, paths.position, paths.key_position)}
            kept.append(Node(entries, each.position, each.key_position))
    if not fixed:
        return cluster
    before = posterior.child("fixed")
    fixed = [*(before.value if before is not None and isinstance(before.value, list) else []), *fixed]
    changed = {
        **(posterior.mapping or {}),
        "parameters": Node(kept, parameters.position, parameters.key_position),
        "fixed": Node(fixed, posterior.position, posterior.key_position),
    }
    entries = {
        **(cluster.mapping or {}),
        "posterior": Node(changed, posterior.position, posterior.key_position),
    }
    return Node(entries, cluster.position, cluster.key_position)


def _is_set(cluster: Node, path: str, overrides: Sequence[tuple[str, ...]]) -> bool:
    """Whether an override puts in the figure at a path, or something that holds it."""
    keys = _numbered(cluster, path.split("."))
    return any(override and tuple(keys[: len(override)]) == override for override in overrides)


def _numbered(cluster: Node, keys: list[str]) -> list[str]:
    """The keys with items of lists by their places, as overrides have them."""
    found: list[str] = []
    node: Node | None = cluster
    for key in keys:
        if node is not None and isinstance(node.value, list):
            names = [_name(item) for item in node.value]
            place = item_place(names, key)
            found.append(key if place is None else str(place))
            node = None if place is None else node.value[place]
        else:
            found.append(key)
            node = None if node is None else node.child(key)
    return found


def _name(item: Node) -> Any:
    name = item.child("name")
    return None if name is None else name.value
