"""From nodes to models: every objection at its place, with a suggestion."""

from typing import Annotated, Literal

import pytest
from pydantic import Field, ValidationError, model_validator

from mc.document import ConfigError, StrictModel, did_you_mean, located, read_text, validate


class Circle(StrictModel):
    """A member of a union."""

    family: Literal["circle"]
    radius: Annotated[float, Field(gt=0)]


class Square(StrictModel):
    """Another."""

    family: Literal["square"]
    side: Annotated[float, Field(gt=0)]


class Item(StrictModel):
    """An item of a list."""

    name: str
    count: Annotated[int, Field(ge=1)] = 1
    shape: Annotated[Circle | Square, Field(discriminator="family")] | None = None

    @model_validator(mode="after")
    def _check(self) -> "Item":
        if self.name == "bad":
            raise located("Item", [(("name",), "bad name"), (("count",), "bad count")])
        return self


class Top(StrictModel):
    """The whole."""

    items: Annotated[tuple[Item, ...], Field(strict=False, min_length=1)]
    colour: Literal["red", "green"] = "red"


def test_a_good_document_becomes_a_frozen_model():
    top = validate(read_text("items: [{name: x, shape: {family: circle, radius: 2}}]\n", "f.yaml"), Top)
    assert top.items[0].shape == Circle(family="circle", radius=2.0)
    with pytest.raises(ValidationError, match="frozen"):
        top.colour = "green"


REFUSED = [
    ("items: [{nme: x, name: y}]", "f.yaml:1:10: items.0.nme: unknown key; did you mean `name`?"),
    ("items: [{name: y}]\nzzz: 1", "f.yaml:2:1: zzz: unknown key; expected one of items, colour"),
    ("items: [{count: 2}]", "f.yaml:1:9: items.0.name: missing key; `name` has to be given"),
    ("colour: red", "f.yaml:1:1: items: missing key; `items` has to be given"),
    ("items: [{name: 3}]", "f.yaml:1:16: items.0.name: expected a text; got 3"),
    ("items: [{name: x, count: 0}]", "f.yaml:1:26: items.0.count: expected at least 1; got 0"),
    ("items: [{name: x, count: 2.5}]", "f.yaml:1:26: items.0.count: expected an integer; got 2.5"),
    ("items: [{name: x, count: true}]", "f.yaml:1:26: items.0.count: expected an integer; got true"),
    ("items: [{name: x, count: '2'}]", "f.yaml:1:26: items.0.count: expected an integer; got '2'"),
    ("items: [{name: x, count: }]", "f.yaml:1:19: items.0.count: expected an integer; got nothing"),
    ("items: []", "f.yaml:1:8: items: expected at least one item; got a list of 0"),
    ("items: {a: b}", "f.yaml:1:8: items: expected a list; got a mapping"),
    ("items: [7]", "f.yaml:1:9: items.0: expected a mapping; got 7"),
    (
        "items: [{name: x}]\ncolour: gre",
        "f.yaml:2:9: colour: unknown name `gre`; did you mean `green`? (one of red, green)",
    ),
    (
        "items: [{name: x}]\ncolour: blue",
        "f.yaml:2:9: colour: unknown name `blue`; expected one of red, green",
    ),
    (
        "items: [{name: x, shape: {family: circl, radius: 1}}]",
        "f.yaml:1:35: items.0.shape.family: unknown name `circl`; "
        "did you mean `circle`? (one of circle, square)",
    ),
    (
        "items: [{name: x, shape: {radius: 1}}]",
        "f.yaml:1:19: items.0.shape: missing key; `family` has to be given",
    ),
    (
        "items: [{name: x, shape: {family: circle, radus: 1}}]",
        "f.yaml:1:43: items.0.shape.radus: unknown key; did you mean `radius`?",
    ),
    (
        "items: [{name: x, shape: {family: square, side: 0}}]",
        "f.yaml:1:49: items.0.shape.side: expected more than 0; got 0",
    ),
    ("items: [{name: bad, count: 3}]", "f.yaml:1:16: items.0.name: bad name"),
    ("items: [{name: bad, count: 3}]", "f.yaml:1:28: items.0.count: bad count"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refused_at_its_place(text, message):
    with pytest.raises(ConfigError) as error:
        validate(read_text(text, "f.yaml"), Top)
    assert message in str(error.value).splitlines()


def test_everything_is_reported_at_once():
    text = "items:\n  - {name: 1}\n  - {nam: x}\n  - {name: x, count: 0}\ncolor: red\n"
    with pytest.raises(ConfigError) as error:
        validate(read_text(text, "f.yaml"), Top)
    assert [problem.position.line for problem in error.value.problems] == [2, 3, 3, 4, 5]


SUGGESTIONS = [
    ("latncy", ["latency", "bandwidth"], "did you mean `latency`?"),
    ("FAN-OUT", ["fan_out", "name"], "did you mean `fan_out`?"),
    ("h100", ["A100-SXM", "H100-SXM"], "did you mean `H100-SXM`?"),
    ("qqq", ["alpha", "beta"], "expected one of alpha, beta"),
    ("qqq", [], "there are none"),
    ("qqq", [f"name{i}" for i in range(20)], "(and 8 more)"),
]


@pytest.mark.parametrize(("name", "known", "text"), SUGGESTIONS)
def test_suggestions(name, known, text):
    assert text in did_you_mean(name, known)
