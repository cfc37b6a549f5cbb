"""Progress: silent when short, a line now and then in a log, a bar on a terminal; never on stdout."""

import io

import pytest

from mc.report import progress


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self):
        return True


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def run(seconds_per_step, steps=10, per_step=10):
    stream, clock = io.StringIO(), Clock()
    with progress("sampling", total=steps * per_step, stream=stream, interval=5.0, clock=clock) as advance:
        for _ in range(steps):
            clock.now += seconds_per_step
            advance(per_step)
    return stream.getvalue().splitlines()


def test_a_short_run_says_nothing():
    assert run(0.4) == []


def test_a_long_run_says_a_line_now_and_then():
    """Two seconds a step: due after 5 s (at 6 s), then 5 s later (12 s), then 18 s; nothing at the end."""
    assert run(2.0) == [
        "sampling: 30 of 100 (30 %), about 14.0 s left",
        "sampling: 60 of 100 (60 %), about 8.00 s left",
        "sampling: 90 of 100 (90 %), about 2.00 s left",
    ]


def test_what_the_first_took_is_not_expected_of_the_rest():
    """A minute of compiling, then a second a step: at 60 s nothing is known, at 65 s a second for each of four."""
    stream, clock = io.StringIO(), Clock()
    with progress("sampling", total=10, stream=stream, interval=5.0, clock=clock) as advance:
        clock.now += 59.0
        for _ in range(10):
            clock.now += 1.0
            advance(1)
    assert stream.getvalue().splitlines() == [
        "sampling: 1 of 10 (10 %)",
        "sampling: 6 of 10 (60 %), about 4.00 s left",
    ]


def test_a_terminal_gets_a_bar(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with progress("sampling [x]", total=4, stream=stream) as advance:
        advance(3)
        advance()
    assert "sampling [x]" in stream.getvalue()
    assert "4/4" in stream.getvalue()


def test_standard_output_stays_clean(capsys):
    clock = Clock()
    with progress("sampling", total=3, clock=clock) as advance:
        clock.now += 10
        advance()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "sampling: 1 of 3 (33 %)\n"


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()], ids=["log", "terminal"])
def test_an_error_passes_through(stream):
    def fail():
        with progress("sampling", total=3, stream=stream) as advance:
            advance(1)
            raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        fail()
