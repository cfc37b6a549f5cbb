"""What the catalog knows of a link's protocols: base latencies, latencies per hop, efficiencies.

They are constants of a communication library, fitted by its authors, so whole tables have one source; a figure
of another origin says so itself. Several links share a table: NCCL has one for all networks.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from mc.catalog.figure import BandwidthFigure, Figure, RatioFigure, SizeFigure, Text, TimeFigure
from mc.document import StrictModel, located

# Keys whose value is a figure.
PROTOCOL_FIGURES = (
    "base_latency",
    "hop_latency",
    "inner_hop_latency",
    "efficiency",
    "bandwidth_cap",
    "channel_bandwidth",
    "channel_size",
    "channel_size_per_rank",
)
_FAMILIES = ("ring", "tree", "in_network")


class CorrectionFigures(StrictModel):
    """Factors on the bandwidth, one per doubling of the size.

    Attributes:
        first: the size that the first is for, as a text with its unit.
        factors: for this size, twice as much, and so on.
    """

    first: Text
    factors: Annotated[tuple[float, ...], Field(strict=False, min_length=1)]


class PlateauFigures(StrictModel):
    """A factor on the latency of messages of at least `first` bytes for each channel and rank."""

    factor: Annotated[float, Field(ge=1)]
    first: Text


class FamilyFigures(StrictModel):
    """What differs for one family of algorithms; the fields are those of a configuration."""

    base_latency: TimeFigure | None = None
    hop_latency: TimeFigure | None = None
    inner_hop_latency: TimeFigure | None = None
    efficiency: RatioFigure | None = None
    bandwidth_cap: BandwidthFigure | None = None
    channel_bandwidth: BandwidthFigure | None = None
    channel_size: SizeFigure | None = None
    channel_size_per_rank: SizeFigure | None = None
    correction: CorrectionFigures | None = None
    plateau: PlateauFigures | None = None
    hops: Literal["binary", "chain"] | None = None


class ProtocolFigures(StrictModel):
    """One protocol of a link; the fields are those of a configuration.

    Attributes:
        source: of every figure that is written as a plain value, of the corrections and of the plateau.
        channels: streams in parallel, on the usual node: an estimate, since a library finds them anew on each
            machine.
    """

    name: Text
    source: Text
    base_latency: TimeFigure
    hop_latency: TimeFigure
    efficiency: RatioFigure
    bandwidth_cap: BandwidthFigure | None = None
    channels: Annotated[int, Field(ge=1)] = 1
    channel_bandwidth: BandwidthFigure | None = None
    channel_size: SizeFigure | None = None
    channel_size_per_rank: SizeFigure | None = None
    serves: Annotated[tuple[Literal["ring", "tree", "in-network"], ...], Field(strict=False)]
    ring: FamilyFigures | None = None
    tree: FamilyFigures | None = None
    in_network: FamilyFigures | None = None

    @model_validator(mode="before")
    @classmethod
    def _hand_down_the_source(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not isinstance(data.get("source"), str):
            return data
        whole = _with_source(data, data["source"])
        for family in _FAMILIES:
            if isinstance(whole.get(family), dict):
                whole[family] = _with_source(whole[family], data["source"])
        return whole

    @model_validator(mode="after")
    def _efficiencies(self) -> "ProtocolFigures":
        found = [
            (tuple(key.split(".")), f"expected an efficiency of at most 1; got {figure.value:g}")
            for key, figure in self.figures.items()
            if key.endswith("efficiency") and figure.value > 1
        ]
        if found:
            raise located("ProtocolFigures", found)
        return self

    @property
    def figures(self) -> dict[str, Figure]:
        """Every figure, by its dotted path such as `tree.hop_latency`."""
        found: dict[str, Figure] = {}
        for prefix, each in (("", self), *((f"{key}.", getattr(self, key)) for key in _FAMILIES)):
            if each is not None:
                found |= {
                    f"{prefix}{key}": getattr(each, key)
                    for key in PROTOCOL_FIGURES
                    if getattr(each, key, None)
                }
        return found

    def values(self) -> dict[str, Any]:
        """The mapping that a configuration has, without sources."""
        return _plain(self.model_dump(exclude_none=True, exclude={"source"}), self)


def _with_source(data: dict[str, Any], source: str) -> dict[str, Any]:
    return {
        key: {"value": value, "source": source}
        if key in PROTOCOL_FIGURES and isinstance(value, str | float | int)
        else value
        for key, value in data.items()
    }


def _plain(dumped: dict[str, Any], model: StrictModel) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in dumped.items():
        held = getattr(model, key)
        if isinstance(held, Figure):
            found[key] = held.text
        elif isinstance(held, StrictModel):
            found[key] = _plain(value, held)
        else:
            found[key] = list(value) if isinstance(value, tuple) else value
    return found


class ProtocolTable(StrictModel):
    """The protocols of a kind of link.

    Attributes:
        id: the name that entries of `links.yaml` use.
        name: the full name.
        protocols: by name.
        note: what else a reader has to know.
    """

    id: Text
    name: Text
    protocols: Annotated[tuple[ProtocolFigures, ...], Field(strict=False, min_length=1)]
    note: Text | None = None
