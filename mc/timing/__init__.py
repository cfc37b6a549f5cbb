"""Schedules in time: when a collective is complete, as a distribution.

`program` makes a schedule ready, `links` says what messages meet, `executor` runs the (max, +) recursion on
samples; `switch_tree` has the law of in-network collectives without sampling, `rings` the growth of rings
that are too large to run.
"""

from mc.timing.executor import completion as completion
from mc.timing.links import Disturbance as Disturbance
from mc.timing.links import Links as Links
from mc.timing.program import Program as Program
from mc.timing.program import program_of as program_of
from mc.timing.switch_tree import SwitchTier as SwitchTier
from mc.timing.switch_tree import gather_law as gather_law
from mc.timing.switch_tree import round_trip_law as round_trip_law
