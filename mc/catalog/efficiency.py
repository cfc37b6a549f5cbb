"""What chips of a generation reach of their peaks, with the origin of each figure.

The figures of a set are fitted together, so a set has one `source`, which its plain values share; a figure of another
origin says so itself. Chips name the set of their generation.
"""

from typing import Annotated, Any

from pydantic import Field, model_validator

from mc.catalog.figure import Figure, RatioFigure, Text, TimeFigure
from mc.document import StrictModel

_RATIOS = ("half_area", "half_depth", "attention", "memory", "overlap")
_TIMES = ("kernel", "launch", "collective_launch", "pass_launch", "wait", "step")


class EfficiencyFigures(StrictModel):
    """One set; the fields are those of `EfficiencyConfig`.

    Attributes:
        id: the name that entries of `chips.yaml` use.
        name: which chips it is of.
        source: of every figure that is written as a plain value; None if each has its own.
        estimate: in its place, why they were chosen and how far off they may be.
        note: what else a reader has to know.
    """

    id: Text
    name: Text
    source: Text | None = None
    estimate: Text | None = None
    matmul: Annotated[dict[str, RatioFigure], Field(min_length=1)]
    half_area: RatioFigure
    half_depth: RatioFigure
    attention: RatioFigure
    memory: RatioFigure
    kernel: TimeFigure
    launch: TimeFigure
    collective_launch: TimeFigure
    pass_launch: TimeFigure
    wait: TimeFigure
    step: TimeFigure
    overlap: RatioFigure
    note: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _hand_down_the_origin(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        origin = {key: data[key] for key in ("source", "estimate") if isinstance(data.get(key), str)}
        if len(origin) != 1:
            return data

        def figure(value: Any) -> Any:
            return {"value": value, **origin} if isinstance(value, str | float | int) else value

        whole = {key: figure(value) if key in (*_RATIOS, *_TIMES) else value for key, value in data.items()}
        if isinstance(whole.get("matmul"), dict):
            whole["matmul"] = {key: figure(value) for key, value in whole["matmul"].items()}
        return whole

    @property
    def figures(self) -> dict[str, Figure]:
        """Every figure, by its dotted path such as `matmul.bf16`."""
        found = {f"matmul.{key}": figure for key, figure in self.matmul.items()}
        return found | {key: getattr(self, key) for key in (*_RATIOS, *_TIMES)}

    def values(self) -> dict[str, Any]:
        """The mapping that a configuration has, without origins."""
        found: dict[str, Any] = {"matmul": {key: each.value for key, each in self.matmul.items()}}
        found |= {key: getattr(self, key).value for key in _RATIOS}
        return found | {key: getattr(self, key).text for key in _TIMES}
