"""The configuration as it was understood: printed, and hashed.

Printing spells every default out and writes every quantity with a unit, exactly; reading the text back gives
an equal configuration. The hash is that of the content: the order of keys, comments and the division into
files do not count, and neither does `description`.
"""

import hashlib
import io
import json
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from mc.document import StrictModel


def resolved(config: StrictModel) -> dict[str, Any]:
    """Plain data with quantities as text; what is absent is left out."""
    return config.model_dump(mode="json", exclude_none=True)


def resolved_yaml(config: StrictModel) -> str:
    """The configuration as a YAML file that stands alone."""
    yaml = YAML()
    yaml.default_flow_style = False
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 110
    stream = io.StringIO()
    yaml.dump(_laid_out(resolved(config)), stream)
    return stream.getvalue()


def _laid_out(value: Any) -> Any:
    """Lists of plain values, such as samples, in rows; everything else line by line."""
    if isinstance(value, dict):
        return {key: _laid_out(child) for key, child in value.items()}
    if isinstance(value, str) and not value.isprintable():
        # Quoted, so that line breaks of other alphabets are escaped instead of read as line breaks.
        return DoubleQuotedScalarString(value)
    if not isinstance(value, list):
        return value
    items = CommentedSeq(_laid_out(item) for item in value)
    if not any(isinstance(item, dict | list) for item in items):
        items.fa.set_flow_style()
    return items


def config_hash(config: StrictModel) -> str:
    """16 hexadecimal digits that identify what a configuration asks for."""
    content = {key: value for key, value in resolved(config).items() if key != "description"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
