"""Two processes with four devices each draw one sweep: the rows of one process with one device, to the last bit."""

import json
import os
import socket
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from mc.config.load_sweep import load_sweep
from mc.errors import InputError
from mc.sweep.batch import batches_of, evaluate
from mc.sweep.distributed import gathered, join, union
from tests.sweep.test_drawn import NOISY

# One cell of another method, which no kernel takes.
BLOCK = """\
  samples: 60
  list:
    - {plan.ranks: 2, run.method: exact}
    - {plan.ranks: 512, run.method: exact}
    - {plan.ranks: 3, run.method: exact}
    - {plan.ranks: 8, run.method: direct}
"""


def free_port() -> int:
    with socket.create_server(("", 0)) as server:
        return server.getsockname()[1]


def test_the_number_of_processes_and_devices_changes_no_bit(tmp_path):
    path = tmp_path / "sweep.yaml"
    path.write_text(NOISY.replace("samples: 200", "samples: 60, realisations: 6") + BLOCK)
    arguments = ["sweep", str(path), "--out", str(tmp_path / "out"), "--json", "--distributed"]
    arguments += ["--coordinator", f"127.0.0.1:{free_port()}", "--processes", "2"]
    flags = "--xla_force_host_platform_device_count=4"
    programs = [
        subprocess.Popen(
            [sys.executable, "-m", "mc", *arguments, "--process-id", str(number)],
            env={**os.environ, "XLA_FLAGS": flags},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    (said, told), (silent, _) = (program.communicate(timeout=240) for program in programs)
    assert [program.returncode for program in programs] == [0, 0], told
    assert json.loads(said)["cells"] == 4
    assert not silent
    (part,) = (tmp_path / "out").glob("*.parquet")
    sweep = load_sweep(path)
    (batch,) = batches_of(sweep)
    assert pq.read_table(part).to_pylist() == evaluate(sweep, batch).to_pylist()


def test_one_process_is_all_there_is():
    assert gathered("own") == ["own"]
    assert union({1: "row"}) == {1: "row"}


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (("127.0.0.1:{port}", 2, 0), "expected 2 processes within 1 s; got none with --process-id 1"),
        (("127.0.0.1:{port}", 2, 1), "expected process 0 at 127.0.0.1:{port}.*Connection refused"),
        (("127.0.0.1", 2, 1), "expected an address and a port"),
        (("127.0.0.1:{port}", 2, 2), "--process-id: expected 0 to 1; got 2"),
        ((None, 2, None), "--coordinator, --processes and --process-id, all or none"),
    ],
)
def test_nobody_waits_for_ever(told, message):
    port = free_port()
    address, *others = told
    with pytest.raises(InputError, match=message.format(port=port)):
        join(None if address is None else address.format(port=port), *others, timeout_s=1)
