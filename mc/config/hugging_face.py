"""The shape of a transformer from a `config.json` as Hugging Face Transformers writes it.

    model:
      name: Llama 3 8B
      hugging_face: config.json

The import happens on nodes, while a configuration is being put together: numbers of the JSON file take the
place of its name, each with its own line there, so whatever is wrong with one is reported where it is
written, and the resolved configuration stands alone.

Files of different families call one thing by different names (`_ALIASES`). What no key says, such as
whether the network has a gate, follows from `model_type` (`_FAMILIES`, facts of the model classes in
Transformers), and so do flags that a file leaves out. A number that is needed and not in the file is an
error: the defaults that Transformers would fill in belong to one size of a family and would go unnoticed.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mc.config.transformer import Biases
from mc.document import (
    ConfigError,
    Document,
    Node,
    Position,
    Problem,
    UnusableFile,
    did_you_mean,
    read_bytes,
    read_text,
)

KEY = "hugging_face"
MAXIMUM_BYTES = 2_000_000
# Where multimodal models keep the part that is a language model.
_NESTED = ("text_config", "language_config", "llm_config")
_ALIASES: dict[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head", "n_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv"),
    "head_dim": ("head_dim",),
    "vocab": ("vocab_size",),
    "ffn": ("intermediate_size", "n_inner", "ffn_dim"),
    "expert_ffn": ("moe_intermediate_size",),
    "experts": ("num_experts", "num_local_experts", "n_routed_experts", "num_routed_experts"),
    "top_k": ("num_experts_per_tok", "num_experts_per_token", "moe_topk"),
    "shared": ("n_shared_experts", "num_shared_experts"),
    "shared_ffn": ("shared_expert_intermediate_size",),
    "dense_layers": ("first_k_dense_replace",),
    "groups": ("n_group",),
    "group_limit": ("topk_group",),
    "positions": ("max_position_embeddings", "n_positions", "n_ctx"),
    "mtp_layers": ("num_nextn_predict_layers", "num_mtp_layers"),
    "dropout": ("attention_dropout", "attn_pdrop", "hidden_dropout", "resid_pdrop", "residual_dropout"),
    "biases": ("attention_bias", "qkv_bias"),
    "network_biases": ("mlp_bias",),
}


@dataclass(frozen=True)
class _Family:
    """What the class of a model says and its file does not.

    Attributes:
        gated: as in `TransformerConfig`.
        norm: likewise.
        biases: likewise; with `bias_key`, what `attention_bias: true` means.
        bias_key: whether `attention_bias` and `mlp_bias` decide.
        qk_norm: as in `TransformerConfig`.
        post_norms: likewise.
        tied: of the embeddings, where the file has no `tie_word_embeddings`.
        learned: whether positions are learned.
        experts: `none`; the `only` network of each layer, as wide as `intermediate_size` says; or of a width
            of their `own`, beside dense layers.
        latent: whether attention is latent.
        window: `none`, for `all` layers unless other keys say more, or for every second one (`half`).
        grouped: whether the file has to say how many heads of keys and values there are.
    """

    gated: bool = True
    norm: Literal["rms", "layer"] = "rms"
    biases: Biases = False
    bias_key: bool = False
    qk_norm: bool = False
    post_norms: bool = False
    tied: bool = False
    learned: bool = False
    experts: Literal["none", "only", "own"] = "none"
    latent: bool = False
    window: Literal["none", "all", "half"] = "none"
    grouped: bool = True


_DEEPSEEK = _Family(latent=True, experts="own", grouped=False, biases="attention", bias_key=True)
_FAMILIES: dict[str, _Family] = {
    "llama": _Family(biases="attention", bias_key=True, grouped=False),
    "granite": _Family(biases="attention", bias_key=True),
    "mistral": _Family(window="all"),
    "mixtral": _Family(experts="only", window="all"),
    "phi3": _Family(window="all"),
    "qwen2": _Family(biases="qkv", window="all"),
    "qwen2_moe": _Family(biases="qkv", window="all", experts="own"),
    "qwen3": _Family(biases="attention", bias_key=True, qk_norm=True, window="all"),
    "qwen3_moe": _Family(biases="attention", bias_key=True, qk_norm=True, window="all", experts="own"),
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK,
    "kimi_k2": _DEEPSEEK,
    "glm4_moe": _Family(biases="qkv", bias_key=True, experts="own"),
    "gpt_oss": _Family(biases=True, experts="only", window="half"),
    "llama4": _Family(biases="attention", bias_key=True, qk_norm=True, experts="own"),
    "gemma": _Family(biases="attention", bias_key=True, tied=True),
    "gemma2": _Family(biases="attention", bias_key=True, tied=True, post_norms=True, window="half"),
    "gemma3": _Family(
        biases="attention", bias_key=True, tied=True, post_norms=True, qk_norm=True, window="all"
    ),
    "nemotron": _Family(biases="attention", bias_key=True, gated=False, norm="layer"),
    "starcoder2": _Family(gated=False, norm="layer", biases=True, tied=True, window="all"),
    "gpt_neox": _Family(gated=False, norm="layer", biases=True, grouped=False),
    "gpt2": _Family(gated=False, norm="layer", biases=True, tied=True, learned=True, grouped=False),
}
_LAYER_TYPES = ("full_attention", "sliding_attention", "chunked_attention")


def import_shape(model: Node, path: tuple[str, ...]) -> tuple[Node, list[Problem]]:
    """Put the shape that `hugging_face` names in its place.

    Args:
        model: the mapping of a model.
        path: where it is in its document, for messages.

    Returns:
        The model with `transformer` instead, and no problems; or the model as it was, and what is wrong.
    """
    entries = model.mapping or {}
    node = entries.get(KEY)
    if node is None or node.value is None or "transformer" in entries or "compute" in entries:
        # Two ways at once are for the validation to refuse.
        return model, []
    try:
        shape = _shape(_read(node, ".".join((*path, KEY))))
    except ConfigError as error:
        return model, list(error.problems)
    kept = {key: child for key, child in entries.items() if key != KEY}
    transformer = Node(shape, node.position, node.key_position)
    return Node({**kept, "transformer": transformer}, model.position, model.key_position), []


def _read(node: Node, key: str) -> Document:
    """The JSON file, with the positions of its values."""
    if not isinstance(node.value, str) or "\0" in node.value:
        raise ConfigError([Problem(node.position, key, "expected the path of a config.json")])
    # A flag has no line, and no folder but the working directory.
    folder = Path(node.position.file).parent if node.position.line else Path()
    path = folder / node.value
    if os.path.isdir(path):  # not `path.is_dir()`, which raises where a name is too long
        path = path / "config.json"
    try:
        text = read_bytes(path, MAXIMUM_BYTES).decode("utf-8-sig")
        json.loads(text)
    except FileNotFoundError:
        text = (
            f"{path} cannot be read: No such file or directory; nothing is downloaded, so save the file first"
        )
        raise ConfigError([Problem(node.position, key, text)]) from None
    except UnusableFile as error:
        raise ConfigError([Problem(node.position, key, f"{path}: {error}")]) from None
    except UnicodeDecodeError:
        raise ConfigError(
            [Problem(node.position, key, f"{path} cannot be read: it is not UTF-8 text")]
        ) from None
    except json.JSONDecodeError as error:
        position = Position(str(path), error.lineno, error.colno)
        raise ConfigError([Problem(position, "", f"not JSON: {error.msg}")]) from None
    except ValueError as error:  # a number of thousands of digits
        raise ConfigError([Problem(Position(str(path)), "", f"not JSON: {error}")]) from None
    except RecursionError:
        raise ConfigError(
            [Problem(Position(str(path)), "", "nested too deep; expected a config.json")]
        ) from None
    # JSON is YAML but for tabs, which strings cannot have unescaped.
    return read_text(text.replace("\t", " "), str(path))


class _Reader:
    """Looks keys up in a config.json and notes what is wrong, so that one look mends all of it."""

    def __init__(self, document: Document):
        """Args: document, the file; the part about text is looked up first."""
        root = document.root
        parts = {name: root.child(name) for name in _NESTED}
        nested = next(((name, part) for name, part in parts.items() if part and part.mapping), None)
        name, part = nested or ("", root)
        self.prefix = f"{name}." if name else ""
        self.text: dict[str, Node] = dict(part.mapping or {})
        self.place = part.position
        self.root: dict[str, Node] = dict(root.mapping or {})
        self.problems: list[Problem] = []

    def problem(self, key: str, message: str, node: Node | None = None) -> None:
        """Note what is wrong with a key."""
        position = self.place if node is None else node.position
        self.problems.append(Problem(position, self.prefix + key, message))

    def find(self, what: str) -> tuple[str, Node] | None:
        """The key that says something and its value; none if it is absent or null."""
        found = [
            (name, self.text[name])
            for name in _ALIASES.get(what, (what,))
            if name in self.text and self.text[name].value is not None
        ]
        if not found:
            return None
        name, node = found[0]
        for other, another in found[1:]:
            # GPT-2 says `n_positions` and `n_ctx`; that is fine as long as they agree.
            if another.plain() != node.plain() and what != "dropout":
                self.problem(
                    other, f"expected the same as `{name}`, {node.value}; got {another.value}", another
                )
        return name, node

    def number(self, what: str, *, needed: bool = True, least: int = 1) -> Node | None:
        """A whole number."""
        found = self.find(what)
        if found is None:
            if needed:
                names = _ALIASES.get(what, (what,))
                others = f" (or {', '.join(f'`{each}`' for each in names[1:])})" if names[1:] else ""
                text = f"missing key; `{names[0]}`{others} has to be in the file, no default is assumed"
                self.problem(names[0], text)
            return None
        name, node = found
        if not isinstance(node.value, int) or isinstance(node.value, bool) or node.value < least:
            shown = node.value if not isinstance(node.value, dict | list) else "a collection"
            self.problem(name, f"expected a whole number of at least {least}; got {shown!r}", node)
            return None
        return node

    def flag(self, what: str, *, default: bool, anywhere: bool = False) -> bool:
        """True or false."""
        found = self.find(what)
        if found is None and anywhere and self.root.get(what) is not None:
            found = what, self.root[what]
        if found is None or found[1].value is None:
            return default
        if not isinstance(found[1].value, bool):
            self.problem(found[0], f"expected true or false; got {found[1].value!r}", found[1])
            return default
        return found[1].value


def _shape(document: Document) -> dict[str, Node]:
    reader = _Reader(document)
    name, family = _family(reader, document)
    origin = reader.text.get("model_type") or reader.root["model_type"]

    def fact(value: Any) -> Node:
        return Node(value, origin.position)

    shape: dict[str, Node | None] = {
        key: reader.number(key) for key in ("layers", "hidden", "heads", "vocab")
    }
    shape["gated"], shape["norm"] = fact(family.gated), fact(family.norm)
    shape["tied_embeddings"] = fact(reader.flag("tie_word_embeddings", default=family.tied, anywhere=True))
    shape["biases"] = fact(_biases(reader, family))
    shape["post_norms"] = fact(family.post_norms)
    shape["qk_norm"] = fact(reader.flag("use_qk_norm", default=family.qk_norm))
    if family.latent:
        shape["mla"] = _latent(reader, origin)
    else:
        shape["kv_heads"] = reader.number("kv_heads", needed=family.grouped)
        shape["head_dim"] = reader.number("head_dim", needed=False)
    if family.learned:
        shape["positions"], shape["max_positions"] = fact("learned"), reader.number("positions")
    shape["dropout"] = fact(_has_dropout(reader))
    shape |= _windows(reader, name, family, origin)
    shape |= _networks(reader, name, family, origin)
    mtp = reader.number("mtp_layers", needed=False, least=0)
    shape["mtp_layers"] = mtp
    if reader.problems:
        raise ConfigError(reader.problems)
    return {key: node for key, node in shape.items() if node is not None}


def _family(reader: _Reader, document: Document) -> tuple[str, _Family]:
    node = reader.text.get("model_type") or (None if reader.prefix else reader.root.get("model_type"))
    if node is None or not isinstance(node.value, str):
        text = "missing key; it tells what the numbers mean"
        raise ConfigError([Problem(reader.place, f"{reader.prefix}model_type", text)])
    name = _plain(node.value)
    if name not in _FAMILIES:
        inline = "write the numbers into `transformer` instead, if it is one"
        hint = did_you_mean(node.value, _FAMILIES, most=30)
        text = f"unsupported model type `{node.value[:60]}`; {hint}; {inline}"
        raise ConfigError([Problem(node.position, f"{reader.prefix}model_type", text)])
    return name, _FAMILIES[name]


def _plain(name: str) -> str:
    """The language model inside a multimodal one is a plain one by another name."""
    name = name.removesuffix("_text")
    for ending, others in (("_vl_moe", "_moe"), ("_vl", "")):
        if name.endswith(ending):
            name = name.removesuffix(ending) + others
    return name.replace("qwen2_5", "qwen2")


def _biases(reader: _Reader, family: _Family) -> bool | str:
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


def _latent(reader: _Reader, origin: Node) -> Node:
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


def _has_dropout(reader: _Reader) -> bool:
    for name in _ALIASES["dropout"]:
        node = reader.text.get(name)
        if node is None or node.value is None:
            continue
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            reader.problem(name, f"expected a number; got {node.value!r}", node)
        elif node.value > 0:
            return True
    return False


def _windows(reader: _Reader, name: str, family: _Family, origin: Node) -> dict[str, Node | None]:
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


def _chunks(reader: _Reader, origin: Node) -> dict[str, Node | None]:
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


def _pattern(reader: _Reader, types: Node) -> Node | None:
    """From a list of layer types, which layers see everything."""
    names = types.plain() if isinstance(types.value, list) else []
    unknown = [each for each in names if each not in _LAYER_TYPES]
    if unknown or not names:
        shown = f"`{unknown[0]}`" if unknown else "no list"
        reader.problem("layer_types", f"expected {', '.join(_LAYER_TYPES)}; got {shown}", types)
        return None
    full = [index for index, each in enumerate(names) if each == "full_attention"]
    return _every(reader, "layer_types", types, full, len(names))


def _every(reader: _Reader, key: str, node: Node, full: list[int], count: int) -> Node | None:
    """The k of layers k, 2k, ... that are different, None for no layer."""
    if not full:
        return None
    every = full[0] + 1
    if full != list(range(every - 1, count, every)):
        text = f"expected layers {every}, {2 * every}, ... to attend to everything, the others in windows"
        reader.problem(key, f"{text}; other patterns cannot be imported", node)
    return Node(every, node.position)


def _networks(reader: _Reader, name: str, family: _Family, origin: Node) -> dict[str, Node | None]:
    """The dense network's width and the experts."""
    if name == "gpt2" and reader.find("ffn") is None:
        # Null or absent means four times the width, in every size.
        hidden = reader.find("hidden")
        width = hidden[1].value if hidden is not None else None
        return {"ffn": Node(4 * width, hidden[1].position) if hidden and isinstance(width, int) else None}
    if family.experts == "none":
        return {"ffn": reader.number("ffn")}
    found: dict[str, Node | None] = {"count": reader.number("experts"), "top_k": reader.number("top_k")}
    if family.experts == "only":
        found["ffn"] = reader.number("ffn")
        return {"experts": Node({k: v for k, v in found.items() if v is not None}, origin.position)}
    if name == "llama4":
        # One shared expert of the width of the others; a width of its own for layers without.
        found["ffn"] = reader.number("ffn")
        found["shared"] = Node(1, origin.position)
        found["every"] = reader.number("interleave_moe_layer_step")
        _check_listed(reader, found["every"])
    else:
        found["ffn"] = reader.number("expert_ffn")
        found |= _shared(reader, name)
        found["dense_layers"] = _dense_layers(reader, name)
        found["every"] = reader.number("decoder_sparse_step", needed=False)
        found["groups"] = reader.number("groups", needed=False)
        found["group_limit"] = reader.number("group_limit", needed=False) if found["groups"] else None
        _check_frequency(reader)
    # Files of models without dense layers may have a width for them all the same.
    has_dense = any(
        node is not None and node.value != value
        for node, value in ((found.get("dense_layers"), 0), (found.get("every"), 1))
    )
    width = "intermediate_size_mlp" if name == "llama4" else "ffn"
    return {
        "ffn": reader.number(width) if has_dense else None,
        "experts": Node({k: v for k, v in found.items() if v is not None}, origin.position),
    }


def _shared(reader: _Reader, name: str) -> dict[str, Node | None]:
    width = reader.number("shared_ffn", needed=name == "qwen2_moe", least=0)
    if width is not None:
        return {"shared": Node(1 if width.value else 0, width.position), "shared_ffn": width}
    needed = name in ("deepseek_v2", "deepseek_v3", "kimi_k2", "glm4_moe")
    null = reader.text.get("n_shared_experts")
    count = reader.number("shared", needed=needed and (null is None or null.value is not None), least=0)
    return {"shared": count}


def _dense_layers(reader: _Reader, name: str) -> Node | None:
    listed = reader.text.get("mlp_only_layers")
    if listed is not None and isinstance(listed.value, list) and listed.value:
        layers = listed.plain()
        if layers != list(range(len(layers))):
            text = "expected the first layers, 0, 1, ...; other patterns cannot be imported"
            reader.problem("mlp_only_layers", text, listed)
        return Node(len(layers), listed.position)
    needed = not name.startswith("qwen")
    return reader.number("dense_layers", needed=needed, least=0)


def _check_frequency(reader: _Reader) -> None:
    node = reader.text.get("moe_layer_freq")
    if node is not None and node.value not in (None, 1):
        shown = node.value if not isinstance(node.value, dict | list) else "a list"
        text = f"expected 1; got {shown}: write the numbers into `transformer` instead"
        reader.problem("moe_layer_freq", text, node)


def _check_listed(reader: _Reader, step: Node | None) -> None:
    node, layers = reader.text.get("moe_layers"), reader.find("layers")
    if node is None or node.value is None or step is None or layers is None:
        return
    every, count = step.value, layers[1].value
    if (
        isinstance(every, int)
        and isinstance(count, int)
        and node.plain() != list(range(every - 1, count, every))
    ):
        step_says = f"expected each {every}. layer, as `interleave_moe_layer_step` says"
        text = f"{step_says}; other patterns cannot be imported"
        reader.problem("moe_layers", text, node)
