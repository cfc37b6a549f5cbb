"""What launchers and collectors put in front of a line: labels of processes, and times.

`mpirun --tag-output` writes `[1,3]<stdout>:`, Open MPI 5 `[prterun-host-1@1,3]<stdout>:`, `srun -l` ` 3: `,
Hydra (MPICH, Intel MPI) `[3] `, and Kubernetes a time.
"""

import re

_TAGGED = re.compile(r"\s*\[(?:[^\]\s]*@)?\d+,(?P<process>\d+)\](?:<std(?:out|err)>)?:?")
_LABEL = re.compile(r"\s*(?P<process>\d{1,6}):(?:\s|$)")
_BRACKET = re.compile(r"\[(?P<process>\d{1,6})\] (?!NCCL)")
_TIME = re.compile(r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?\s+")
# Dressing of terminals.
_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def without_prefix(line: str) -> tuple[str, str]:
    """A line without its prefixes, and the label of the process that wrote it; empty if it has none."""
    if "\x1b" in line:
        line = _ESCAPES.sub("", line)
    first = line.lstrip()[:1]
    if not first or not (first == "[" or first.isdigit()):
        return line, ""
    if (match := _TIME.match(line)) is not None:
        line = line[match.end() :]
    for pattern in (_TAGGED, _LABEL, _BRACKET):
        if (match := pattern.match(line)) is not None:
            return line[match.end() :], match["process"]
    return line, ""
