"""Who may write where, and what a crash leaves behind: the old run or the new one, never a mixture."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mc.errors import InputError
from mc.results import check_folder, folder, read_run, write_run
from tests.results.example import example_result

REPOSITORY = Path(__file__).parents[2]


class Crash(BaseException):
    """Stands for the end of the process: no handler may catch it and go on."""


def names(path):
    return sorted(entry.name for entry in path.iterdir())


def test_a_new_folder_holds_three_files(tmp_path):
    write_run(tmp_path, example_result())
    assert names(tmp_path) == ["manifest.json", "steps.parquet", "summary.parquet"]


def test_the_same_configuration_is_replaced_as_a_whole(tmp_path):
    write_run(tmp_path, example_result(elapsed_s=1.0))
    write_run(tmp_path, example_result(elapsed_s=2.0))
    assert read_run(tmp_path).result.elapsed_s == 2.0
    assert names(tmp_path) == ["manifest.json", "steps.parquet", "summary.parquet"]


def test_what_the_user_put_beside_a_run_stays(tmp_path):
    write_run(tmp_path, example_result())
    (tmp_path / "notes.txt").write_text("mine")
    write_run(tmp_path, example_result())
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_another_configuration_is_refused_and_nothing_is_lost(tmp_path):
    write_run(tmp_path, example_result())
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}
    for attempt in (
        lambda: check_folder(tmp_path, "fedcba9876543210"),
        lambda: write_run(tmp_path, example_result(config_hash="fedcba9876543210")),
    ):
        with pytest.raises(InputError) as error:
            attempt()
        assert "got a finished run of configuration 0123456789abcdef (example)" in str(error.value)
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before


@pytest.mark.parametrize(
    ("name", "content"),
    [("thesis.tex", "years of work"), ("manifest.json", '{"kind": "web extension"}'), ("steps.parquet", "")],
)
def test_a_folder_with_other_files_is_refused(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError) as error:
        check_folder(tmp_path, "0123456789abcdef")
    assert f"got a folder with other files in it ({name})" in str(error.value)
    assert (tmp_path / name).read_text() == content


@pytest.mark.parametrize("below", ["", "run", "runs/1"])
def test_a_file_in_the_way_is_an_input_error(tmp_path, below):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="expected a folder for the results; got a file"):
        check_folder(tmp_path / "file" / below, "0123456789abcdef")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder_is_an_input_error(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="expected a folder that can be written to; got: Permission denied"):
        check_folder(tmp_path, "0123456789abcdef")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (errno.EACCES, "Permission denied"),
        (errno.EROFS, "Read-only file system"),
        (errno.ENOSPC, "No space left on device"),
    ],
)
def test_what_the_system_refuses_is_an_input_error(tmp_path, monkeypatch, number, text):
    def refuse(*arguments, **options):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "touch", refuse)
    with pytest.raises(InputError) as error:
        check_folder(tmp_path, "0123456789abcdef")
    assert f"expected a folder that can be written to; got: {text}" in str(error.value)


def test_a_full_disk_leaves_the_old_run_and_no_litter(tmp_path, monkeypatch):
    write_run(tmp_path, example_result(elapsed_s=1.0))
    monkeypatch.setattr(
        os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device"))
    )
    with pytest.raises(InputError, match="No space left on device"):
        write_run(tmp_path, example_result(elapsed_s=2.0))
    assert read_run(tmp_path).result.elapsed_s == 1.0
    assert names(tmp_path) == ["manifest.json", "steps.parquet", "summary.parquet"]


def test_one_writer_at_a_time(tmp_path):
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        with pytest.raises(InputError, match="another run is being written here"):
            write_run(tmp_path, example_result())
    finally:
        os.close(handle)
    write_run(tmp_path, example_result())


# Six renames: three files into the log, three out of it. The third is the moment of commitment.
@pytest.mark.parametrize("after", range(7))
@pytest.mark.parametrize("old", [False, True], ids=["first run", "replaces a run"])
def test_a_crash_between_the_writes_leaves_the_old_or_the_new(tmp_path, monkeypatch, after, old):
    """As a crash leaves it: nothing is cleaned up (the clean-up is disabled with the rename)."""
    if old:
        write_run(tmp_path, example_result(elapsed_s=1.0))
    replace, renames = os.replace, []

    def crash(*arguments):
        if len(renames) == after:
            raise Crash
        renames.append(arguments)
        replace(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", crash)
        patch.setattr(folder, "_discard_leftovers", lambda path: None)
        if after < 6:
            with pytest.raises(Crash):
                write_run(tmp_path, example_result(elapsed_s=2.0, seed=8))
        else:
            write_run(tmp_path, example_result(elapsed_s=2.0, seed=8))
    assert len(renames) == after
    if after >= 3:
        assert read_run(tmp_path).result.elapsed_s == 2.0
    elif old:
        assert read_run(tmp_path).result.elapsed_s == 1.0
    else:
        with pytest.raises(InputError, match=r"got no readable manifest\.json"):
            read_run(tmp_path)
    # And the next run finds a folder that it can use, and leaves no trace of the crash.
    write_run(tmp_path, example_result(elapsed_s=3.0))
    assert read_run(tmp_path).result.elapsed_s == 3.0
    assert names(tmp_path) == ["manifest.json", "steps.parquet", "summary.parquet"]


def test_a_pending_commit_counts_for_who_may_write(tmp_path, monkeypatch):
    """A committed run that is not yet in place is finished: another configuration must not remove it."""
    with monkeypatch.context() as patch:
        patch.setattr(folder, "_finish_commit", lambda path: None)
        write_run(tmp_path, example_result())
    assert "manifest.json" not in names(tmp_path)
    with pytest.raises(InputError, match="got a finished run of configuration 0123456789abcdef"):
        write_run(tmp_path, example_result(config_hash="fedcba9876543210"))
    assert read_run(tmp_path).result.seed == 7


WRITER = """
import sys
from mc.results import write_run
from tests.results.example import example_result
results = [example_result(realisations=200, steps=500, elapsed_s=float(n)) for n in (1, 2)]
print("ready", flush=True)
while True:
    for result in results:
        write_run(sys.argv[1], result)
"""


def test_killed_at_any_moment(tmp_path):
    """SIGKILL while two runs replace each other without pause; what is there afterwards is a whole run."""
    for milliseconds in (0, 7, 31, 83, 150, None):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        process.stdout.readline()
        if milliseconds is not None:
            time.sleep(0.02 + milliseconds / 1000)
        # The last one goes on until a run is there, however slow the machine.
        while milliseconds is None and process.poll() is None and folder.read_manifest(tmp_path) is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        manifest = folder.read_manifest(tmp_path)
        if manifest is not None:
            result = read_run(tmp_path).result
            assert result.elapsed_s in (1.0, 2.0)
            assert result.samples.shape == (200, 500)
    assert folder.read_manifest(tmp_path) is not None
