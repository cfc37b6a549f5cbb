"""Chips and links with published figures, each figure with its source or marked as an estimate.

The figures are data (`data/chips.yaml`, `data/links.yaml`), so that a correction is one line with its reason
beside it; the code reads them into frozen models in SI units. What a figure means, above all which latency a
link's is, is written down in `docs/catalog.md`.
"""

from mc.catalog.chip import Chip as Chip
from mc.catalog.efficiency import EfficiencyFigures as EfficiencyFigures
from mc.catalog.figure import Figure as Figure
from mc.catalog.link import LinkFigures as LinkFigures
from mc.catalog.load import UnknownName as UnknownName
from mc.catalog.load import chip as chip
from mc.catalog.load import chips as chips
from mc.catalog.load import link as link
from mc.catalog.load import links as links
from mc.catalog.protocol import PROTOCOL_FIGURES as PROTOCOL_FIGURES
from mc.catalog.protocol import ProtocolFigures as ProtocolFigures
from mc.catalog.protocol import ProtocolTable as ProtocolTable
