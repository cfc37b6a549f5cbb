"""The file of a calibration: what is fitted to which data, what is free, and what was believed before.

    cluster: dgx-h100-superpod
    calibration:
      data: [nccl-2x8.log, nccl-4x8.log]     # beside this file
      free:
        - tiers.node.link.bandwidth
        - {path: tiers.unit.link.latency, prior: 3 us, spread: 0.3}
        - {path: [tiers.unit.link.bandwidth, tiers.pod.link.bandwidth]}

To step times an experiment is fitted; its paths begin at its own root, `cluster.noise.spread.sigma`:

    experiment: job.yaml
    calibration:
      data: [steps.csv]
      hold_out: ranks > 512

References are as in an experiment: a relative path that ends in `.yaml`, or the name of a shipped file.
"""

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from mc.config import shipped
from mc.config.hold_out import parse_hold_out
from mc.config.load import load_cluster, load_experiment
from mc.config.names import Kind, SchemaVersion
from mc.config.quantities import PositiveRatio, PositiveSize
from mc.document import ConfigError, Document, Problem, StrictModel, is_file, located, read, validate

Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
_FITTED: tuple[Kind, ...] = ("cluster", "experiment")


class FreeConfig(StrictModel):
    """One free parameter; a path alone stands for all defaults.

    Attributes:
        path: where the figure stands in the cluster, or the experiment; several places share one value.
        prior: centre of the prior, with its unit; what the file says if left out.
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
        hold_out: which rows are kept from the fit and scored: `none`, `every 4`, `20 %`, `ranks > 8`, `ranks = 8, 16`,
            `nodes > 4`, `size > 16 MiB`, `file = b.log`. Without, curves are scored on every other size before all are fitted,
            and step times are not scored.
        forecast: numbers of ranks to forecast step times of.
        scaling: what stays from one number of ranks to another, where a table does not say how a transformer was spread: the
            work of a replica (`weak`), or that of all (`strong`).
        posterior: how intervals are found without `bootstrap`: by Laplace's approximation, or by draws (`nuts`).
        second_network: size from which on curves may be fitted by a network with figures of its own, if that forecasts better.
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
    hold_out: Text | None = None
    forecast: Annotated[tuple[Count, ...], Field(strict=False)] = ()
    scaling: Literal["weak", "strong"] = "weak"
    posterior: Literal["laplace", "nuts"] = "laplace"
    second_network: PositiveSize | None = None

    @field_validator("hold_out")
    @classmethod
    def _is_a_rule(cls, text: str | None) -> str | None:
        if text is not None:
            parse_hold_out(text)
        return text


class CalibrationConfig(StrictModel):
    """What to fit, and to what.

    Attributes:
        cluster: a file, or the name of a shipped one: fitted to collectives.
        experiment: likewise, instead: fitted to step times.
        calibration: the fit.
    """

    schema_version: SchemaVersion = 1
    cluster: Text | None = None
    experiment: Text | None = None
    calibration: FitConfig

    @model_validator(mode="after")
    def _one_of_them(self) -> "CalibrationConfig":
        if (self.cluster is None) == (self.experiment is None):
            got = "both" if self.cluster is not None else "neither"
            text = f"expected a `cluster` (for collectives) or an `experiment` (for step times); got {got}"
            raise located("CalibrationConfig", [((), text)])
        return self


def load_calibration(path: str | os.PathLike[str]) -> CalibrationConfig:
    """The calibration of a file, with the cluster or the experiment and the data as paths from the working directory.

    Raises:
        ConfigError: with everything that is wrong, each at its place.
    """
    document: Document = read(path)
    found = validate(document, CalibrationConfig)
    changed: dict[str, Any] = {}
    for kind in _FITTED:
        node, name = document.root.child(kind), getattr(found, kind)
        if node is not None and name is not None:
            changed[kind] = os.fspath(shipped.finder(kind)(name, node.position))
    folder = Path(path).parent
    data = tuple(os.fspath(folder / each) for each in found.calibration.data)
    return found.model_copy(
        update={**changed, "calibration": found.calibration.model_copy(update={"data": data})}
    )


def check_calibration(path: str | os.PathLike[str]) -> CalibrationConfig:
    """The same, and whether what it names can be read, data not looked into.

    Raises:
        ConfigError: likewise.
    """
    found = load_calibration(path)
    if found.cluster is not None:
        load_cluster(found.cluster)
    if found.experiment is not None:
        load_experiment(found.experiment)
    node = (read(path).root.child("calibration") or read(path).root).child("data")
    items = node.value if node is not None and isinstance(node.value, list) else []
    missing = [
        Problem(items[place].position, f"calibration.data.{place}", f"no such file: `{name}`")
        for place, name in enumerate(found.calibration.data)
        if not os.path.exists(name)
    ]
    if missing:
        raise ConfigError(missing)
    return found


def is_calibration(path: str | os.PathLike[str]) -> bool:
    """Whether a file says that it is one of a calibration; what cannot be read is none."""
    name = os.fspath(path)
    if not is_file(Path(name)):
        return False
    return "calibration" in (read(name).root.mapping or {})
