"""One step: everybody computes, everybody exchanges, and the slowest decides.

`compute` has the law of the slowest rank's compute time, `exchange` that of each phase of the collective,
`step` puts them one after the other and draws.
"""

from mc.step.compute import Compute as Compute
from mc.step.exchange import ExchangePhase as ExchangePhase
from mc.step.exchange import congestion_law as congestion_law
from mc.step.step import PARTS as PARTS
from mc.step.step import Step as Step
from mc.step.step import StepDraws as StepDraws
