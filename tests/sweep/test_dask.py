"""Batches on real worker processes: the rows of a run here, also where a worker is killed in its midst."""

import subprocess
import sys

import pytest

from mc.config.load_sweep import load_sweep
from mc.errors import InputError
from mc.sweep import batch as batch_module
from mc.sweep.dask import DaskExecutor
from mc.sweep.sweep import run_sweep
from tests.sweep.test_sweep_files import EXPERIMENT

BLOCK = """\
  samples: 0
  grid: {plan.ranks: [2, 4, 8], model.exchange.size: {linear: [1 MB, 2 MB], points: 20}}
"""


# Dask warns of what its own dependencies do.
@pytest.mark.filterwarnings("default")
def test_a_worker_that_is_killed_costs_its_batch_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(batch_module, "QUIET", 12)
    distributed = pytest.importorskip("distributed")
    (tmp_path / "sweep.yaml").write_text(EXPERIMENT + BLOCK)
    sweep = load_sweep(tmp_path / "sweep.yaml")
    tables = {}

    def kept(name):
        return lambda table: tables.setdefault(name, {}).update({table.column("cell")[0].as_py(): table})

    with distributed.LocalCluster(
        n_workers=0, processes=True, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        address = cluster.scheduler_address
        command = [sys.executable, "-m", "distributed.cli.dask_worker", address]
        command += ["--nthreads", "1", "--no-dashboard", "--no-nanny"]
        workers = [subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=tmp_path) for _ in range(2)]
        try:
            with distributed.Client(address) as client:
                client.wait_for_workers(2, timeout=60)

            def kill(done: int) -> None:
                if done and workers[0].poll() is None:
                    workers[0].kill()
                    workers[0].wait()

            outcome = run_sweep(sweep, executor=DaskExecutor(address), observe=kept("there"), advance=kill)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
    assert (outcome.cells, outcome.failed) == (60, 0)
    run_sweep(sweep, observe=kept("here"))
    assert tables["there"].keys() == tables["here"].keys()
    for first, table in tables["here"].items():
        assert tables["there"][first].equals(table)


def test_a_scheduler_that_is_not_there(monkeypatch):
    monkeypatch.setattr("mc.sweep.dask.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'tailstep\[dask\]'"):
        DaskExecutor("tcp://127.0.0.1:1")
