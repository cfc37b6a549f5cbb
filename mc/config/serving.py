"""The `serving` block of an experiment: a transformer that answers requests instead of being trained.

A request brings a prompt, which is *prefilled* in one pass, and is answered token by token: *decoding*, one step for all
requests of the batch together. A replica has tp x dp x pp ranks, numbered in this order:

- `tp` ranks share heads and matrices, as in training;
- `dp` groups of them have requests of their own and share the experts of each layer ("data-parallel attention"): without
  experts there is nothing to share, and another replica is another experiment;
- `pp` stages share the layers, with as many parts of the batch on their way;
- `ep` groups share the experts; each expert's matrices are cut over the tp x dp / ep ranks of one.

Prompts are prefilled by the same ranks between their decode steps, or, with `prefill`, by ranks of their own, which then
send keys and values over.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, field_validator, model_serializer

from mc.config.names import Format
from mc.config.plan import RoutingConfig
from mc.config.protocol import AUTO, EVERY
from mc.config.quantities import Probability, Quantity, Ratio, Time
from mc.config.requests import RequestsConfig, mean_length
from mc.document import StrictModel
from mc.units import Dimension

Count = Annotated[int, Field(ge=1)]
Part = Annotated[Probability, Field(gt=0)]
Rate = Annotated[float, Quantity(Dimension.FREQUENCY), Field(gt=0)]
LARGEST: Literal["largest"] = "largest"


class LayoutConfig(StrictModel):
    """The ranks of a replica.

    Attributes:
        tp: ranks that share heads and matrices.
        dp: groups of them with requests of their own, which share experts.
        pp: stages.
        ep: groups of ranks that share a layer's experts; tp x dp if left out, 1 without experts.
    """

    tp: Count = 1
    dp: Count = 1
    pp: Count = 1
    ep: Count | None = None

    @property
    def ranks(self) -> int:
        """How many."""
        return self.tp * self.dp * self.pp

    @property
    def stage_ranks(self) -> int:
        """How many a stage has."""
        return self.tp * self.dp


class PrefillConfig(LayoutConfig):
    """Ranks of their own for prompts.

    Attributes:
        batch: prompts that each group prefills at once.
        replicas: how many; as many as keep up if left out, which need not be a whole number.
        tier: over which keys and values are sent to the ranks that decode, by its name; the outermost if left out.
        overlap: whether a layer's are sent while the next ones compute, so that only the last layer's are waited for.
        packing: of prompts of several lengths: `even`, so that all groups are busy alike and a prompt takes what its own
            length does, or `longest`: prompts of a pass begin and end together.
    """

    batch: Count = 1
    replicas: Count | None = None
    tier: Annotated[str, Field(min_length=1)] | None = None
    overlap: bool = True
    packing: Literal["even", "longest"] = "even"


class SpeculationConfig(StrictModel):
    """Tokens that are guessed ahead, and checked in one step.

    Attributes:
        width: how many are guessed.
        acceptance: probability that a guess is right where those before it were.
        draft: seconds that a guess takes, over those of the step that checks all.
    """

    width: Count
    acceptance: Probability
    draft: Ratio = 0.0


class ServingFormatsConfig(StrictModel):
    """Number formats.

    Attributes:
        math: of the products with weights.
        weights: stored; as `math` if left out.
        attention: of the products of attention.
        cache: of keys and values, stored and sent.
        activations: between operations.
        tensor: sent among tensor-parallel ranks.
        pipeline: sent to the next stage.
        dispatch: tokens sent to experts.
        combine: what comes back.
    """

    math: Format = "bf16"
    weights: Format = Field(default_factory=lambda data: data["math"])
    attention: Format = "bf16"
    cache: Format = "bf16"
    activations: Format = "bf16"
    tensor: Format = "bf16"
    pipeline: Format = "bf16"
    dispatch: Format = "bf16"
    combine: Format = "bf16"


class ServingKernelsConfig(StrictModel):
    """What kernels of serving reach that those of training say nothing about.

    Attributes:
        start: seconds that sending tokens to experts, or back, takes beside their bytes.
        inside: part of the innermost tier's bandwidth that these kernels reach, and
        between: part of the others'. Fitted with `start` to DeepEP's published figures (`experiments.deepep`).
        attention: part of the peak that attention to a cache reaches where its products take longer than reading the cache:
            660 TFLOP/s of 989 (FlashMLA on the H800, github.com/deepseek-ai/FlashMLA).
        scheduler: seconds of the host between two steps that the chips wait for.
    """

    start: Time = 24.3e-6
    inside: Part = 0.69
    between: Part = 0.87
    attention: Part = 0.667
    scheduler: Time = 0.5e-3


class ServingConfig(LayoutConfig):
    """How a transformer answers requests.

    Attributes:
        requests: of several lengths.
        prompt: tokens of a request; of several lengths their mean, which need not be given.
        output: tokens of its answer; likewise.
        batch: requests that a replica decodes at once; `largest` for as many as fit into memory.
        rate: requests per second that a replica gets. It then decodes as many at once as that leads to, at most `batch`;
            without, a request begins as soon as another one ends.
        prefill: ranks for prompts; those that decode if left out.
        speculation: tokens that are guessed ahead.
        formats: of numbers.
        routing: of tokens to experts.
        redundant_experts: copies of busy experts beside them, in each layer; tokens are shared among copies.
        two_batches: whether tokens of one half of the batch move while the other half computes.
        protocol: of collectives, as in a plan.
        kernels: what they reach.
        memory_reserve: part of a chip's memory that weights and cache cannot have: activations, buffers, the program.
            0.1 is what vLLM leaves (`gpu_memory_utilization`).
    """

    requests: RequestsConfig | None = None
    prompt: Count = Field(default_factory=lambda data: _mean(data, "prompt"))
    output: Annotated[int, Field(ge=2)] = Field(default_factory=lambda data: _mean(data, "output"))
    batch: int | Literal["largest"] = LARGEST
    rate: Rate | None = None
    prefill: PrefillConfig | None = None
    speculation: SpeculationConfig | None = None
    formats: ServingFormatsConfig = ServingFormatsConfig()
    routing: RoutingConfig = RoutingConfig()
    redundant_experts: Annotated[int, Field(ge=0)] = 0
    two_batches: bool = False
    protocol: Annotated[str, Field(min_length=1)] = AUTO
    kernels: ServingKernelsConfig = ServingKernelsConfig()
    memory_reserve: Annotated[Probability, Field(lt=1)] = 0.1

    @model_serializer(mode="wrap")
    def _without_idle_keys(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        found = handler(self)
        if self.requests is None:
            found.pop("requests", None)
        return found

    @field_validator("batch", mode="before")
    @classmethod
    def _check_batch(cls, value: Any) -> Any:
        if value == LARGEST:
            return value
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        shown = repr(value) if not isinstance(value, dict | list) else "a collection"
        raise ValueError(f"expected `{LARGEST}` or a whole number of at least 1; got {shown}")

    @field_validator("protocol")
    @classmethod
    def _check_protocol(cls, value: str) -> str:
        if value == EVERY:
            raise ValueError("expected one protocol, `auto` or `none`; got `all`")
        return value


def _mean(data: dict[str, Any], name: Literal["prompt", "output"]) -> int:
    """Tokens in the mean; 0 where nothing says how many, which is refused elsewhere."""
    requests = data.get("requests")
    return 0 if requests is None else mean_length(requests, name)
