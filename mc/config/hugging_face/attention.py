"""Attention: latent or of heads, its biases, its dropout, and which layers see everything."""

from mc.config.hugging_face.families import Family
from mc.config.hugging_face.reader import ALIASES, Reader
from mc.document import Node

_LAYER_TYPES = ("full_attention", "sliding_attention", "chunked_attention")


def biases(reader: Reader, family: Family) -> bool | str:
    """Which matrices have biases."""
    if not family.bias_key:
        return family.biases
    attention = reader.flag("biases", default=False)
    network = reader.flag("network_biases", default=False)
    inline = "write the numbers into `transformer` instead"
    if attention and family.latent:
        reader.problem(
            "attention_bias", f"expected false with latent attention; {inline}", reader.text["attention_bias"]
        )
    if network and not attention:
        reader.problem(
            "mlp_bias", f"expected false without `attention_bias`; {inline}", reader.text["mlp_bias"]
        )
    return True if network else family.biases if attention else False


def latent(reader: Reader, origin: Node) -> Node:
    """The ranks and widths of latent attention."""
    keys = {
        "q_rank": "q_lora_rank",
        "kv_rank": "kv_lora_rank",
        "nope_dim": "qk_nope_head_dim",
        "rope_dim": "qk_rope_head_dim",
        "v_dim": "v_head_dim",
    }
    # Null stands for queries without a low rank; a key that is not there, for nothing.
    present = "q_lora_rank" not in reader.text or reader.text["q_lora_rank"].value is not None
    found = {ours: reader.number(theirs, needed=ours != "q_rank" or present) for ours, theirs in keys.items()}
    return Node({key: node for key, node in found.items() if node is not None}, origin.position)


def has_dropout(reader: Reader) -> bool:
    """Whether anything is dropped in training."""
    for name in ALIASES["dropout"]:
        node = reader.text.get(name)
        if node is None or node.value is None:
            continue
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            reader.problem(name, f"expected a number; got {node.value!r}", node)
        elif node.value > 0:
            return True
    return False


def windows(reader: Reader, name: str, family: Family, origin: Node) -> dict[str, Node | None]:
    """The window of attention, and which layers do without."""
    if name == "llama4":
        return _chunks(reader, origin)
    if family.window == "none":
        return {}
    # Models of the Qwen family have windows only if a flag says so.
    if name.startswith("qwen") and not reader.flag("use_sliding_window", default=False):
        return {}
    if "sliding_window" not in reader.text:
        reader.problem("sliding_window", "missing key; give null for attention without a window")
        return {}
    window = reader.number("sliding_window", needed=False)
    if window is None:
        return {}
    types = reader.text.get("layer_types")
    every: Node | None = None
    if types is not None and types.value is not None:
        every = _pattern(reader, types)
    elif name.startswith("qwen"):
        text = "expected `layer_types` beside it, or false"
        reader.problem("use_sliding_window", text, reader.text["use_sliding_window"])
    elif name == "gemma3":
        every = reader.number("sliding_window_pattern")
    elif family.window == "half":
        every = Node(2, origin.position)
    if every is not None and every.value == 1:
        return {}
    return {"window": window, "full_every": every}


def _chunks(reader: Reader, origin: Node) -> dict[str, Node | None]:
    """Llama 4: chunks in layers with rotary positions; layers without, by default each fourth, see all."""
    window = reader.number("attention_chunk_size", needed="attention_chunk_size" not in reader.text)
    if window is None:
        return {}
    layers = reader.text.get("no_rope_layers")
    if layers is not None and isinstance(layers.value, list) and layers.value:
        full = [index for index, each in enumerate(layers.value) if each.value == 0]
        every = _every(reader, "no_rope_layers", layers, full, len(layers.value))
    else:
        every = reader.number("no_rope_layer_interval", needed=False) or Node(4, origin.position)
    if every is not None and every.value == 1:
        return {}
    return {"window": window, "chunked": Node(True, origin.position), "full_every": every}


def _pattern(reader: Reader, types: Node) -> Node | None:
    """From a list of layer types, which layers see everything."""
    names = types.plain() if isinstance(types.value, list) else []
    unknown = [each for each in names if each not in _LAYER_TYPES]
    if unknown or not names:
        shown = f"`{unknown[0]}`" if unknown else "no list"
        reader.problem("layer_types", f"expected {', '.join(_LAYER_TYPES)}; got {shown}", types)
        return None
    full = [index for index, each in enumerate(names) if each == "full_attention"]
    return _every(reader, "layer_types", types, full, len(names))


def _every(reader: Reader, key: str, node: Node, full: list[int], count: int) -> Node | None:
    """The k of layers k, 2k, ... that are different, None for no layer."""
    if not full:
        return None
    every = full[0] + 1
    if full != list(range(every - 1, count, every)):
        text = f"expected layers {every}, {2 * every}, ... to attend to everything, the others in windows"
        reader.problem(key, f"{text}; other patterns cannot be imported", node)
    return Node(every, node.position)
