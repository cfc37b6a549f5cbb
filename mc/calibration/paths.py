"""Numbers of a configuration by their paths, read and replaced.

A path is the keys from the root, joined by dots; an item of a list is named by its `name`, or by its place:
`tiers.node.link.latency`, `tiers.1.link.protocols.LL.tree.hop_latency`. What a protocol's family inherits is
read as inherited, and replaced for the family alone.

Replacing copies the frozen models on the way without validating them again, so a value may be traced: the
configuration then builds modules whose numbers are traced, by the same builders as ever. That is all that makes
a figure of a file a parameter of a fit.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from mc.config import FamilyConfig, ProtocolConfig
from mc.config.protocol import Family
from mc.document import StrictModel, did_you_mean
from mc.errors import InputError


class CalibrationError(InputError):
    """What is asked of a calibration, or what the data say, cannot be."""


Model = TypeVar("Model", bound=StrictModel)
_FAMILIES: dict[str, Family] = {"ring": "ring", "tree": "tree", "in_network": "in-network"}


def value_at(config: StrictModel, path: str) -> float:
    """The number at a path; of a family's, what it inherits where it states nothing.

    Raises:
        CalibrationError: there is no such path, or no number at it.
    """
    found: Any = config
    keys = path.split(".")
    for place, key in enumerate(keys):
        family = _FAMILIES.get(key) if isinstance(found, ProtocolConfig) else None
        found = _child(found, key, path) if family is None else found.of(family)
        if found is None:
            raise CalibrationError(f"{path}: expected a number; got none at `{'.'.join(keys[: place + 1])}`")
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise CalibrationError(f"{path}: expected the path of one number; got that of {_kind(found)}")
    return float(found)


def parent_of(config: StrictModel, path: str) -> tuple[StrictModel, str]:
    """The model that the figure at a path belongs to, and its key there."""
    *way, last = path.split(".")
    found: Any = config
    for key in way:
        if isinstance(found, ProtocolConfig) and key in _FAMILIES:
            # A family that states nothing is none, but has all the fields that it could state.
            found = getattr(found, key) or FamilyConfig()
            continue
        found = _child(found, key, path)
    if not isinstance(found, StrictModel):
        raise CalibrationError(f"{path}: expected the path of a number; `{last}` is below one")
    return found, last


def replaced(config: Model, values: Mapping[str, Any]) -> Model:
    """The configuration with other values at some paths, which may be traced arrays; nothing is validated."""
    for path, value in values.items():
        config = _replaced(config, path.split("."), value, path)
    return config


def _replaced(at: Any, keys: list[str], value: Any, path: str) -> Any:
    if not keys:
        return value
    key, *rest = keys
    if isinstance(at, tuple):
        place = _place(at, key, path)
        return (*at[:place], _replaced(at[place], rest, value, path), *at[place + 1 :])
    child = _child(at, key, path)
    if child is None and isinstance(at, ProtocolConfig) and key in _FAMILIES:
        child = FamilyConfig()
    return at.model_copy(update={key: _replaced(child, rest, value, path)})


def _child(at: Any, key: str, path: str) -> Any:
    if isinstance(at, tuple):
        return at[_place(at, key, path)]
    if not isinstance(at, StrictModel):
        raise CalibrationError(f"{path}: expected the path of a number; `{key}` is below one")
    known = list(type(at).model_fields)
    if key not in known:
        raise CalibrationError(f"{path}: unknown key `{key}`; {did_you_mean(key, known)}")
    return getattr(at, key)


def item_names(config: StrictModel, keys: Sequence[str]) -> list[str] | None:
    """How the items of the list below some keys are called; None if no list is there."""
    found: Any = config
    for key in keys:
        if isinstance(found, ProtocolConfig) or found is None:
            return None
        found = _child(found, key, ".".join(keys))
    return _names(found) if isinstance(found, tuple) else None


def _names(items: tuple[Any, ...]) -> list[str]:
    return [str(getattr(item, "name", None) or place) for place, item in enumerate(items)]


def _place(items: tuple[Any, ...], key: str, path: str) -> int:
    names = _names(items)
    if key in names:
        return names.index(key)
    if key.isdecimal() and int(key) < len(items):
        return int(key)
    raise CalibrationError(f"{path}: unknown item `{key}`; {did_you_mean(key, names)}")


def _kind(value: Any) -> str:
    return "a list" if isinstance(value, tuple) else "a text" if isinstance(value, str) else "several"
