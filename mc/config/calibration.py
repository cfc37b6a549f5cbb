"""The file of a calibration: which cluster is fitted to which data, what is free, and what was believed before.

    cluster: dgx-h100-superpod
    calibration:
      data: [nccl-2x8.log, nccl-4x8.log]     # beside this file
      free:
        - tiers.node.link.bandwidth
        - {path: tiers.unit.link.latency, prior: 3 us, spread: 0.3}
        - {path: [tiers.unit.link.bandwidth, tiers.pod.link.bandwidth]}

References are as in an experiment: a relative path that ends in `.yaml`, or the name of a shipped cluster.
"""

import os
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from mc.config import shipped
from mc.config.names import SchemaVersion
from mc.config.quantities import PositiveRatio
from mc.document import Document, StrictModel, read, validate

Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]


class FreeConfig(StrictModel):
    """One free parameter; a path alone stands for all defaults.

    Attributes:
        path: where the figure stands in the cluster; several places share one value.
        prior: centre of the prior, with its unit; what the cluster says if left out.
        spread: standard deviation of the prior, of the logarithm or the log-odds; by the kind of figure if left
            out.
    """

    path: Text | Annotated[tuple[Text, ...], Field(strict=False, min_length=1)]
    prior: Text | float | None = None
    spread: PositiveRatio | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_path(cls, data: Any) -> Any:
        return {"path": data} if isinstance(data, str) else data

    @property
    def paths(self) -> tuple[str, ...]:
        """All of them."""
        return (self.path,) if isinstance(self.path, str) else self.path


class FitConfig(StrictModel):
    """What to fit, to what, and how.

    Attributes:
        data: logs and tables, relative to the file.
        free: the parameters; all that the data depend on if left out.
        algorithms: what the library chose from, where the data do not say.
        collective: if the data do not say.
        ranks: likewise.
        nodes: likewise.
        starts: descents from different places.
        steps: most steps of a descent.
        seed: of starts and refits.
        bootstrap: refits for the intervals; 0 for Laplace's.
    """

    data: Annotated[tuple[Text, ...], Field(strict=False, min_length=1)]
    free: Annotated[tuple[FreeConfig, ...], Field(strict=False, min_length=1)] | None = None
    algorithms: Annotated[tuple[Text, ...], Field(strict=False, min_length=1)] | None = None
    collective: Text | None = None
    ranks: Count | None = None
    nodes: Count | None = None
    starts: Annotated[int, Field(ge=1, le=1000)] = 4
    steps: Annotated[int, Field(ge=1, le=10_000)] = 60
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    bootstrap: Annotated[int, Field(ge=0, le=100_000)] = 0


class CalibrationConfig(StrictModel):
    """A cluster and what to fit it to.

    Attributes:
        cluster: a file, or the name of a shipped one.
        calibration: the fit.
    """

    schema_version: SchemaVersion = 1
    cluster: Text
    calibration: FitConfig


def load_calibration(path: str | os.PathLike[str]) -> CalibrationConfig:
    """The calibration of a file, with the cluster and the data as paths from the working directory.

    Raises:
        ConfigError: with everything that is wrong, each at its place.
    """
    document: Document = read(path)
    found = validate(document, CalibrationConfig)
    node = document.root.child("cluster")
    assert node is not None
    folder = Path(path).parent
    return found.model_copy(
        update={
            "cluster": os.fspath(shipped.finder("cluster")(found.cluster, node.position)),
            "calibration": found.calibration.model_copy(
                update={"data": tuple(os.fspath(folder / each) for each in found.calibration.data)}
            ),
        }
    )
