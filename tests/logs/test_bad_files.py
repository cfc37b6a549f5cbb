"""Files that are no measurements, or hardly: a word for each, whatever is in them, and never a traceback."""

import gzip
import pickle
import tracemalloc

import pytest

from mc.logs import FORMATS, LogError, read_logs
from mc.logs.source import MAXIMUM_LINE

ROW = "  1048576  262144  float  sum  -1  50.00  20.97  31.46  0  51.00  20.56  30.84  0\n"
REFUSED = {
    "empty": (b"", "the file is empty; expected a log or table of measurements"),
    "blank": (b" \n\n", "the file is empty"),
    "binary": (bytes(range(256)) * 40, "expected text; got binary data"),
    "NUL bytes": (bytes(5000), "expected text; got"),
    "UTF-16 without its mark": (
        ROW.encode("utf-16-le"),
        "looks like UTF-16 without its mark: save it as UTF-8",
    ),
    "a pickle": (pickle.dumps({"time": 1}), "got a pickle, which is never loaded: write it as JSON or CSV"),
    "an archive": (b"PK\x03\x04....", "got a zip archive"),
    "Parquet": (b"PAR1....", "got a Parquet file"),
    "half a gzip file": (
        gzip.compress(ROW.encode() * 999)[:60],
        "expected a whole gzip file; got a damaged one",
    ),
    "prose": (b"Dear all:\nplease find the results attached.\n", "got nothing that looks like one"),
    "wrong columns": (b"a,b\n1,2\n", "got the columns a, b"),
    "columns twice": (b"step,step,time_s\n1,1,2\n", "expected columns of different names; got step twice"),
    "a heading alone": (b"step,step_time_s\n", "got no row that can be used"),
    "times of zero": (b"step,step_time_s\n1,0\n2,0\n", "2 rows with a time that is zero or negative"),
    "negative times": (b"step,step_time_s\n1,-2\n", "1 rows with a time that is zero or negative"),
    "NaN": (b"step,step_time_s\n1,nan\n", "1 rows with a time that is no number"),
    "infinite": (b"step,step_time_s\n1,inf\n2,1e999\n", "2 rows with a time that is no number"),
    "nested without end": (b'{"algBw":' + b"[" * 100_000, "lines that are no JSON"),
    "a list without end": (b"[" * 100_000, "expected"),
    "other JSON": (b'{"results": 7, "nccl_version": 1}', "an object with `results`; got another"),
    "a number of too many digits": (b'{"algBw": ' + b"9" * 5000 + b"}", "got no row that can be used"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_cannot_be_used_is_refused_in_words(read, tmp_path, name):
    content, message = REFUSED[name]
    suffix = ".csv" if b"," in content[:30] and b"\n" in content else ".log"
    with pytest.raises(LogError) as refused:
        read(content, f"bad{suffix}")
    text = str(refused.value)
    assert text.startswith(f"{tmp_path}/bad{suffix}:")
    assert message in text
    assert "\n" not in text


def test_what_is_wrapped_is_unwrapped_and_said(read):
    for content, said in (
        (ROW.encode("utf-16"), ("decoded from UTF-16",)),
        (gzip.compress(ROW.encode()), ("unpacked from gzip",)),
        (gzip.compress(ROW.encode("utf-16")), ("unpacked from gzip", "decoded from UTF-16")),
        (b"\xef\xbb\xbf" + ROW.encode(), ()),
        (ROW.replace("\n", "\r\n").encode(), ()),
        (ROW.replace("\n", "\r").encode(), ()),
        (f"\x1b[32m{ROW}\x1b[0m".encode(), ()),
    ):
        found = read(content, "all_reduce.log")
        assert len(found.table) == 2
        assert found.files[0].wrapping == said


def test_torn_lines_are_skipped(read):
    (file,) = read(ROW.encode() + bytes(64) + b"\n" + ROW.encode(), "all_reduce.log").files
    assert [(each.reason, each.lines) for each in file.skipped] == [("lines with NUL bytes", (2,))]
    assert file.rows == 4


def test_a_line_without_end_is_passed_over_in_little_memory(read, tmp_path):
    path = tmp_path / "all_reduce.log"
    with path.open("w") as stream:
        stream.write(ROW)
        for _ in range(32):
            stream.write("x" * MAXIMUM_LINE)
        stream.write("\n" + ROW)
    tracemalloc.start()
    try:
        (file,) = read_logs([path]).files
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [(each.reason, each.lines) for each in file.skipped] == [("lines too long to be of a log", (2,))]
    assert file.rows == 4
    assert most < 16 * MAXIMUM_LINE


@pytest.mark.parametrize("format", FORMATS)
def test_noise_under_any_reader_is_an_error(read, format):
    noise = "".join(f"{(n * 2654435761) % 2**32:032b} ~{n:x}#%\n" for n in range(2000))
    with pytest.raises(LogError):
        read(noise, "noise.txt", format=format)


def test_files_that_are_none(tmp_path):
    with pytest.raises(LogError, match="no such file"):
        read_logs([tmp_path / "none.log"])
    with pytest.raises(LogError, match="expected a file of measurements; got a directory"):
        read_logs([tmp_path])
    with pytest.raises(LogError, match="expected a plain file; got a device or pipe"):
        read_logs(["/dev/null"])
    with pytest.raises(LogError, match=r"cannot be read|no such file"):
        read_logs(["\0"])


def test_all_files_that_cannot_be_used_are_named_at_once(tmp_path):
    for name in ("a.log", "c.log"):
        (tmp_path / name).write_text("")
    (tmp_path / "all_reduce.log").write_text(ROW)
    with pytest.raises(LogError) as refused:
        read_logs([tmp_path / name for name in ("a.log", "all_reduce.log", "b.log", "c.log")])
    lines = str(refused.value).splitlines()
    assert [line.removeprefix(f"{tmp_path}/").split(":")[0] for line in lines] == ["a.log", "b.log", "c.log"]
