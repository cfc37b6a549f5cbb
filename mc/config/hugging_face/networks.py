"""Feed-forward networks: dense, of experts, and which layers have which."""

from mc.config.hugging_face.families import Family
from mc.config.hugging_face.reader import Reader
from mc.document import Node


def networks(reader: Reader, name: str, family: Family, origin: Node) -> dict[str, Node | None]:
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


def _shared(reader: Reader, name: str) -> dict[str, Node | None]:
    width = reader.number("shared_ffn", needed=name == "qwen2_moe", least=0)
    if width is not None:
        return {"shared": Node(1 if width.value else 0, width.position), "shared_ffn": width}
    needed = name in ("deepseek_v2", "deepseek_v3", "kimi_k2", "glm4_moe")
    null = reader.text.get("n_shared_experts")
    count = reader.number("shared", needed=needed and (null is None or null.value is not None), least=0)
    return {"shared": count}


def _dense_layers(reader: Reader, name: str) -> Node | None:
    listed = reader.text.get("mlp_only_layers")
    if listed is not None and isinstance(listed.value, list) and listed.value:
        layers = listed.plain()
        if layers != list(range(len(layers))):
            text = "expected the first layers, 0, 1, ...; other patterns cannot be imported"
            reader.problem("mlp_only_layers", text, listed)
        return Node(len(layers), listed.position)
    needed = not name.startswith("qwen")
    return reader.number("dense_layers", needed=needed, least=0)


def _check_frequency(reader: Reader) -> None:
    node = reader.text.get("moe_layer_freq")
    if node is not None and node.value not in (None, 1):
        shown = node.value if not isinstance(node.value, dict | list) else "a list"
        text = f"expected 1; got {shown}: write the numbers into `transformer` instead"
        reader.problem("moe_layer_freq", text, node)


def _check_listed(reader: Reader, step: Node | None) -> None:
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
