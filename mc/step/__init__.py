"""One step: everybody computes, everybody exchanges, and the slowest decides.

`compute` has the law of the slowest rank's compute time, from its persistent (`persistent`) and its shared transient
(`shared_noise`) parts; `step` puts it and the phases of the exchange (`mc.exchange`) one after the other and draws.
Mitigations of stragglers change who is waited for (`waiting`) and when (`delayed`); `mitigated` draws such steps.
"""

from mc.step.compute import Compute as Compute
from mc.step.compute import needs_every_rank as needs_every_rank
from mc.step.delayed import late_exchanges as late_exchanges
from mc.step.delayed import warm_up as warm_up
from mc.step.mitigated import MitigatedStep as MitigatedStep
from mc.step.persistent import Classes as Classes
from mc.step.persistent import Persistent as Persistent
from mc.step.persistent import draw_classes as draw_classes
from mc.step.persistent import factors as factors
from mc.step.shared_noise import SharedNoise as SharedNoise
from mc.step.step import PARTS as PARTS
from mc.step.step import Step as Step
from mc.step.step import StepDraws as StepDraws
from mc.step.waiting import Waiting as Waiting
from mc.step.waiting import build_waiting as build_waiting
from mc.step.waiting import without_slowest as without_slowest
