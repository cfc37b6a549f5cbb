"""Keys of a `config.json` and their values; families call one thing by different names (`ALIASES`)."""

from mc.document import Document, Node, Problem

# Where multimodal models keep the part that is a language model.
_NESTED = ("text_config", "language_config", "llm_config")
ALIASES: dict[str, tuple[str, ...]] = {
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


class Reader:
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
            for name in ALIASES.get(what, (what,))
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
                names = ALIASES.get(what, (what,))
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
