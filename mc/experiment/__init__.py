"""One experiment, from its configuration to its result.

`run` draws and estimates, whatever the experiment is. A model that computes and exchanges is made by `build` (`build_mitigated`
where something is done about stragglers); a transformer by `quiet_step` and `build_training`, drawn by `training_draws`,
`training_steps` and `run_training`; a server by `build_serving`, drawn by `run_serving`; `training_summary` and
`serving_summary` say what samples come to. Of one sampled step `trace` and the files that begin with it make a timeline. `scale`,
`mitigations`, `outlook`, `training_outlook`, `energy`, `plan_traffic` and `serving_front` answer one question each.
"""

from mc.experiment.build import Built as Built
from mc.experiment.build import build as build
from mc.experiment.build import build_step as build_step
from mc.experiment.run import run as run
