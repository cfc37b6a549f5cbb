"""Collectives: how long the exchange of a message takes that all ranks take part in, without any jitter.

One algorithm per file states its counts (`base.py`), a machine turns them into seconds (`cost.py`), stages
lay algorithms out on the tiers of a cluster (`stages.py`), phases say what each tier costs (`phases.py`), and
`selection.py` picks the fastest.
"""

from mc.collectives.base import AbstractAlgorithm as AbstractAlgorithm
from mc.collectives.cost import Cost as Cost
from mc.collectives.cost import Counts as Counts
from mc.collectives.cost import Machine as Machine
from mc.collectives.cost import total as total
from mc.collectives.crossover import crossings as crossings
from mc.collectives.crossover import crossover_size as crossover_size
from mc.collectives.envelope import envelope as envelope
from mc.collectives.envelope import soft_minimum as soft_minimum
from mc.collectives.phases import Phase as Phase
from mc.collectives.phases import phases_of as phases_of
from mc.collectives.protocols import family as family
from mc.collectives.registry import ALGORITHMS as ALGORITHMS
from mc.collectives.registry import CollectiveError as CollectiveError
from mc.collectives.registry import algorithms as algorithms
from mc.collectives.selection import Row as Row
from mc.collectives.selection import cost as cost
from mc.collectives.selection import evaluate as evaluate
from mc.collectives.selection import phases as phases
from mc.collectives.selection import plans as plans
from mc.collectives.selection import select as select
from mc.collectives.selection import stages as stages
from mc.collectives.shapes import known_names as known_names
from mc.collectives.stages import Stage as Stage
from mc.config.bus_bandwidth import bus_factor as bus_factor
