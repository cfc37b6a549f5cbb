"""A sweep's folder through what happens to folders: nothing that was finished is lost, nothing half-written is read."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mc.config.load_sweep import load_sweep
from mc.errors import InputError
from mc.sweep import batch as batch_module
from mc.sweep.batch import batches_of
from mc.sweep.merge import merge
from mc.sweep.store import Batch, Store, parts_in, read_manifest
from mc.sweep.sweep import here, run_sweep, sweep_hash
from tests.sweep.test_sweep_files import EXPERIMENT

# Six batches of two cells without noise.
BLOCK = """\
  samples: 0
  grid: {plan.ranks: [2, 4, 8], model.exchange.size: [1 MB, 2 MB, 3 MB, 4 MB]}
"""


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    monkeypatch.setattr(batch_module, "QUIET", 2)
    (tmp_path / "sweep.yaml").write_text(EXPERIMENT + BLOCK)
    return load_sweep(tmp_path / "sweep.yaml")


def rows(folder: Path) -> list[dict]:
    """All rows, as any reader of Parquet gets them."""
    table = pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("*.parquet"))])
    return table.to_pylist()


@pytest.fixture
def whole(sweep, tmp_path):
    """The rows of an undisturbed run."""
    run_sweep(sweep, out=tmp_path / "whole")
    return rows(tmp_path / "whole")


def counted(done: list[Batch]):
    """An executor that notes what it evaluates."""

    def execute(sweep, batches, advance):
        for batch, table in here(sweep, batches, advance):
            done.append(batch)
            yield batch, table

    return execute


def test_a_part_that_was_cut_short_is_evaluated_again_and_no_other(sweep, whole, tmp_path):
    folder = tmp_path / "whole"
    victim = sorted(folder.glob("*.parquet"))[2]
    content = victim.read_bytes()
    for damage in (
        content[:-20],
        content[: len(content) // 2],
        b"",
        content[:200] + b"\0" * 100 + content[300:],
    ):
        victim.write_bytes(damage)
        done: list[Batch] = []
        outcome = run_sweep(sweep, out=folder, resume=True, executor=counted(done))
        assert [batch.name for batch in done] == [victim.name]
        assert (outcome.cells, outcome.found) == (12, 10)
        assert rows(folder) == whole


def test_a_disk_that_is_full_loses_nothing_that_was_finished(sweep, whole, tmp_path, monkeypatch):
    folder = tmp_path / "full"
    real, written = os.fsync, []

    def full(handle: int) -> None:
        # The fourth part meets a full disk after its bytes have been written in part.
        written.append(handle)
        if len(written) == 9:
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left on device"):
        run_sweep(sweep, out=folder)
    monkeypatch.setattr(os, "fsync", real)
    assert len(list(folder.glob("*.parquet"))) == 3
    assert not list(folder.glob(".tailstep-*"))
    outcome = run_sweep(sweep, out=folder, resume=True)
    assert outcome.found == 6
    assert rows(folder) == whole


def test_a_folder_on_a_real_small_disk(sweep, whole, tmp_path):
    mount = tmp_path / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(mount)]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("no right to mount a small disk here")
    try:
        with pytest.raises(InputError, match="No space left on device"):
            run_sweep(sweep, out=mount / "out")
        found = rows(mount / "out")
        assert 0 < len(found) < 12
        assert found == whole[: len(found)]
        subprocess.run(["mount", "-o", "remount,size=8m", str(mount)], check=True)
        outcome = run_sweep(sweep, out=mount / "out", resume=True)
        assert outcome.found == len(found)
        assert rows(mount / "out") == whole
    finally:
        subprocess.run(["umount", str(mount)], check=True)


PROGRAM = """
import os, sys, time
import pyarrow.parquet as pq
from mc.sweep import batch
batch.QUIET = 2
from mc.config.load_sweep import load_sweep
from mc.sweep.sweep import run_sweep

def slowly(sweep, batches, advance):
    for number, one in enumerate(batches):
        yield one, pq.read_table(f"{sys.argv[3]}/{one.name}")
        print(one.name, flush=True)
        if number == 2:
            # In the midst of a file, as a writer that is killed leaves it.
            open(f"{sys.argv[2]}/.tailstep-{os.getpid()}-half", "wb").write(b"PAR1")
            time.sleep(60)

run_sweep(load_sweep(sys.argv[1]), out=sys.argv[2], resume=True, executor=slowly)
"""


def is_resumed(sweep, whole: list[dict], folder: Path) -> None:
    """After three batches: they are kept, and a second run does the others."""
    assert rows(folder) == whole[:6]
    outcome = run_sweep(sweep, out=folder, resume=True)
    assert outcome.found == 6
    assert rows(folder) == whole
    assert not list(folder.glob(".tailstep-*"))


def test_a_run_that_is_killed_is_resumed_and_no_other_may_start_before(sweep, whole, tmp_path):
    folder = tmp_path / "ended"
    arguments = [str(tmp_path / "sweep.yaml"), str(folder), str(tmp_path / "whole")]
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for _ in range(3):
            assert process.stdout.readline()
        with pytest.raises(InputError, match="another run of this sweep is at work here"):
            run_sweep(sweep, out=folder, resume=True)
        time.sleep(0.1)
        process.kill()
        process.wait(timeout=30)
    is_resumed(sweep, whole, folder)


def test_a_run_that_is_ended_by_hand_is_resumed(sweep, whole, tmp_path):
    def interrupted(sweep, batches, advance):
        for number, found in enumerate(here(sweep, batches, advance)):
            yield found
            if number == 2:
                signal.raise_signal(signal.SIGINT)

    # A shell that starts a job in the background has it ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_sweep(sweep, out=tmp_path / "ended", executor=interrupted)
    finally:
        signal.signal(signal.SIGINT, before)
    is_resumed(sweep, whole, tmp_path / "ended")


def test_a_folder_with_something_else_is_left_alone(sweep, whole, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"other files in it \(thesis.tex\)"):
        run_sweep(sweep, out=tmp_path / "other")
    with pytest.raises(InputError, match="`--resume` goes on with it"):
        run_sweep(sweep, out=tmp_path / "whole")
    other = load_sweep(tmp_path / "sweep.yaml", ["model.compute.flop=6 GFLOP"])
    with pytest.raises(InputError, match="got the sweep"):
        run_sweep(other, out=tmp_path / "whole", resume=True)
    assert rows(tmp_path / "whole") == whole


def test_shards_in_any_order_merge_to_the_whole(sweep, whole, tmp_path):
    for number in (3, 1, 2):
        run_sweep(sweep, out=tmp_path / f"shard{number}", shard=(number, 3))
    folders = [tmp_path / f"shard{number}" for number in (2, 3, 1)]
    some = merge(folders[:2], tmp_path / "some")
    assert some.missing == ((0, 2), (6, 8))
    merged = merge(folders, tmp_path / "merged")
    assert (merged.cells, merged.failed, merged.missing) == (12, 0, ())
    assert rows(tmp_path / "merged") == whole
    # A part that a disk has damaged is not taken over.
    part = next(folders[0].glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-1])
    assert len(merge(folders, tmp_path / "again").missing) == 1


def test_shards_may_share_a_folder(sweep, whole, tmp_path):
    for number in (2, 1):
        run_sweep(sweep, out=tmp_path / "shared", shard=(number, 2), resume=True)
    assert rows(tmp_path / "shared") == whole


def test_a_part_explains_itself(sweep, whole, tmp_path):
    manifest = read_manifest(tmp_path / "whole")
    assert manifest is not None
    assert manifest["sweep_hash"] == sweep_hash(sweep)
    assert manifest["cells"] == 12
    assert {"software", "checkout", "device", "experiment", "sweep", "command", "ended"} <= manifest.keys()
    assert str(Path.home()) not in (tmp_path / "whole" / "manifest.json").read_text()
    path = next((tmp_path / "whole").glob("*.parquet"))
    assert b"tailstep_manifest" in pq.read_schema(path).metadata
    store = Store(tmp_path / "whole", manifest)
    assert set(store.done()) == set(parts_in(tmp_path / "whole")) == set(batches_of(sweep))
    del whole
