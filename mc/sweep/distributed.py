"""Several processes that draw one sweep together (`jax.distributed`), for an experiment that is too large for one machine.

All of them go through the same batches. The units of a kernel are spread over all devices of all processes, and what they
drew is gathered by every process, so that all take the same decisions; cells that no kernel takes go to one process each.
Process 0 alone writes. Processes share their fate: where one is lost the others end, too, and `--resume` goes on with what
was written. Shards, which need nothing from one another, are the better way for many cells.

Never used unasked: a shard inside of a Slurm job must not wait for its neighbours.
"""

import contextlib
import pickle
import socket
import time
from collections.abc import Mapping
from typing import Any, TypeVar

import jax
import numpy as np

from mc.errors import InputError

_Value = TypeVar("_Value")


def join(
    coordinator: str | None, processes: int | None, process_id: int | None, timeout_s: int = 300
) -> bool:
    """Meets the other processes; before anything else asks JAX for its devices.

    Args:
        coordinator: address and port of process 0; found out from Slurm, Open MPI, Kubernetes or a TPU if left out.
        processes: how many there are; likewise.
        process_id: which one this is, from 0; likewise.
        timeout_s: how long to wait for the others.

    Returns:
        Whether this process is the first one, which writes and speaks.

    Raises:
        InputError: nobody is there, or nothing says where to meet.
    """
    told = (coordinator, processes, process_id)
    if any(each is None for each in told) and any(each is not None for each in told):
        raise InputError("--distributed: expected --coordinator, --processes and --process-id, all or none")
    if coordinator is not None and process_id is not None and processes is not None:
        if not 0 <= process_id < processes:
            raise InputError(f"--process-id: expected 0 to {processes - 1}; got {process_id}")
        _meet(*_address(coordinator), processes, process_id, timeout_s)
    # What processes on CPUs exchange arrays with; other devices have ways of their own.
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        jax.distributed.initialize(coordinator, processes, process_id, initialization_timeout=timeout_s)
    except ValueError:
        raise InputError(
            "--distributed: expected a job of Slurm, Open MPI or Kubernetes, or --coordinator, --processes and "
            "--process-id; got none of them"
        ) from None
    except RuntimeError as error:
        raise InputError(
            f"--distributed: expected {processes or 'all'} processes at {coordinator or 'the coordinator'} within "
            f"{timeout_s} s; got: {str(error).splitlines()[0]}"
        ) from None
    return is_first()


def leave() -> None:
    """Parts from the others, when all are done."""
    jax.distributed.shutdown()


def is_first() -> bool:
    """Whether this process writes."""
    return jax.process_index() == 0


def shared(value: _Value) -> _Value:
    """What process 0 says, in all processes."""
    if jax.process_count() == 1:
        return value
    return gathered(value)[0]


def gathered(value: _Value) -> list[_Value]:
    """What every process says, in order, in all processes."""
    if jax.process_count() == 1:
        return [value]
    from jax.experimental import multihost_utils

    content = np.frombuffer(pickle.dumps(value), np.uint8)
    sizes = np.ravel(multihost_utils.process_allgather(np.array([len(content)], np.int32)))
    padded = np.zeros(int(sizes.max()), np.uint8)
    padded[: len(content)] = content
    rows = np.asarray(multihost_utils.process_allgather(padded)).reshape(len(sizes), -1)
    return [pickle.loads(row[:size].tobytes()) for row, size in zip(rows, sizes, strict=True)]


def union(own: Mapping[int, Any]) -> dict[int, Any]:
    """What all processes have, by key."""
    found: dict[int, Any] = {}
    for each in gathered(dict(own)):
        found |= each
    return found


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise InputError(
            f"--coordinator: expected an address and a port, such as 10.0.0.1:8476; got `{text}`"
        )
    return host.strip("[]"), int(port)


def _meet(host: str, port: int, processes: int, process_id: int, timeout_s: int) -> None:
    """Waits until all are there. JAX, where somebody does not come, ends the program without a word that helps."""
    ends = time.monotonic() + timeout_s
    if process_id == 0:
        _wait_for(port, processes, ends, timeout_s)
    else:
        _call(host, port, process_id, ends, timeout_s)


def _wait_for(port: int, processes: int, ends: float, timeout_s: int) -> None:
    present: dict[int, socket.socket] = {}
    try:
        with socket.create_server(("", port), backlog=processes) as server, contextlib.ExitStack() as held:
            while len(present) < processes - 1:
                server.settimeout(max(ends - time.monotonic(), 0.01))
                try:
                    caller = held.enter_context(server.accept()[0])
                except TimeoutError:
                    missing = sorted(set(range(1, processes)) - set(present))
                    raise InputError(
                        f"--distributed: expected {processes} processes within {timeout_s} s; got none with "
                        f"--process-id {', '.join(map(str, missing[:5]))}"
                    ) from None
                caller.settimeout(max(ends - time.monotonic(), 0.01))
                with contextlib.suppress(OSError, ValueError):
                    present[int(caller.recv(16))] = caller
            for caller in present.values():
                with contextlib.suppress(OSError):
                    caller.sendall(b"go")
    except OSError as error:
        raise InputError(
            f"--coordinator: expected a free port; got {port}: {error.strerror or error}"
        ) from None


def _call(host: str, port: int, process_id: int, ends: float, timeout_s: int) -> None:
    reason = "no answer"
    while time.monotonic() < ends:
        try:
            with socket.create_connection((host, port), timeout=max(ends - time.monotonic(), 0.01)) as call:
                call.sendall(str(process_id).encode())
                if call.recv(2) == b"go":
                    return
        except OSError as error:
            reason = error.strerror or str(error)
        time.sleep(0.2)
    raise InputError(
        f"--coordinator: expected process 0 at {host}:{port}, and the others, within {timeout_s} s; got: {reason}"
    )
