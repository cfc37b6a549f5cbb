"""The JSON Schemas for editors, and the files that point to them."""

import json
import os
import re

import pytest

from mc.config import KINDS, json_schema, load_any
from mc.config.calibration import is_calibration
from mc.config.load import MODELS
from mc.config.names import FILE_KINDS
from mc.config.shipped import directory

SHIPPED = sorted(path for path in directory().rglob("*.yaml"))
IDS = [str(path.relative_to(directory())) for path in SHIPPED]


@pytest.mark.parametrize("kind", FILE_KINDS)
def test_the_shipped_schema_is_in_step(kind):
    """To bring it into step: `tailstep schema KIND > configs/schema/KIND.json`."""
    assert json.loads((directory() / "schema" / f"{kind}.json").read_text()) == json_schema(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_it_knows_the_keys_of_the_model_and_refuses_others(kind):
    schema = json_schema(kind)
    # A sweep is a block of its own beside the experiment's keys.
    beside = {"extends", "sweep"} if kind == "experiment" else {"extends"}
    assert set(schema["properties"]) == {*MODELS[kind].model_fields, *beside}
    assert schema["additionalProperties"] is False
    assert (
        all(each["additionalProperties"] is False for each in schema["$defs"].values())
        if "$defs" in schema
        else True
    )


def test_quantities_carry_a_pattern_that_agrees_with_the_parser():
    bandwidth = json_schema("cluster")["$defs"]["LinkConfig"]["properties"]["bandwidth"]
    assert re.search(bandwidth["pattern"], "900 GB/s")
    assert re.search(bandwidth["pattern"], "800Gbps")
    for wrong in ("900", "900 gb/s", "900 GB", "GB/s", "1,5 GB/s"):
        assert not re.search(bandwidth["pattern"], wrong)


def test_references_may_be_text_or_inline():
    forms = json_schema("experiment")["properties"]["cluster"]["anyOf"]
    assert forms[0]["type"] == "string"
    assert forms[1] == {"$ref": "#/$defs/ClusterConfig"}


@pytest.mark.parametrize("path", SHIPPED, ids=IDS)
def test_shipped_files_point_to_the_schema_of_their_kind(path):
    first = path.read_text().splitlines()[0]
    kind = "calibration" if is_calibration(path) else load_any(path)[0]
    target = os.path.relpath(directory() / "schema" / f"{kind}.json", path.parent)
    assert first == f"# yaml-language-server: $schema={target}"
