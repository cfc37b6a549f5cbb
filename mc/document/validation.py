"""From a document to a model, with every objection traced back to its place.

pydantic reports all errors at once, each with a path such as `('tiers', 0, 'jitter', 'lognormal', 'sigma')`.
Walking that path down the nodes gives the position; steps that are no key (the branch of a union that was
tried) fall through. The wording of the messages is ours (`messages.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from mc.document.messages import is_echo, message
from mc.document.nodes import Document, Position, key_text
from mc.document.problems import MAXIMUM_PROBLEMS, ConfigError, Problem

_READERS = "mc.document.readers"


class StrictModel(BaseModel):
    """Base of all file models: frozen, strict, unknown keys refused."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _note_reader(cls, data: Any, info: ValidationInfo) -> Any:
        # Remembers which model read which mapping: an unknown key is then compared with the keys of that
        # model.
        if isinstance(info.context, dict) and isinstance(data, dict):
            info.context.setdefault(_READERS, {})[id(data)] = cls
        return data


Model = TypeVar("Model", bound=BaseModel)


def validate(document: Document, model: type[Model], context: Mapping[str, Any] | None = None) -> Model:
    """Build a model from a document.

    Args:
        document: what was read.
        model: the pydantic model; subclasses of `StrictModel` get suggestions for misspelt keys.
        context: handed to the model's validators.

    Raises:
        ConfigError: all that the model objects to, each at its place.
    """
    data = document.root.plain()
    notes: dict[str, Any] = {**(context or {})}
    try:
        return model.model_validate(data, context=notes)
    except ValidationError as error:
        readers: Mapping[int, type[BaseModel]] = notes.get(_READERS, {})
        errors = error.errors(include_url=False)
        problems = [_problem(document, data, dict(each), readers) for each in errors[:MAXIMUM_PROBLEMS]]
        found = [problem for problem in problems if problem is not None]
        if len(errors) > MAXIMUM_PROBLEMS and found:
            last = max(found, key=lambda problem: problem.position)
            more = f"these are {MAXIMUM_PROBLEMS} mistakes, and there are {len(errors) - MAXIMUM_PROBLEMS:,} more"
            found.append(Problem(last.position, "", more))
        raise ConfigError(found) from None


def located(title: str, found: Sequence[tuple[tuple[str | int, ...], str]]) -> ValidationError:
    """What a model's own validator raises to object to several keys below it.

    Args:
        title: the model's name.
        found: (path below the model, message) pairs.
    """
    details = [
        InitErrorDetails(type=PydanticCustomError("located", "{text}", {"text": text}), loc=path, input=None)
        for path, text in found
    ]
    return ValidationError.from_exception_data(title, details)


def _problem(
    document: Document, data: Any, error: dict[str, Any], readers: Mapping[int, type[BaseModel]]
) -> Problem | None:
    node, path, position = document.root, [], document.root.position
    steps: Sequence[str | int] = error["loc"]
    known: tuple[str, ...] | None = None
    for index, step in enumerate(steps):
        child = node.child(step)
        is_last = index + 1 == len(steps)
        if child is None:
            if is_last and error["type"] == "missing":
                path.append(step)
            continue
        if is_last and error["type"] == "extra_forbidden":
            reader = readers.get(id(data))
            known = None if reader is None else _keys(reader)
            position = child.key_position or child.position
        else:
            position = child.position
        path.append(step)
        node, data = child, data[step]
    if is_echo(error, node):
        return None
    kind = error.get("ctx", {}).get("discriminator")
    tag = node.child(str(kind).strip("'")) if kind else None
    if tag is not None and error["type"] == "union_tag_invalid":
        path.append(str(kind).strip("'"))
        position = tag.position
    elif error["type"] in ("missing", "union_tag_not_found") and node.key_position is not None:
        # At the key of the mapping that lacks something; at its start if the mapping is in a file of its own.
        is_here = node.key_position.file == node.position.file
        position = node.key_position if is_here else node.position
    return Problem(
        _shown(position, document), key_text(path), message(error, key_text(path[-1:]), known, node)
    )


def _shown(position: Position, document: Document) -> Position:
    # An empty root (every key removed by overrides) still belongs to its file.
    return position if position.file else Position(document.file)


def _keys(model: type[BaseModel]) -> tuple[str, ...]:
    return tuple(field.alias or name for name, field in model.model_fields.items())
