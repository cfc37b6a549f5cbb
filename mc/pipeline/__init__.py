"""Pipelines: in which order stages work, and when they are done.

`order` says what a schedule is, one file each has GPipe, 1F1B and interleaved 1F1B, ZB-H1 and DualPipe, and `registry`
finds them by name; `levels` and `timetable` lay them out for `executor`, which runs the (max, +) recursion on batches of
random durations (`draws`); `makespan` runs it once, without noise, `replay` for a few pipelines with all that happens in them,
`critical` for many sets of durations; `bubble` has the closed forms.
"""

from mc.pipeline.bubble import bubble as bubble
from mc.pipeline.bubble import bubble_fraction as bubble_fraction
from mc.pipeline.critical import critical as critical
from mc.pipeline.draws import Draws as Draws
from mc.pipeline.draws import draws_of as draws_of
from mc.pipeline.draws import normal_from_word as normal_from_word
from mc.pipeline.durations import Fixed as Fixed
from mc.pipeline.durations import by_kind as by_kind
from mc.pipeline.executor import batch_for as batch_for
from mc.pipeline.executor import completion as completion
from mc.pipeline.finish import Finish as Finish
from mc.pipeline.levels import in_levels as in_levels
from mc.pipeline.levels import levels_of as levels_of
from mc.pipeline.makespan import makespan as makespan
from mc.pipeline.makespan import makespan_of as makespan_of
from mc.pipeline.memory import in_flight as in_flight
from mc.pipeline.order import Kind as Kind
from mc.pipeline.order import Order as Order
from mc.pipeline.order import PipelineError as PipelineError
from mc.pipeline.registry import SCHEDULES as SCHEDULES
from mc.pipeline.registry import order_of as order_of
from mc.pipeline.replay import Replay as Replay
from mc.pipeline.replay import replay as replay
from mc.pipeline.timetable import Rows as Rows
from mc.pipeline.timetable import Timetable as Timetable
from mc.pipeline.timetable import timetable_of as timetable_of
from mc.pipeline.transfer import Transfer as Transfer
