"""Figures of a configuration by their paths: listed, read and replaced.

A path is the keys from the root, joined by dots; an item of a list goes by its `name`, or by its place: `tiers.node.link.latency`,
`tiers.1.link.protocols.LL.tree.hop_latency`. What a protocol's family inherits is read as inherited, and replaced for the family
alone. Replacing copies the frozen models on the way without validating them again, so a value may be traced: the configuration
then builds modules whose numbers are traced, by the same builders as ever.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

from pydantic.fields import FieldInfo

from mc.config.protocol import Family, FamilyConfig, ProtocolConfig
from mc.config.quantities import Quantity
from mc.document import StrictModel, did_you_mean
from mc.errors import InputError
from mc.units import Dimension

Model = TypeVar("Model", bound=StrictModel)
_FAMILIES: dict[str, Family] = {"ring": "ring", "tree": "tree", "in_network": "in-network"}


class PathError(InputError):
    """A path that leads to no figure."""


@dataclass(frozen=True)
class Figure:
    """A number with a dimension.

    Attributes:
        path: where it stands.
        value: SI.
        dimension: of it.
    """

    path: str
    value: float
    dimension: Dimension


def figures(config: StrictModel) -> Iterator[Figure]:
    """Every figure that is stated: not counts, and not lists of numbers."""
    return _figures(config, "")


def figure_at(config: StrictModel, path: str) -> float:
    """The number at a path; of a family's, what it inherits where it states nothing.

    Raises:
        PathError: there is no such path, or no number at it.
    """
    found: Any = config
    keys = path.split(".")
    for place, key in enumerate(keys):
        family = _FAMILIES.get(key) if isinstance(found, ProtocolConfig) else None
        found = _child(found, key, path) if family is None else found.of(family)
        if found is None:
            raise PathError(f"{path}: expected a number; got none at `{'.'.join(keys[: place + 1])}`")
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise PathError(f"{path}: expected the path of one number; got that of {_kind(found)}")
    return float(found)


def with_figures(config: Model, values: Mapping[str, Any]) -> Model:
    """The configuration with other values at some paths, which may be traced arrays; nothing is validated."""
    for path, value in values.items():
        config = _with(config, path.split("."), value, path)
    return config


def parent_of(config: StrictModel, path: str) -> tuple[StrictModel, str]:
    """The model that the figure at a path belongs to, and its key there.

    Raises:
        PathError: nothing is there that could have one.
    """
    *way, last = path.split(".")
    found: Any = config
    for key in way:
        if isinstance(found, ProtocolConfig) and key in _FAMILIES:
            # A family that states nothing is none, but has all the fields that it could state.
            found = getattr(found, key) or FamilyConfig()
            continue
        found = _child(found, key, path)
    if not isinstance(found, StrictModel):
        raise PathError(f"{path}: expected the path of a number; `{last}` is below one")
    return found, last


def marks_of(field: FieldInfo) -> list[Any]:
    """What a field says of its values, at any depth: `Quantity`, limits."""
    return [*field.metadata, *_marks(field.annotation)]


def item_names(config: StrictModel, keys: Sequence[str]) -> list[str] | None:
    """How the items of the list below some keys are called; None if no list is there."""
    found: Any = config
    for key in keys:
        if isinstance(found, ProtocolConfig) or found is None:
            return None
        found = _child(found, key, ".".join(keys))
    return _names(found) if isinstance(found, tuple) else None


def item_place(names: Sequence[str | None], key: str) -> int | None:
    """The place of the item of a list that a key means: by its name, or by its number."""
    if key in names:
        return names.index(key)
    return int(key) if key.isdecimal() and int(key) < len(names) else None


def _figures(at: Any, before: str) -> Iterator[Figure]:
    if isinstance(at, tuple):
        for place, item in enumerate(at):
            if isinstance(item, StrictModel):
                yield from _figures(item, f"{before}{getattr(item, 'name', None) or place}.")
        return
    for key, field in type(at).model_fields.items():
        value = getattr(at, key)
        if isinstance(value, StrictModel | tuple):
            yield from _figures(value, f"{before}{key}.")
        elif isinstance(value, float):
            quantity = next((each for each in marks_of(field) if isinstance(each, Quantity)), None)
            if quantity is not None:
                yield Figure(before + key, value, quantity.dimension)


def _marks(annotation: Any) -> Iterator[Any]:
    """What annotations say of a type, at any depth."""
    for each in getattr(annotation, "__metadata__", ()):
        yield each
        yield from getattr(each, "metadata", ())
    for each in get_args(annotation):
        yield from _marks(each)


def _with(at: Any, keys: list[str], value: Any, path: str) -> Any:
    if not keys:
        return value
    key, *rest = keys
    if isinstance(at, tuple):
        place = _place(at, key, path)
        return (*at[:place], _with(at[place], rest, value, path), *at[place + 1 :])
    child = _child(at, key, path)
    if child is None and isinstance(at, ProtocolConfig) and key in _FAMILIES:
        child = FamilyConfig()
    return at.model_copy(update={key: _with(child, rest, value, path)})


def _child(at: Any, key: str, path: str) -> Any:
    if isinstance(at, tuple):
        return at[_place(at, key, path)]
    if not isinstance(at, StrictModel):
        raise PathError(f"{path}: expected the path of a number; `{key}` is below one")
    known = list(type(at).model_fields)
    if key not in known:
        raise PathError(f"{path}: unknown key `{key}`; {did_you_mean(key, known)}")
    return getattr(at, key)


def _place(items: tuple[Any, ...], key: str, path: str) -> int:
    place = item_place([getattr(item, "name", None) for item in items], key)
    if place is None:
        raise PathError(f"{path}: unknown item `{key}`; {did_you_mean(key, _names(items))}")
    return place


def _names(items: tuple[Any, ...]) -> list[str]:
    return [str(getattr(item, "name", None) or place) for place, item in enumerate(items)]


def _kind(value: Any) -> str:
    return "a list" if isinstance(value, tuple) else "a text" if isinstance(value, str) else "several"
