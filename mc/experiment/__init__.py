"""One experiment, from its configuration to its result: `build_step` makes the modules, `run` draws and estimates."""

from mc.experiment.build import Built as Built
from mc.experiment.build import build as build
from mc.experiment.build import build_step as build_step
from mc.experiment.run import run as run
