"""Schedules: who sends what to whom in which round, as arrays.

`build` makes the schedule of an algorithm, `execute` carries it out on real numbers, `counts` counts its
rounds and bytes. Nothing here knows of time; `mc.timing` does.
"""

from mc.schedules.counts import ScheduleCounts as ScheduleCounts
from mc.schedules.counts import counts as counts
from mc.schedules.execute import execute as execute
from mc.schedules.hierarchical import stages as stages
from mc.schedules.registry import HIERARCHICAL as HIERARCHICAL
from mc.schedules.registry import SCHEDULES as SCHEDULES
from mc.schedules.registry import build as build
from mc.schedules.schedule import Schedule as Schedule
from mc.schedules.schedule import ScheduleError as ScheduleError
