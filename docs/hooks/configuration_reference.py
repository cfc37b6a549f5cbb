"""The reference of configuration keys, from the JSON Schemas: what a file may say cannot differ from what is documented.

Types, ranges and defaults come from the schema itself, what a key means from the `Attributes:` section of its
model's docstring, which pydantic hands on as the description of the model.
"""

import json
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from mc.config import json_schema
from mc.config.names import FILE_KINDS

_Schema = dict[str, Any]
# What explains itself in the model, and so has no line there, but needs one in a table.
_EVERYWHERE = {
    "extends": "a file to inherit from: a path relative to this file, or the name of a shipped one.",
    "schema_version": "of this format; there is one so far.",
    "name": "for people; a cluster's, model's or plan's name appears in reports.",
    "kind": "which of the alternatives this is.",
    "family": "which law this is.",
    "chip": "what a rank is: of the catalog, or a mapping.",
    "tiers": "levels of the interconnect, innermost first.",
    "noise": "of the chips: what disturbs computing.",
    "levels": "of switches, lowest first.",
    "probability": "how often, as a share; those of alternatives add up to 1.",
    "delay": "how long.",
    "fraction": "share of the units that are slow.",
    "slowdown": "how many times as long they take.",
    "time": "of a rank that nothing disturbs; instead of the three others.",
    "flop": "of one rank in one step.",
    "format": "of the numbers, which says which peak counts.",
    "efficiency": "part of the peak that is reached.",
    "collective": "what the ranks do together.",
    "size": "bytes as nccl-tests counts them (the whole buffer); 0 for a barrier.",
    "tp": "tensor-parallel ranks: they share heads and matrices.",
    "dp": "data-parallel ranks: they share the requests.",
    "pp": "pipeline stages.",
    "ep": "groups that share a layer's experts; tp x dp if left out, 1 without experts.",
    "value": "the time or ratio itself.",
    "median": "of the law; with `sigma`.",
    "sigma": "standard deviation of the logarithm.",
    "mean": "of the law.",
    "cv": "standard deviation over mean.",
    "shape": "of the law; larger is lighter for gamma and Weibull, heavier for Pareto.",
    "scale": "of the law.",
    "samples": "measured values; `file` may stand in their place.",
    "tail_fraction": "largest share of the samples, to which a generalised Pareto tail is fitted.",
    "components": "the laws to choose from.",
}
_FORMATS = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8")


def page() -> str:
    """All keys of all kinds of files, as Markdown."""
    parts = [
        "# Keys of the files",
        "Generated from the schema (`tailstep schema KIND`). What the keys are for, by example: "
        "[Configuration](../configuration.md). Keys without a default have to be there, unless `extends` brings them.",
    ]
    seen: set[str] = set()
    for kind in FILE_KINDS:
        schema = json_schema(kind)
        parts.append(f"## File: {kind}\n\n{_section(schema, required=None)}")
        for name, definition in sorted(schema["$defs"].items(), key=lambda entry: label(*entry)):
            title = label(name, definition)
            # A delay comes in two forms, of times and of ratios, whose keys are the same.
            if title in seen or "properties" not in definition:
                continue
            seen.add(title)
            parts.append(f"## {title}\n\n{_section(definition, required=definition.get('required'))}")
    return "\n\n".join(parts) + "\n"


def label(name: str, definition: _Schema) -> str:
    """What a model is called on the page: its class, less the suffix that all share and generic arguments."""
    found = re.search(r"([A-Z][A-Za-z]+?)(?:Config|_Annotated|$)", name)
    words = re.findall(r"[A-Z][a-z]+", found[1] if found else name)
    assert words, definition
    return " ".join([words[0], *(word.lower() for word in words[1:])])


def attributes(docstring: str) -> tuple[str, dict[str, str]]:
    """A docstring as its text before `Attributes:` and the text of each attribute."""
    before, _, section = docstring.partition("Attributes:\n")
    found: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", textwrap.dedent(section)):
        name, colon, text = entry.partition(":")
        if colon:
            found[name.strip()] = " ".join(text.split())
    return before.strip(), found


def keys(schema: _Schema) -> Iterator[tuple[str, str, str, str]]:
    """Each key of a model, with its type, default and meaning; an empty meaning is one that nobody wrote."""
    _, meanings = attributes(schema.get("description", ""))
    for key, entry in schema["properties"].items():
        own = entry.get("description", "")
        meaning = meanings.get(key) or ("" if _dimension(entry) else own) or _EVERYWHERE.get(key, "")
        if not meaning and key in _FORMATS:
            meaning = f"of numbers in {key}."
        default = "" if "default" not in entry else _code(entry["default"])
        yield key, type_text(entry), default, meaning


def type_text(entry: _Schema) -> str:
    """A type in words; quantities by their dimension and an example of their spelling."""
    if (dimension := _dimension(entry)) is not None:
        return dimension
    if "$ref" in entry:
        title = label(entry["$ref"].rpartition("/")[2], entry)
        return f"[{title}](#{title.lower().replace(' ', '-')})"
    for alternatives in ("anyOf", "oneOf"):
        if alternatives in entry:
            texts = [type_text(each) for each in entry[alternatives]]
            return " or ".join(dict.fromkeys(text for text in texts if text != "null")) or "null"
    if "enum" in entry:
        values = entry["enum"]
        if len(values) > 12:
            return f"one of {len(values)}: {_code(values[0])}, {_code(values[1])}, …"
        return ", ".join(map(_code, values))
    if "const" in entry:
        return _code(entry["const"])
    if entry.get("type") == "array":
        return f"list of {type_text(entry['items'])}" if "items" in entry else "list"
    if entry.get("type") == "object":
        values = entry.get("additionalProperties")
        return f"mapping to {type_text(values)}" if isinstance(values, dict) else "mapping"
    kind = entry.get("type", "anything")
    names = {"string": "text", "integer": "whole number", "boolean": "true or false"}
    return names.get(kind, str(kind)) + _range(entry)


def _section(schema: _Schema, *, required: list[str] | None) -> str:
    before, _ = attributes(schema.get("description", ""))
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for key, kind, default, meaning in keys(schema):
        shown = default or ("required" if required and key in required else "")
        cells = (f"`{key}`", kind, shown, meaning)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n\n".join(filter(None, (" ".join(before.split()), "\n".join(rows))))


def _dimension(entry: _Schema) -> str | None:
    """The dimension of a quantity with an example; None for anything else."""
    found = re.match(r"An? ([a-z ,]+?), such as ([^,]+)", entry.get("description", ""))
    return f"{found[1]} (`{found[2].rstrip('.')}`)" if found else None


def _range(entry: _Schema) -> str:
    bounds = [
        f"{sign} {entry[word]:g}"
        for word, sign in (
            ("minimum", "≥"),
            ("exclusiveMinimum", ">"),
            ("maximum", "≤"),
            ("exclusiveMaximum", "<"),
        )
        if word in entry
    ]
    return f" {' and '.join(bounds)}" if bounds else ""


def _code(value: Any) -> str:
    if isinstance(value, dict) and all(each is None for each in value.values()):
        return "none"
    text = "none" if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if value is None else f"`{text}`"
