"""What a pipeline's step comes to: when each stage is done, how long it worked, and what may overlap with it."""

from typing import Any, NamedTuple


class Finish(NamedTuple):
    """Times in seconds, from 0 or from when stages were given to start.

    Arrays of NumPy or JAX; `batch` stands for the batch of the executor, and is missing for one evaluation.

    Attributes:
        makespan: [batch], when the last stage is done.
        end: [stages, batch], when each stage is done with its last operation.
        busy: [stages, batch], durations of its operations, added up.
        first_start: [stages, chunks, batch], when the first forward of each chunk starts: its weights are needed.
        gradient_end: [stages, chunks, batch], when the last operation ends that makes gradients of a chunk's weights.
        gradient_duration: [stages, chunks, batch], how long that operation takes: the gradients come out during it.
    """

    makespan: Any
    end: Any
    busy: Any
    first_start: Any
    gradient_end: Any
    gradient_duration: Any
