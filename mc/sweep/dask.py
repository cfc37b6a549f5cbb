"""Batches on the workers of a Dask cluster: on one machine, a Slurm cluster, Kubernetes, whatever Dask runs on.

A task is the file's text of a sweep and the ends of a batch, so a worker needs nothing but this package. If a worker dies
Dask gives its batch to another one; what was finished has been stored. Tasks run one at a time in a worker's process,
since JAX uses all of its cores by itself, and workers must not be forked from a process that has started JAX.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec

import pyarrow as pa

from mc.config.load_sweep import Sweep
from mc.errors import InputError
from mc.sweep.batch import evaluate
from mc.sweep.store import Batch

Advance = Callable[[int], None]


class DaskExecutor:
    """Hands batches to the workers that a scheduler has."""

    def __init__(self, scheduler: str):
        """Args: the scheduler's address, such as `tcp://10.0.0.1:8786`; raises InputError without Dask."""
        if find_spec("distributed") is None:
            raise InputError(
                "--executor dask: needs dask.distributed, which is not installed; `pip install 'tailstep[dask]'` gets it"
            )
        self.scheduler = scheduler

    def __call__(
        self, sweep: Sweep, batches: Sequence[Batch], advance: Advance
    ) -> Iterator[tuple[Batch, pa.Table]]:
        """Yields batches as workers finish them."""
        from distributed import Client, as_completed

        try:
            client = Client(self.scheduler, timeout=30)
        except (OSError, ValueError) as error:
            raise InputError(
                f"--scheduler: expected the address of a Dask scheduler; got `{self.scheduler}`: {error}"
            ) from None
        with client:
            # It goes with every task: data that lies on a worker dies with it.
            content = pickle.dumps(sweep)
            futures = {
                # Pure: the same batch again is the same rows.
                client.submit(
                    _evaluate, content, batch, key=f"cells-{batch.start}-{batch.stop}-{id(self)}"
                ): batch
                for batch in batches
            }
            for future in as_completed(futures):
                batch = futures[future]
                table = future.result()
                # A result that has been taken over need not stay with the worker.
                future.release()
                advance(batch.stop - batch.start)
                yield batch, table


def _evaluate(content: bytes, batch: Batch) -> pa.Table:
    return evaluate(_loaded(content), batch)


@lru_cache(maxsize=2)
def _loaded(content: bytes) -> Sweep:
    """One object for all batches of a sweep, so that what is known of it is found out once."""
    return pickle.loads(content)
