"""The calibrated cluster as a file: complete, in the schema of clusters, each fitted figure with its interval.

The file is the resolved configuration, so it stands alone and every verb that takes a cluster takes it. What a fit found
out about a figure stands behind it as a comment; what was fitted to what, and how well, at the top.
"""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ruamel.yaml import YAML

from mc.calibration.fit import LEVEL, Fit
from mc.calibration.identify import identify
from mc.config import resolved_yaml
from mc.units import format_quantity

_WIDTH = 4096


def calibrated_yaml(fit: Fit, intervals: NDArray[np.float64], command: str | None = None) -> str:
    """The text of the file.

    Args:
        fit: what to write.
        intervals: low, fitted and high of every parameter.
        command: that makes it anew.
    """
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = _WIDTH
    text = resolved_yaml(fit.calibrated)
    document = yaml.load(text)
    known = identify(fit.covariance)
    for place, (each, (low, _, high)) in enumerate(zip(fit.parameters.items, intervals, strict=True)):

        def shown(value: float, dimension: Any = each.dimension) -> str:
            return format_quantity(float(value), dimension, digits=3)

        source = {
            "data": "from the data",
            "both": "from data and prior",
            "prior": "the prior: data leave it free",
        }
        note = (
            f"{100 * LEVEL:.0f} %: {shown(low)} .. {shown(high)}, prior {shown(each.center)}; "
            f"{source[known.learnt(place)]}"
        )
        for path in each.paths:
            _comment(document, path.split("."), note)
    stream = io.StringIO()
    yaml.dump(document, stream)
    return "\n".join([*(f"# {line}" for line in _heading(fit, command)), stream.getvalue()])


def _heading(fit: Fit, command: str | None) -> Sequence[str]:
    rows = sum(len(curve.sizes) for curve in fit.curves)
    files = ", ".join(dict.fromkeys(source for curve in fit.curves for source in curve.sources))
    lines = [
        f"{fit.config.name}, calibrated to {rows} measured times" + (f" from {files}." if files else ".")
    ]
    lines += [f"  {curve.label}: {len(curve.sizes)} sizes" for curve in fit.curves]
    lines.append(f"Scatter around the model: {100 * fit.sigma:.1f} %.")
    if fit.held_out is not None:
        found = fit.held_out.errors
        lines.append(
            f"Sizes held out: median error {100 * float(sorted(found)[len(found) // 2]):.1f} %, mean {100 * found.mean():.1f} %."
        )
    return [*lines, *([f"Made by: {command}"] if command else [])]


def _comment(node: Any, keys: list[str], text: str) -> None:
    *way, last = keys
    for key in way:
        node = _item(node, key) if isinstance(node, list) else node[key]
    node.yaml_add_eol_comment(text, last)


def _item(items: list[Any], key: str) -> Any:
    return next((item for item in items if item.get("name") == key), None) or items[int(key)]
