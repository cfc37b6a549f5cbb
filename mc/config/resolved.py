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

from mc.document import StrictModel


def resolved(config: StrictModel) -> dict[str, Any]:
    """Plain data with quantities as text; what is absent is left out."""
    return config.model_dump(mode="json", exclude_none=True)


def resolved_yaml(config: StrictModel) -> str:
    """The configuration as a YAML file that stands alone."""
    yaml = YAML()
    yaml.default_flow_style = False
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 10**6
    stream = io.StringIO()
    yaml.dump(resolved(config), stream)
    return stream.getvalue()


def config_hash(config: StrictModel) -> str:
    """16 hexadecimal digits that identify what a configuration asks for."""
    content = {key: value for key, value in resolved(config).items() if key != "description"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
