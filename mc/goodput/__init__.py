"""How much of a job's time makes it go forward, when chips fail."""

from mc.goodput.checkpoints import best_interval as best_interval
from mc.goodput.failures import Failures as Failures
from mc.goodput.failures import build_failures as build_failures
from mc.goodput.goodput import Goodput as Goodput
from mc.goodput.goodput import goodput as goodput
from mc.goodput.spares import waiting_share as waiting_share
