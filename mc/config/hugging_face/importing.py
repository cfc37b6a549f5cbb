"""The shape of a transformer from a `config.json` as Hugging Face Transformers writes it.

    model:
      name: Llama 3 8B
      hugging_face: config.json

The import happens on nodes, while a configuration is being put together: numbers of the JSON file take the
place of its name, each with its own line there, so whatever is wrong with one is reported where it is
written, and the resolved configuration stands alone.

What no key says, such as
whether the network has a gate, follows from `model_type` (`families.py`, facts of the model classes in
Transformers), and so do flags that a file leaves out. A number that is needed and not in the file is an
error: the defaults that Transformers would fill in belong to one size of a family and would go unnoticed.
"""

import json
import os
from pathlib import Path
from typing import Any

from mc.config.hugging_face.attention import biases, has_dropout, latent, windows
from mc.config.hugging_face.families import FAMILIES, Family
from mc.config.hugging_face.networks import networks
from mc.config.hugging_face.reader import Reader
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


def _shape(document: Document) -> dict[str, Node]:
    reader = Reader(document)
    name, family = _family(reader, document)
    origin = reader.text.get("model_type") or reader.root["model_type"]

    def fact(value: Any) -> Node:
        return Node(value, origin.position)

    shape: dict[str, Node | None] = {
        key: reader.number(key) for key in ("layers", "hidden", "heads", "vocab")
    }
    shape["gated"], shape["norm"] = fact(family.gated), fact(family.norm)
    shape["tied_embeddings"] = fact(reader.flag("tie_word_embeddings", default=family.tied, anywhere=True))
    shape["biases"] = fact(biases(reader, family))
    shape["post_norms"] = fact(family.post_norms)
    shape["qk_norm"] = fact(reader.flag("use_qk_norm", default=family.qk_norm))
    if family.latent:
        shape["mla"] = latent(reader, origin)
    else:
        shape["kv_heads"] = reader.number("kv_heads", needed=family.grouped)
        shape["head_dim"] = reader.number("head_dim", needed=False)
    if family.learned:
        shape["positions"], shape["max_positions"] = fact("learned"), reader.number("positions")
    shape["dropout"] = fact(has_dropout(reader))
    shape |= windows(reader, name, family, origin)
    shape |= networks(reader, name, family, origin)
    mtp = reader.number("mtp_layers", needed=False, least=0)
    shape["mtp_layers"] = mtp
    if reader.problems:
        raise ConfigError(reader.problems)
    return {key: node for key, node in shape.items() if node is not None}


def _family(reader: Reader, document: Document) -> tuple[str, Family]:
    node = reader.text.get("model_type") or (None if reader.prefix else reader.root.get("model_type"))
    if node is None or not isinstance(node.value, str):
        text = "missing key; it tells what the numbers mean"
        raise ConfigError([Problem(reader.place, f"{reader.prefix}model_type", text)])
    name = _plain(node.value)
    if name not in FAMILIES:
        inline = "write the numbers into `transformer` instead, if it is one"
        hint = did_you_mean(node.value, FAMILIES, most=30)
        text = f"unsupported model type `{node.value[:60]}`; {hint}; {inline}"
        raise ConfigError([Problem(node.position, f"{reader.prefix}model_type", text)])
    return name, FAMILIES[name]


def _plain(name: str) -> str:
    """The language model inside a multimodal one is a plain one by another name."""
    name = name.removesuffix("_text")
    for ending, others in (("_vl_moe", "_moe"), ("_vl", "")):
        if name.endswith(ending):
            name = name.removesuffix(ending) + others
    return name.replace("qwen2_5", "qwen2")
