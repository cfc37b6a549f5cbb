"""What a run produced, and how it is kept: two Parquet tables and a manifest in a folder of its own."""

from mc.results.folder import check_folder as check_folder
from mc.results.model import ModelIntervals as ModelIntervals
from mc.results.record import Machine as Machine
from mc.results.record import RunRecord as RunRecord
from mc.results.record import RunResult as RunResult
from mc.results.serving import ServingSummary as ServingSummary
from mc.results.store import read_run as read_run
from mc.results.store import write_run as write_run
from mc.results.trace import Slice as Slice
from mc.results.trace import Trace as Trace
from mc.results.training import GoodputSummary as GoodputSummary
from mc.results.training import TrainingSummary as TrainingSummary
