"""Experiments that advice is about another step than."""

from mc.config import ExperimentConfig
from mc.errors import InputError


class StepError(InputError):
    """A step that is not looked at without noise and plan by plan."""


def check_step(config: ExperimentConfig) -> None:
    """Refuses experiments whose replicas exchange seldom or late: plans and figures are weighed by steps that end with an exchange.

    Raises:
        StepError: it is one of these, or serves.
    """
    if config.serving is not None:
        raise StepError("expected an experiment with a `plan`, of training; this one has `serving`")
    for name in ("local_steps", "delayed_sync"):
        if getattr(config.mitigations, name):
            raise StepError(
                f"mitigations.{name}: expected none, since advice is about steps that end with an exchange; "
                f"got {getattr(config.mitigations, name)}"
            )
