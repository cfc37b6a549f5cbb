"""pydantic's objections in our words: what was expected, what was found, what would do."""

import re
from typing import Any

from mc.document.nodes import Node
from mc.document.suggestions import did_you_mean

_EXPECTED = {
    "int_type": "an integer",
    "int_from_float": "an integer",
    "int_parsing": "an integer",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "string_type": "a text",
    "bool_type": "true or false",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "dict_type": "a mapping",
    "list_type": "a list",
    "tuple_type": "a list",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
    "string_too_short": "a text that is not empty",
    "too_short": "at least {min_length} items",
    "too_long": "at most {max_length} items",
}


def message(error: dict[str, Any], key: str, known: tuple[str, ...] | None, node: Node) -> str:
    """The text for one error.

    Args:
        error: as pydantic gives it.
        key: last step of its path.
        known: the keys that would have been accepted, for an unknown key.
        node: what was written at the place of the error.
    """
    context = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            return "unknown key" + (f"; {did_you_mean(key, known)}" if known is not None else "")
        case "missing":
            return f"missing key; `{key}` has to be given"
        case "literal_error" | "enum":
            return _choice(node, re.findall(r"'([^']*)'", context["expected"]) or [context["expected"]])
        case "union_tag_invalid":
            return _unknown(str(context["tag"]), re.findall(r"'([^']*)'", context["expected_tags"]))
        case "union_tag_not_found":
            return f"missing key; `{context['discriminator'].strip(chr(39))}` has to be given"
        case "value_error":
            return str(context["error"])
        case kind if kind in _EXPECTED:
            return f"expected {_EXPECTED[kind].format(**context)}; got {shown(node)}".replace(
                "at least 1 items", "at least one item"
            )
        case _:
            return error["msg"]


def is_echo(error: dict[str, Any], node: Node) -> bool:
    """Whether an error only follows from others.

    Such are a list that is counted short because its items failed, and the default of a key whose source
    failed.
    """
    if error["type"] == "too_short" and isinstance(node.value, list):
        return len(node.value) >= error["ctx"]["min_length"]
    return error["type"] == "default_factory_not_called"


def _choice(node: Node, choices: list[str]) -> str:
    if isinstance(node.value, str):
        return _unknown(node.value, choices)
    return f"expected {' or '.join(choices)}; got {shown(node)}"


def _unknown(name: str, choices: list[str]) -> str:
    hint = did_you_mean(name, choices)
    listed = "" if hint.startswith("expected") or len(choices) > 12 else f" (one of {', '.join(choices)})"
    return f"unknown name `{name[:60]}`; {hint}{listed}"


def shown(node: Node) -> str:
    """What was written, short enough for a line."""
    if isinstance(node.value, dict):
        return "a mapping"
    if isinstance(node.value, list):
        return f"a list of {len(node.value)}"
    if node.value is None:
        return "nothing"
    if isinstance(node.value, bool):
        return str(node.value).lower()
    text = repr(node.value) if isinstance(node.value, str) else str(node.value)
    return text if len(text) <= 60 else text[:57] + "..."
