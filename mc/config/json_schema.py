"""JSON Schemas of the files, for editors: completion, hints on hover, a red line under a misspelt key.

They are pydantic's, changed where files are more liberal than models: a mapping may inherit keys with
`extends` (so nothing outside a list is required), an experiment may refer to other files, and samples may be
in a file. `tailstep validate` has the last word.
"""

from typing import Any

from mc.config.calibration import CalibrationConfig
from mc.config.load import MODELS
from mc.config.names import FileKind
from mc.config.references import REFERENCES
from mc.config.shipped import names
from mc.config.sweep import SweepConfig

# Items of lists are never merged, so they are complete and their keys stay required.
_ITEMS = (
    *("TierConfig", "ExceptionConfig", "LevelConfig", "LinkStateConfig", "ProtocolConfig"),
    *("PersistentConfig", "TransientConfig", "RequestConfig"),
)
_EXTENDS = {
    "type": "string",
    "description": "A file to inherit from: a path relative to this file, or the name of a shipped one.",
}
_SAMPLES = {
    "file": {
        "type": "string",
        "description": "A CSV file of samples, relative to this file; stands for `samples`.",
    },
    "column": {"type": "string", "description": "Its column, where it has several."},
    "unit": {
        "type": "string",
        "description": "The unit of its cells, where they are bare numbers.",
        "examples": ["us", "ms"],
    },
}
_TRACE = {
    "type": "string",
    "description": "A CSV file with a row for each request, columns `prompt` and `output`; stands for a list.",
}


def json_schema(kind: FileKind) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a kind of file."""
    if kind == "calibration":
        schema = CalibrationConfig.model_json_schema()
        # A path alone stands for all defaults of a free figure.
        listed = schema["$defs"]["FitConfig"]["properties"]["free"]["anyOf"][0]
        listed["items"] = {"anyOf": [{"type": "string"}, listed["items"]]}
        return _headed(schema, kind)
    schema = MODELS[kind].model_json_schema()
    definitions = schema.get("$defs", {})
    for name, definition in definitions.items():
        if name not in _ITEMS:
            definition.pop("required", None)
        if name.endswith("EmpiricalDelay"):
            definition["properties"] |= _SAMPLES
        if name == "RequestLawConfig":
            definition["properties"] |= {"file": _TRACE}
    schema.pop("required", None)
    schema["properties"] = {"extends": _EXTENDS, **schema["properties"]}
    if kind == "experiment":
        block = SweepConfig.model_json_schema(by_alias=True)
        definitions |= block.pop("$defs", {})
        schema["$defs"] = definitions
        schema["properties"]["sweep"] = block
        for reference in REFERENCES:
            inline = schema["properties"][reference]
            target = definitions[inline["$ref"].rpartition("/")[2]]
            target["properties"] = {"extends": _EXTENDS, **target["properties"]}
            description = (
                f"The {reference}: a path relative to this file, the name of a shipped one, or inline."
            )
            text = {"type": "string", "examples": names(reference)}
            schema["properties"][reference] = {"anyOf": [text, inline], "description": description}
    return _headed(schema, kind)


def _headed(schema: dict[str, Any], kind: FileKind) -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": f"tailstep {kind} file",
    }
