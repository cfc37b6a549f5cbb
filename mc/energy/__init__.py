"""Joules of a step: chips, hosts, and each tier's links, whether they move bits or wait; watts of a facility.

`step` is arithmetic on a step's time and a plan's bytes, without JAX; `mc.experiment.energy` has it of an experiment.
"""

from mc.energy.step import EnergyError as EnergyError
from mc.energy.step import Facility as Facility
from mc.energy.step import StepEnergy as StepEnergy
from mc.energy.step import TierEnergy as TierEnergy
from mc.energy.step import chips_within as chips_within
from mc.energy.step import design as design
from mc.energy.step import step_energy as step_energy
