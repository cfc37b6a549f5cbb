"""Logs and tables of measurements, in the formats that people have, as one table.

A file is recognised by its content (`formats.py`), read by one reader for its format, and becomes rows of one
table (`columns.py`) with a report of what was understood, inferred, skipped and contradictory
(`understood.py`). Nothing is guessed in silence, nothing unpickled, and no environment is kept.
"""

from mc.logs.columns import COLUMNS as COLUMNS
from mc.logs.columns import SCHEMA as SCHEMA
from mc.logs.columns import Column as Column
from mc.logs.errors import LogError as LogError
from mc.logs.formats import FORMATS as FORMATS
from mc.logs.hints import Hints as Hints
from mc.logs.names import ENGINE_ALGORITHMS as ENGINE_ALGORITHMS
from mc.logs.nccl_tuning import Prior as Prior
from mc.logs.read import Imported as Imported
from mc.logs.read import read_logs as read_logs
from mc.logs.table import MeasurementTable as MeasurementTable
from mc.logs.table import TableBuilder as TableBuilder
from mc.logs.table import read_table as read_table
from mc.logs.table import write_table as write_table
from mc.logs.tuner import Choice as Choice
from mc.logs.tuner import write_tuner as write_tuner
from mc.logs.understood import Skipped as Skipped
from mc.logs.understood import UnderstoodFile as UnderstoodFile
from mc.logs.understood import UnderstoodTable as UnderstoodTable
