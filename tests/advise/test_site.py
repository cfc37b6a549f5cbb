"""The plans that fill a facility against all of them, one by one, by time and by energy."""

import itertools

import pytest

from mc.advise.search import search
from mc.advise.site import best_plans, fill, job_size, joules, least_computing
from mc.advise.space import ZERO, Candidate, Refused, space_of
from mc.config import load_experiment
from mc.energy import EnergyError, Facility, design
from mc.experiment.energy import experiment_energy, plan_energy
from mc.fabric import build_cluster
from mc.parallel import make_plan, memory
from mc.report.site import shares, site_json
from mc.training import build_chip, build_prices, computing, evaluate
from tests.advise.test_budget import TEXT


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    file = tmp_path_factory.mktemp("site") / "little.yaml"
    file.write_text(TEXT.replace("power: 500 W", "memory_size: 3 GB, power: 500 W"))
    return load_experiment(str(file))


@pytest.fixture(scope="module")
def job(config):
    watts = design(config.cluster).watts_per_rank
    return fill(config, Facility(4.9 * watts * 1.25, 1.25))


def test_the_most_chips(config, job):
    # Whole nodes of 2 and replicas of 2.
    assert (job.chips, job.config.ranks, job.config.plan.global_batch) == (4, 4, 4)
    assert sum(shares(job.facility, job.design).values()) == pytest.approx(1)
    assert shares(job.facility, job.design)["reserve"] == pytest.approx(0.9 / 4.9)
    assert shares(job.facility, job.design)["facility"] == pytest.approx(0.25 * 4 / 1.25 / 4.9)
    more = Facility(2 * job.facility.budget, 1.25)
    assert fill(config, more).config.plan.global_batch == 8
    assert fill(config, more, "strong").config.plan.global_batch == 4
    with pytest.raises(EnergyError, match="expected the power of 2 chips, whole nodes and whole replicas"):
        fill(config, Facility(1000, 1.25))


def test_sizes_that_divide():
    assert job_size(729_600, 128) == 720_896 == 2**16 * 11
    assert job_size(16_384, 128) == 16_384
    assert job_size(100, 7) == 98
    for chips in (1000, 12_345, 99_999):
        assert 0.98 * chips - 8 < job_size(chips, 8) <= chips


@pytest.fixture(scope="module")
def every(job):
    """All plans that fit, with their seconds and those of computing."""
    config, space = job.config, space_of(job.config)
    chip, prices = build_chip(config.cluster.chip), build_prices(build_cluster(config.cluster))
    plans = []
    for mapping, layouts in space.mappings(Refused()):
        for choice in itertools.product(layouts, space.recomputes, ZERO, space.orders(mapping)):
            plan = make_plan(space.config(Candidate(mapping, *choice)), space.shape, space.ranks, space.node)
            if memory(space.shape, plan).total <= 0.98 * 3e9:
                found = evaluate(plan, space.shape, chip, prices)
                plans.append((plan, float(found.step), float(computing(found, plan.passes))))
    return plans


def test_energy_is_what_is_searched_for(job, every):
    objective, shape = joules(job.config, job.design), space_of(job.config).shape
    assert min(works for _, _, works in every) >= least_computing(job.config)
    for plan, step, works in every[:: len(every) // 12]:
        # Links draw the same whether bits move or not.
        energy = plan_energy(job.config, plan, shape, step, works)
        assert objective.waiting * step + objective.computing * works == pytest.approx(energy.per_rank)


def test_the_best_of_all(job, every):
    objective = joules(job.config, job.design)
    fastest, thriftiest = best_plans(job, 1, "time"), best_plans(job, 1, "energy")
    assert fastest.plans[0].found.step == pytest.approx(min(step for _, step, _ in every))
    least = min(objective.waiting * step + objective.computing * works for _, step, works in every)
    assert thriftiest.plans[0].energy.per_rank == pytest.approx(least)
    assert site_json(fastest)["best"][0]["shares"]["reserve"] > 0


def test_a_plan_has_the_energy_of_its_experiment(config):
    one = search(config, 1).best[0]
    file = config.model_copy(update={"plan": one.plan.config})
    planned = plan_energy(config, one.plan, space_of(config).shape, one.step, one.computing)
    assert planned.per_rank == pytest.approx(experiment_energy(file).per_rank, rel=1e-3)
