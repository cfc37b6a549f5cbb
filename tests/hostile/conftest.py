"""What the tests of hostile input share."""

import subprocess
import sys

import pytest


@pytest.fixture
def validate(tmp_path):
    """Runs `tailstep validate` in a process with little time and memory; returns (exit code, standard error)."""

    def run(file: str, *more: str) -> tuple[int, str]:
        limit = "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        program = (
            f"{limit}import sys; sys.argv = ['tailstep', 'validate', *{[file, *more]!r}]\nimport mc.__main__"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert not done.stdout or done.returncode == 0
        return done.returncode, done.stderr

    return run
