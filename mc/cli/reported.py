"""What `tailstep report` computes for a run: all that follows from the configuration that its folder keeps."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from mc.config import ExperimentConfig, config_hash
from mc.config.load import experiment_of
from mc.document.reader import read_text
from mc.errors import InputError

if TYPE_CHECKING:
    from mc.report.html.page import Section
    from mc.results import RunRecord

# Steps to differentiate: of a model that computes and exchanges, of a transformer.
_STEPS, _TRAINING_STEPS = 5_000, 64


def sections_of(record: "RunRecord", *, elasticities: bool = False) -> "list[Section]":
    """Sections on what follows from a run's configuration, and one on what could not be computed."""
    from mc.report import progress
    from mc.report.html.outlook import left_out

    try:
        config = experiment_of(read_text(record.result.resolved_yaml, "manifest.json"))
    except InputError:
        config = None
    if config is None or config_hash(config) != record.result.config_hash:
        # As another version wrote it, its figures may mean something else here.
        reason = "Pictures that follow from the configuration: this version of tailstep reads it otherwise than the one that ran it."
        return left_out([reason])
    if config.serving is not None:
        return []
    found: list[Section] = []
    reasons: list[str] = []
    kind = _barrier if config.model.transformer is None else _transformer
    jobs = [*kind(config, record)]
    if elasticities:
        jobs.append(("what matters", lambda: [_elasticities(config)]))
    with progress("pictures", total=len(jobs)) as advance:
        for name, job in jobs:
            try:
                found += job()
            except InputError as error:
                reasons.append(f"{name[:1].upper()}{name[1:]}: {error}.")
            advance(1)
    return found + left_out(list(dict.fromkeys(reasons)))


Job = tuple[str, "Callable[[], list[Section]]"]


def _barrier(config: ExperimentConfig, record: "RunRecord") -> Iterator[Job]:
    from mc.experiment import outlook
    from mc.report.html.outlook import choice_section, ranks_section, saturation_section

    ranks = outlook.sizes_around(config.ranks)
    known: list[outlook.ChoiceMap | None] = [None]

    def chosen() -> "list[Section]":
        known[0] = outlook.choice_map(config, ranks)
        return []

    def on_more_ranks() -> "list[Section]":
        outlook.check_outlook(config)
        scaled = outlook.scaling(config, ranks, known[0])
        return [ranks_section(outlook.slowest_curve(config), scaled)]

    def with_faster_chips() -> "list[Section]":
        outlook.check_outlook(config)
        congestion = float(record.result.parts["congestion"].mean())
        exchange = outlook.exchange_time(config, known[0])
        return [saturation_section(outlook.saturation(config, exchange, congestion))]

    yield "the fastest algorithm", chosen
    yield "on more ranks", on_more_ranks
    yield "with faster chips", with_faster_chips
    yield "the fastest algorithm", lambda: [] if known[0] is None else [choice_section(known[0])]


def _transformer(config: ExperimentConfig, record: "RunRecord") -> Iterator[Job]:
    from mc.experiment.plan_traffic import plan_load
    from mc.experiment.trace import trace_of_run
    from mc.experiment.training_outlook import plan_curves, plan_saturation, sizes_of_plan
    from mc.parallel import build_plan
    from mc.report.html.outlook import (
        plan_ranks_section,
        plan_saturation_section,
        roofline_section,
        step_section,
    )
    from mc.report.pictures.trace import MOST_PASSES

    plan = build_plan(config)
    passes = 2 * plan.micro_batches * plan.chunks * plan.pp

    def in_time() -> "list[Section]":
        found = trace_of_run(config, record.result.samples) if passes <= MOST_PASSES else None
        return [step_section(found, passes, MOST_PASSES)]

    yield (
        "on more ranks",
        lambda: [plan_ranks_section(plan_curves(config, sizes_of_plan(config)), config.ranks)],
    )
    yield "with faster chips", lambda: [plan_saturation_section(plan_saturation(config))]
    yield "the network roofline", lambda: [roofline_section(plan_load(config))]
    if plan.pp > 1:
        yield "a step in time", in_time


def _elasticities(config: ExperimentConfig) -> "Section":
    from mc.report.html.outlook import elasticities_section
    from mc.sensitivity import sensitivity

    steps = _STEPS if config.model.transformer is None else _TRAINING_STEPS
    run = config.run.model_copy(update={"samples": steps})
    return elasticities_section(sensitivity(config.model_copy(update={"run": run}), steps))
